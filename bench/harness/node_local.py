"""Rows inside a node: against OpenMPI's oshmem over UCX, and against memcpy; and how many PEs fit."""
import pathlib
import subprocess
import time

from .places import Here, Missing, ROOT, json_lines, median, oshmem, program
from .report import Result

K, M = 1 << 10, 1 << 20
SIZES = (64 * K, M, 16 * M)


def puts_and_copies():
    """{(name, size): GB/s} of Weft's puts and of memcpy between the same two buffers, in one process."""
    command = [program("weft-run"), "-n", 2, "--bind", "core", "--", program("node_local")]
    return {(line["name"], line["bytes"]): line["gb_per_s"] for line in json_lines(command)}


def small_operations(settings):
    """Both sides in turn; the ratio is theirs / ours, so above 1 is ahead."""
    place = Here()
    commands = {"put_quiet": ["put_latency", "-b", 8, "-e", 8, "-n", 200000],
                "get": ["get_latency", "-b", 8, "-e", 8, "-n", 200000],
                "fetch_add": ["atomic_latency", "-a", "fetch_add", "-d", "int64", "-n", 200000]}
    ours, theirs = {what: [] for what in commands}, {what: [] for what in commands}
    for _ in range(settings.runs):
        measured = oshmem()
        for what, words in commands.items():
            theirs[what].append(measured[what, 8])
            ours[what].append(place.perf(2, *words).value())
    return [Result(what, median(theirs[what]) / median(ours[what]), 1.0, ours=median(ours[what]) * 1e3,
                   theirs=median(theirs[what]) * 1e3, unit="ns", samples=[ours[what], theirs[what]])
            for what in commands]


def large_puts(settings):
    sides = ("put", "memcpy", "oshmem")
    values = {size: {side: [] for side in sides} for size in SIZES}
    for _ in range(settings.runs):
        ours, theirs = puts_and_copies(), oshmem()
        for size, samples in values.items():
            samples["put"].append(ours["put", size])
            samples["memcpy"].append(ours["memcpy", size])
            samples["oshmem"].append(theirs["put", size])
    return [Result(f"{size // K} KiB against {other}", median(samples["put"]) / median(samples[other]), 1.0,
                   ours=median(samples["put"]), theirs=median(samples[other]), unit="GB/s",
                   samples=[samples["put"], samples[other]])
            for size, samples in values.items() for other in ("oshmem", "memcpy")]


def sleepers(settings):
    """A signal or an atomic to a PE that sleeps for something else, against a put and its quiet in the same run."""
    command = [program("weft-run"), "-n", 2, "--bind", "core", "--", program("node_sleepers")]
    times = {}
    for _ in range(settings.runs):
        for line in json_lines(command):
            times.setdefault((line["name"], line["bytes"], line["target"]), []).append(line["ns"])
    results = []
    for target in ("in a barrier", "in a wait for another word"):
        base = times["put_quiet", 8, target]
        for name in ("put_signal", "put_signal_add", "signal", "add", "fetch_add"):
            ours = times[name, 8, target]
            results.append(Result(f"{name} to a PE {target}", median(ours) / median(base), 2.0, at_least=False,
                                  ours=median(ours), theirs=median(base), unit="ns", samples=[ours, base]))
    awake = times["put_signal", 64, "awake"]
    results.append(Result("put_signal of 64 B to a PE that is awake", median(awake), 40.0, at_least=False, unit="ns",
                          samples=awake))
    return results


def many_pes(settings):
    """256 PEs as processes: from the launch to the end of their first barriers."""
    del settings  # once says enough
    command = [program("weft-run"), "-n", "256", "--", program("weft-perf"), "barrier_latency", "-n", "1", "-w", "0"]
    start = time.monotonic()
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Missing(f"256 PEs: {done.stderr.strip()[-300:]}")
    seconds = time.monotonic() - start
    return [Result("launch, init, barriers, end", seconds, 20, at_least=False, unit="s"),
            Result("memory of a PE beyond its heap", memory_of_a_pe(256) / M, 24, at_least=False, unit="MiB")]


def memory_of_a_pe(pe_count):
    """Bytes: the mean over all PEs of what is theirs alone and of their share in what is not (PSS), without shared
    memory, which is the heaps. The largest of several looks while they run."""
    command = [program("weft-run"), "-n", pe_count, "--", program("weft-perf"), "barrier_latency", "--duration", "5"]
    job = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    largest = 0
    while job.poll() is None:
        sizes = [size for size in map(private_bytes, descendants_of(job.pid)) if size]
        if len(sizes) == pe_count:
            largest = max(largest, sum(sizes) / pe_count)
        time.sleep(1)
    if job.returncode != 0 or not largest:
        raise Missing(f"{pe_count} PEs: no look at all of them at once")
    return largest


def descendants_of(pid):
    """weft-run has an agent on each host, which has the PEs."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return children + [grandchild for child in children for grandchild in descendants_of(child)]


def private_bytes(pid):
    """Pss_Anon + Pss_File; 0 if the process is gone, or is not a PE yet."""
    try:
        if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "weft-perf":
            return 0
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0
    fields = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    # A process that is ending has no memory any more, and so no lines.
    return (fields.get("Pss_Anon", 0) + fields.get("Pss_File", 0)) << 10


ROWS = {
    "node_local_small": ("node-local put + quiet, get, fetch_add of 8 B, against oshmem over UCX", small_operations),
    "node_local_large": ("node-local puts, against oshmem over UCX and memcpy", large_puts),
    "node_sleepers": ("signals and atomics of 8 B to a PE of the node that sleeps, against put + quiet", sleepers),
    "many_pes": ("256 PEs as processes", many_pes),
}
