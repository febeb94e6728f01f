"""The forms of lines that are known, each with the function that turns such an object into records:
weft-perf's rows and balances, rows of weft-perf device and of the peers' benchmarks, what scripts/bench
keeps, and matrices of peers. README.md lists them. Pure; what is wrong with a line is said by NotUsable.
"""
import re
import shlex

from .records import UNITS, Comparison, Event, Nic, NicLoads, PeerMatrix, Point, Step

LIBRARY_NAMES = {"weft": "Weft", "nvshmem": "NVSHMEM", "nccl": "NCCL"}
# NCCL's names for the collectives, so that they stand in one figure with the others'.
NCCL_BENCHMARKS = {"allgather": "fcollect", "allreduce": "reduction", "alltoall_pairs": "alltoall"}
SUFFIXES = ("_device", "_on_stream")
# Fields that are kept as they are, if a line has them.
PLAIN_FIELDS = ("policy", "scope", "mode", "pattern", "type", "reduction", "warmup", "pes", "nodes", "window",
                "ctas", "threads", "gpu")
BUS_BANDWIDTHS = ("bus_gb_per_s", "busbw")
# Options of a command that say nothing about what is measured, or are fields of their own; with the
# words they take.
OUTPUT_OPTIONS = {"--output": 1, "--policy": 1, "--warmup": 1, "--json": 0, "--verify": 0, "--no-verify": 0, "--no-counters": 0}
# Those that say how much and how long; to values at one size they do not matter.
AMOUNT_OPTIONS = {"-b": 1, "-e": 1, "-f": 1, "-n": 1, "-w": 1, "--duration": 1, "--repeats": 1}
ALL_DROPPED = OUTPUT_OPTIONS | AMOUNT_OPTIONS


PE_COUNT_MAX = 1024  # more PEs than that have no place in a heat map


class NotUsable(Exception):
    """Why a line cannot be used; the same words for the same reason."""


def is_number(value):
    """Finite, and no larger than any value that could be meant."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30


def number(line, key):
    """A number that is not negative."""
    value = line.get(key)
    if not is_number(value):
        raise NotUsable(f"'{key}' is {'missing' if key not in line else 'not a number'}")
    if value < 0:
        raise NotUsable(f"'{key}' is negative")
    return value


def measured(line, key):
    """A number above 0: it goes to a logarithmic axis."""
    value = number(line, key)
    if value == 0:
        raise NotUsable(f"'{key}' is 0")
    return value


def words(line, key):
    value = line.get(key)
    if not isinstance(value, str) or not value:
        raise NotUsable(f"'{key}' is {'missing' if key not in line else 'not a text'}")
    return value


def metric_of(unit):
    if unit not in UNITS:
        raise NotUsable(f"the unit '{unit}' is not known")
    return UNITS[unit]


# ---- Circumstances -------------------------------------------------------------------------------


def options_of(command, dropped):
    """What a weft-perf command says beyond the dropped options: '--window 4'."""
    try:
        left = shlex.split(command)[1:]
    except ValueError:
        return ""
    kept = []
    while left:
        word = left.pop(0)
        name, equals, _ = word.partition("=")
        if name in dropped:
            del left[:0 if equals else dropped[name]]
        elif word.startswith("-"):
            kept.append(word)
            if left and not left[0].startswith("-"):
                kept.append(left.pop(0))
    return " ".join(kept)


def machine_of(line):
    machine = line.get("machine")
    if isinstance(machine, dict):
        return " ".join(str(machine[key]) for key in ("cpu", "cores") if key in machine)
    return machine if isinstance(machine, str) else None


def library_of(line):
    named = line.get("library", line.get("peer"))
    if isinstance(named, str):
        return LIBRARY_NAMES.get(named.lower(), named)
    return "Weft" if line.get("kind") in ("row", "balance", "event") else None


def warmup_of(line):
    """"on" or "off": a field of some lines, of others only a word of the command."""
    if isinstance(line.get("warmup"), bool):
        return "on" if line["warmup"] else "off"
    found = re.search(r"--warmup[ =](on|off)\b", str(line.get("command")))
    return found and found.group(1)


def fields_of(line, dropped=OUTPUT_OPTIONS):
    """The circumstances of a line; of its command all options count that are not dropped."""
    found = {name: line[name] for name in PLAIN_FIELDS if isinstance(line.get(name), (str, int))}
    if (warmup := warmup_of(line)) is not None:
        found["warmup"] = warmup
    versions = line.get("versions")
    more = {
        "library": library_of(line),
        "machine": found.get("gpu") or machine_of(line),
        "version": line.get("version") or (versions.get("weft") if isinstance(versions, dict) else None),
        "mode": "pairs" if line.get("bench") == "alltoall_pairs" else None,
        "options": options_of(line["command"], dropped) if isinstance(line.get("command"), str) else None,
    }
    return found | {name: value for name, value in more.items() if value and isinstance(value, (str, int, float))}


def benchmark_of(line):
    name = line.get("table") or line.get("bench") or line.get("subcommand") or "traffic"
    if not isinstance(name, str):
        raise NotUsable("'table' is not a text")
    if library_of(line) == "NCCL":
        name = NCCL_BENCHMARKS.get(name, name)
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


# ---- weft-perf -----------------------------------------------------------------------------------


def perf_row(line):
    """A row of weft-perf: its value, and the bandwidth of collectives and exchanges."""
    metric, factor = metric_of(words(line, "unit"))
    size, value = number(line, "size"), measured(line, "value") * factor
    benchmark, fields = benchmark_of(line), fields_of(line, ALL_DROPPED)
    points = [Point(benchmark, metric, int(size), value, fields)]
    for key in BUS_BANDWIDTHS:
        if key in line:
            points.append(Point(benchmark, "bus_bandwidth", int(size), measured(line, key), fields))
    if "put_quiet_put" in line:
        points[0] = Point(benchmark, metric, int(size), value, fields | {"mode": "put_signal"})
        slow = fields | {"mode": "put, quiet, put, quiet"}
        points.append(Point(benchmark, metric, int(size), measured(line, "put_quiet_put"), slow))
    return points


def device_row(line):
    """A row of weft-perf device and stream, and of the peers' benchmarks."""
    benchmark, size, fields = benchmark_of(line), int(number(line, "bytes")), fields_of(line, ALL_DROPPED)
    if "_bw" in benchmark:
        return [Point(benchmark, "bandwidth", size, measured(line, "gb_per_s"), fields)]
    points = [Point(benchmark, "latency", size, measured(line, "latency_us"), fields)]
    if "bus_gb_per_s" in line:
        points.append(Point(benchmark, "bus_bandwidth", size, measured(line, "bus_gb_per_s"), fields))
    return points


