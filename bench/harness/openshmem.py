"""Rows of OpenSHMEM programs: the same source built against Weft and against OpenMPI, and many-to-many reads against
libfabric's shm provider."""
import pathlib
import shutil
import subprocess

from .places import BIN, Missing, ROOT, json_lines, lab, median, program
from .report import Result

K, M = 1 << 10, 1 << 20
PERF = ROOT / "bench"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"]
# Without ^patcher OpenMPI 4.1.4's memory hooks end in a segmentation fault on Debian 12.
OSHRUN = ["oshrun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "--mca", "spml", "ucx", "--mca", "memory", "^patcher",
          "-x", "SHMEM_SYMMETRIC_SIZE=256M"]


def build(compiler, source, name, *flags):
    """`compiler` is a path of ours or a command of OpenMPI's."""
    path = shutil.which(str(compiler))
    if path is None or ("/" not in str(compiler) and pathlib.Path(path).resolve().parent == BIN.resolve()):
        raise Missing(f"{compiler} is not here; build the release preset, install openmpi-bin and libopenmpi-dev")
    binary = ROOT / "build" / name
    subprocess.run([str(compiler), "-O2", *flags, str(PERF / source), "-o", str(binary)], check=True)
    return binary


def values(command, environment=None):
    """{(what, size): value} of a program that prints one JSON line a value."""
    return {(line["what"], line["size"]): line["value"] for line in json_lines(command, environment)}


def in_turn(settings, sides):
    """{side: {key: [values]}} of {side: function that measures}, alternating."""
    samples = {side: {} for side in sides}
    for _ in range(settings.runs):
        for side, measure in sides.items():
            for key, value in measure().items():
                samples[side].setdefault(key, []).append(value)
    return samples


def compared(samples, keys, label, reach=1.0, faster_is="higher", unit=""):
    """Results of two sides, ours and theirs; above `reach` is ahead."""
    results = []
    for key in keys:
        ours, theirs = samples["ours"][key], samples["theirs"][key]
        ratio = median(ours) / median(theirs)
        results.append(Result(label(key), ratio if faster_is == "higher" else 1 / ratio, reach, ours=median(ours),
                              theirs=median(theirs), unit=unit, samples=[ours, theirs]))
    return results


def shmem_sides():
    ours = build(BIN / "oshcc", "oshmem_latency.c", "oshmem_latency_weft")
    theirs = build("oshcc", "oshmem_latency.c", "oshmem_latency")
    return {"ours": lambda: values([program("weft-run"), "-n", 2, "--bind", "core", "--", ours]),
            "theirs": lambda: values([*OSHRUN, "-n", "2", theirs])}


def shmem_small(settings):
    samples = in_turn(settings, shmem_sides())
    keys = [("put_quiet", 8), ("get", 8), ("fetch_add", 8)]
    return compared(samples, keys, lambda key: key[0], faster_is="lower", unit="µs")


def shmem_sizes(settings):
    samples = in_turn(settings, shmem_sides())
    keys = sorted(key for key in samples["ours"] if key[1] > 8 and key[0] != "put_rate")
    return compared(samples, [("put_rate", 4 * K)], lambda key: "put_rate, 4 KiB", unit="M/s") + compared(
        samples, keys, lambda key: f"{key[0]}, {key[1] // K} KiB", unit="GB/s")


def shmem_collectives(settings):
    """Four PEs on the cores that there are: both sides over active sets, which OpenMPI has."""
    ours = build(BIN / "oshcc", "collectives_latency.c", "collectives_latency_sets", "-DWITH_ACTIVE_SETS")
    theirs = build("oshcc", "collectives_latency.c", "collectives_latency_oshmem", "-DWITH_ACTIVE_SETS")
    unbound = [word if word != "core" else "none" for word in OSHRUN]
    sides = {"ours": lambda: values([program("weft-run"), "-n", 4, "--", ours]),
             "theirs": lambda: values([*unbound, "-n", "4", theirs])}
    samples = in_turn(settings, sides)
    return compared(samples, sorted(samples["ours"]), lambda key: f"{key[0]}, 4 PEs, {key[1] // K} KiB", faster_is="lower", unit="µs")


def collective_sides(pe_count, what):
    ours = build(BIN / "oshcc", "collectives_latency.c", "collectives_latency_weft")
    theirs = build("mpicc", "collectives_latency.c", "collectives_latency_mpi", "-DWITH_MPI")
    heap = {"WEFT_HEAP_SIZE": "600M"}
    return {"ours": lambda: values([program("weft-run"), "-n", pe_count, "--", ours, what], heap),
            "theirs": lambda: values([*MPIRUN, "-n", str(pe_count), theirs, what])}