def run_of(line):
    """The same for all lines of one run of weft-perf; a run of cold_start has one for each peer."""
    return tuple(str(line.get(key)) for key in ("date", "command", "peer"))


def paged_write_row(line):
    return [Step(benchmark_of(line), run_of(line), number(line, "time_ms"), number(line, "value"), fields_of(line))]


def event(line):
    return [Event(benchmark_of(line), run_of(line), number(line, "time_ms"), words(line, "what"), fields_of(line))]


def cold_start_row(line):
    """One put after another: the time of each is a step."""
    times, size = line["times"], number(line, "size")
    steps, now_us = [], 0.0
    for time_us in times:
        if not is_number(time_us) or time_us <= 0:
            raise NotUsable("'times' has something that is no time")
        now_us += time_us
        steps.append(Step(benchmark_of(line), run_of(line), now_us / 1e3, size / time_us / 1e3, fields_of(line)))
    return steps


def nic_of(entry, source):
    if not isinstance(entry, dict):
        raise NotUsable("'nics' has something that is no NIC")
    sent, received = (number(entry, f"{direction}_bytes_{source}") for direction in ("tx", "rx"))
    return Nic(int(number(entry, "node")), words(entry, "nic"), int(sent), int(received),
               bool(entry.get("sends", True)), bool(entry.get("receives", True)))


def balance(line):
    """Bytes of NICs: by the kernel where it knows all of them, else by the library."""
    nics = line["nics"]
    if not nics:
        raise NotUsable("'nics' is empty")
    known = all(isinstance(nic, dict) and nic.get("tx_bytes_kernel") is not None for nic in nics)
    source = "kernel" if known else "library"
    loads = NicLoads(benchmark_of(line), tuple(nic_of(nic, source) for nic in nics), source, fields_of(line))
    return [loads, *(peers(line) if "peers" in line else [])]


# ---- Peers ---------------------------------------------------------------------------------------


def matrix_of(rows):
    if not isinstance(rows, list) or not rows or any(not isinstance(row, list) or len(row) != len(rows) for row in rows):
        raise NotUsable("'matrix' is not square: a list for each PE, with a number for each PE")
    for value in (value for row in rows for value in row):
        if not is_number(value) or value < 0:
            raise NotUsable("'matrix' has something that is no number of bytes")
    return tuple(tuple(map(float, row)) for row in rows)


def peers(line):
    """{"peers": [[...]]}, or {"peers": {"matrix": [[...]], "unit": "bytes/s"}}, or the inner object alone."""
    inner = line.get("peers", line)
    if not isinstance(inner, dict):
        inner = {"matrix": inner}
    unit = inner.get("unit", "bytes")
    if unit not in ("bytes", "bytes/s"):
        raise NotUsable("'unit' of a matrix is neither bytes nor bytes/s")
    return [PeerMatrix(benchmark_of(line), matrix_of(inner.get("matrix")), unit, fields_of(line))]


def top_frame(line):
    """A frame of weft-top --json: for each job the bytes since it began, as far as the pages of its PEs are here."""
    jobs = {}
    for pe in line["pes"]:
        if not isinstance(pe, dict):
            raise NotUsable("'pes' has something that is no PE")
        count = min(int(number(pe, "pe_count")), PE_COUNT_MAX)
        matrix, policy = jobs.setdefault(words(pe, "job"), ([[0.0] * count for _ in range(count)], pe.get("policy")))
        add_exchanged(matrix, pe)
    return [PeerMatrix(f"job-{job}", tuple(map(tuple, matrix)), "bytes", {"policy": str(policy), "library": "Weft"}, job)
            for job, (matrix, policy) in jobs.items() if any(map(any, matrix))]


def add_exchanged(matrix, pe):
    me, others = int(number(pe, "pe")), pe.get("peers")
    if not isinstance(others, list):
        raise NotUsable("'peers' of a PE is not a list")
    for other in others:
        peer = int(number(other, "peer")) if isinstance(other, dict) else -1
        if not (0 <= me < len(matrix) and 0 <= peer < len(matrix)):
            raise NotUsable("'peers' names a PE that is not in the job")
        matrix[me][peer] += number(other, "put_bytes")
        matrix[peer][me] += number(other, "get_bytes")


# ---- scripts/bench -------------------------------------------------------------------------------


def sides_of(line):
    """Samples of both sides as they were recorded; the two medians where they were not kept."""
    samples = line.get("samples")
    pair = (isinstance(samples, list) and len(samples) == 2
            and all(isinstance(side, list) and side for side in samples))
    sides = samples if pair else [[measured(line, "ours")], [measured(line, "theirs")]]
    return [[measured({"samples": value}, "samples") for value in side] for side in sides]


def bench_row(line):
    """A comparison. A row with a value of its own and nothing beside it is in no figure."""
    if line.get("ours") is None or line.get("theirs") is None:
        return []
    metric, factor = metric_of(line.get("unit"))
    ours, theirs = sides_of(line)
    # samples may be in another unit than `ours`, which is their median
    scale = measured(line, "ours") * factor / median(ours)
    return [Comparison(words(line, "row"), words(line, "what"), metric, tuple(value * scale for value in ours),
                       tuple(value * scale for value in theirs), str(line.get("date", "")), {})]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


# ---- Which form it is ----------------------------------------------------------------------------


FORMS = (
    (lambda line: isinstance(line.get("nics"), list) and line.get("kind") == "balance", balance),
    (lambda line: isinstance(line.get("pes"), list), top_frame),
    (lambda line: "matrix" in line or isinstance(line.get("peers"), (list, dict)), peers),
    (lambda line: "row" in line and "what" in line, bench_row),
    (lambda line: "bench" in line and "bytes" in line, device_row),
    (lambda line: line.get("kind") == "event", event),
    (lambda line: line.get("kind") == "row" and "time_ms" in line, paged_write_row),
    (lambda line: line.get("table") == "cold_start" and isinstance(line.get("times"), list), cold_start_row),
    (lambda line: line.get("kind") == "row", perf_row),
)


def records_of(line):
    """The records of one object. Raises NotUsable."""
    if not isinstance(line, dict):
        raise NotUsable("JSON, but no object")
    for is_form, convert in FORMS:
        if is_form(line):
            return convert(line)
    known = re.sub(r"[^\w, ]", "?", ", ".join(list(line)[:4]))
    raise NotUsable(f"no form that weft-plot knows, its keys begin with {known}" if line else "an object without keys")