def barriers(settings):
    results = []
    for pe_count in (2, 8, 32):
        samples = in_turn(settings, collective_sides(pe_count, "barrier"))
        results += compared(samples, [("barrier", 0)], lambda key, n=pe_count: f"{n} PEs", faster_is="lower", unit="µs")
    return results


def collectives(settings):
    results = []
    for pe_count in (2, 8):
        samples = in_turn(settings, collective_sides(pe_count, "all"))
        keys = sorted(key for key in samples["ours"] if key[1] > 0)
        results += compared(samples, keys, lambda key, n=pe_count: f"{key[0]}, {n} PEs, {key[1]} B", faster_is="lower",
                            unit="µs")
    return results


READS = ("all_get_all", "all_get_all_aggregate", "exchange_get", "exchange_get_aggregate")


def reads(settings, way, reach_all, reach_pairs):
    """Reads per second of all PEs together."""
    results = []
    for pe_count in (4, 8):
        sides = {"ours": lambda n=pe_count: values([program("weft-run"), "-n", n, "--", program("node_get_all"), K, 4 * K],
                                                   {"WEFT_NODE_LOCAL": way}),
                 "theirs": lambda n=pe_count: values([program("raw_get_all"), n, K, 4 * K])}
        samples = in_turn(settings, sides)
        for what in READS:
            results += compared(samples, [(what, K), (what, 4 * K)],
                                lambda key, n=pe_count: f"{key[0]}, {n} PEs, {key[1] // K} KiB",
                                reach=reach_all if what.startswith("all") else reach_pairs, unit="reads/s")
    return results


def reads_mapped(settings):
    return reads(settings, "mapped", 3.0, 3.0)


def reads_cma(settings):
    return reads(settings, "cma", 1.3, 1.0)


def check_levels(settings):
    """What WEFT_CHECK_LEVEL=1 (the default) and 2 cost over 0."""
    ours = build(BIN / "oshcc", "oshmem_latency.c", "oshmem_latency_weft")
    command = [program("weft-run"), "-n", 2, "--bind", "core", "--", ours]
    sides = {level: lambda level=level: values(command, {"WEFT_CHECK_LEVEL": level}) for level in "012"}
    samples = in_turn(settings, sides)
    return [Result(f"{what}, level {level}", median(samples[level][what, 8]) / median(samples["0"][what, 8]), limit,
                   at_least=False, ours=median(samples[level][what, 8]), theirs=median(samples["0"][what, 8]),
                   unit="µs", samples=[samples[level][what, 8], samples["0"][what, 8]])
            for level, limit in (("1", 1.2), ("2", 200)) for what in ("put_quiet", "get", "fetch_add")]


def lab_collectives(settings):
    """Collectives of 2 hosts x 2 PEs with 4 rails: the time that the rails need at least, over the time taken."""
    results = []
    # Bytes that each host must send for one call over `size`, which for all-to-all and fcollect is
    # that of the blocks of all four PEs.
    least = {"alltoall": lambda size: size, "fcollect": lambda size: size / 2, "broadcast": lambda size: size,
             "reduction": lambda size: size}
    rate = 4 * 100e6 / 8 * 1448 / 1514
    with lab(nics=4, rate="100mbit") as place:
        for name, needed in least.items():
            size = 4 * M  # blocks of 1 MiB
            runs = [place.perf(4, name, "-b", size, "-e", size, "-n", 20, "-w", 2) for _ in range(settings.runs)]
            times = [run.value() * 1e-6 for run in runs]
            share = needed(size) / rate / median(times)
            results.append(Result(f"{name}: share of the rails", share, 0.9, ours=median(times) * 1e3, unit="ms",
                                  samples=times))
            for direction in ("rx", "tx"):
                samples = [run.balance_ratio(direction) for run in runs]
                results.append(Result(f"{name}: {direction.upper()} max/mean", median(samples), 1.05, at_least=False,
                                      samples=samples))
    return results


ROWS = {
    "shmem_small": ("shmem.h: put + quiet, get, fetch_add of 8 B, against OpenMPI's oshmem", shmem_small),
    "shmem_sizes": ("shmem.h: put and get by size, against OpenMPI's oshmem", shmem_sizes),
    "shmem_collectives": ("shmem.h: barrier and fcollect of 4 PEs, against OpenMPI's oshmem", shmem_collectives),
    "barriers": ("barrier_all, against MPI_Barrier over shared memory", barriers),
    "collectives": ("collectives by size, against MPI's over shared memory", collectives),
    "reads_mapped": ("reads through mapped memory, against libfabric's shm provider", reads_mapped),
    "reads_cma": ("reads by cross-memory attach, against libfabric's shm provider", reads_cma),
    "check_levels": ("8 B operations by WEFT_CHECK_LEVEL, against level 0", check_levels),
    "lab_collectives": ("collectives of 2 hosts x 2 PEs over 4 rails of 100 Mbit/s, 4 MiB", lab_collectives),
}
