#!/usr/bin/env python3
"""Puts rows of Weft beside those of its peers: a table in Markdown for each benchmark.

  bench/compare_device.py FILE...
  bench/compare_device.py --cliffs FILE...     Weft's rows that are slower than the next larger size; status 1 if there are any

The files hold JSON lines of bench/device_all and of bench/peers/all, in any order. A row stands for
its benchmark, scope, type and size; of several the fastest counts. Bandwidths are in GB/s, everything else in
microseconds, and the ratio is how many times faster Weft is than the best peer."""
import argparse
import itertools
import json
import sys
from collections import defaultdict

# What NCCL's benchmarks are called here. Its collectives are started by the host: so is Weft on a
# stream.
OF_NCCL = {
    "alltoall": "alltoall", "alltoall_pairs": "alltoall", "allgather": "fcollect", "broadcast": "broadcast",
    "allreduce": "reduction", "reducescatter": "reducescatter",
}
SUFFIXES = ("_device", "_on_stream")
TOLERANCE = 1.05  # two runs of one build differ by as much
# The peers' benchmarks write their names in small letters.
PEERS = {"nvshmem": "NVSHMEM", "nccl": "NCCL"}


def benchmark_of(row):
    """Name and kind of what was measured; scopes of NVSHMEM and Weft are compared one by one."""
    name = row["bench"]
    if row["peer"] == "NCCL":
        return OF_NCCL.get(name, name)
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def scope_of(row):
    """NCCL has no scopes: it stands beside whatever of Weft may take the whole GPU."""
    return "any" if row["peer"] == "NCCL" else row["scope"]


def read(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line) if line.strip() else {}
                if "bench" in row and "peer" in row:
                    yield row | {"peer": PEERS.get(row["peer"], row["peer"])}


def is_bandwidth(row):
    return "gb_per_s" in row and "_bw" in row["bench"]


def value_of(row):
    return row["gb_per_s"] if is_bandwidth(row) else row["latency_us"]


def better(row, other):
    if other is None:
        return row
    return max(row, other, key=value_of) if is_bandwidth(row) else min(row, other, key=value_of)


def collect(rows):
    """{(benchmark, type): {size: {(peer, scope): row}}}"""
    tables = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        cells = tables[benchmark_of(row), row["type"]][row["bytes"]]
        key = row["peer"], scope_of(row)
        cells[key] = better(row, cells.get(key))
    return tables


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def ratio_text(ours, theirs):
    if ours is None or not theirs:
        return ""
    best = theirs[0]
    for row in theirs[1:]:
        best = better(row, best)
    times = value_of(ours) / value_of(best) if is_bandwidth(ours) else value_of(best) / value_of(ours)
    return f"{times:.2f}"


def cell(row):
    if row is None:
        return ""
    wrong = "" if row.get("verified", True) else " (wrong data)"
    return f"{value_of(row):.3g}{wrong}" if value_of(row) < 1000 else f"{value_of(row):.0f}{wrong}"


def print_table(benchmark, by_size, scope):
    lines = []
    for size in sorted(by_size):
        cells = by_size[size]
        ours = cells.get(("Weft", scope))
        nvshmem = cells.get(("NVSHMEM", "block" if scope == "grid" else scope))
        nccl = cells.get(("NCCL", "any")) if scope in ("grid", "stream", "graph") else None
        theirs = [row for row in (nvshmem, nccl) if row is not None]
        if ours is not None:
            lines.append(f"| {size_text(size)} | {cell(ours)} | {cell(nvshmem)} | {cell(nccl)} | "
                         f"{ratio_text(ours, theirs)} |")
    if lines:
        name, kind = benchmark
        sample = next(row for cells in by_size.values() for row in cells.values())
        unit = "GB/s" if is_bandwidth(sample) else "µs"
        print(f"\n### {name}, {kind}, {scope} ({unit}, {sample['pes']} PEs)\n")
        print("| size | Weft | NVSHMEM | NCCL | ratio |\n|---|---|---|---|---|")
        print("\n".join(lines))


def cliffs_of(tables):
    """Sizes that take over TOLERANCE times as long as a larger one: (benchmark, type, scope, size, time, larger size, its time)."""
    cliffs = []
    for (benchmark, kind), by_size in sorted(tables.items()):
        for scope in sorted({scope for cells in by_size.values() for peer, scope in cells if peer == "Weft"}):
            times = [(size, by_size[size]["Weft", scope]["latency_us"]) for size in sorted(by_size)
                     if ("Weft", scope) in by_size[size] and not is_bandwidth(by_size[size]["Weft", scope])]
            for (size, time), (larger, its_time) in itertools.pairwise(times):
                if time > TOLERANCE * its_time:
                    cliffs.append((benchmark, kind, scope, size, time, larger, its_time))
    return cliffs


def print_cliffs(cliffs):
    for benchmark, kind, scope, size, time, larger, its_time in cliffs:
        print(f"{benchmark}, {kind}, {scope}: {size_text(size)} takes {time:.3g} us, {size_text(larger)} {its_time:.3g}")
    return 1 if cliffs else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cliffs", action="store_true")
    parser.add_argument("files", metavar="FILE", nargs="+")
    arguments = parser.parse_args()
    tables = collect(read(arguments.files))
    if not tables:
        sys.exit("compare_device.py: no rows in these files")
    if arguments.cliffs:
        sys.exit(print_cliffs(cliffs_of(tables)))
    for benchmark, by_size in sorted(tables.items()):
        scopes = {scope for cells in by_size.values() for peer, scope in cells if peer == "Weft"}
        for scope in sorted(scopes):
            print_table(benchmark, by_size, scope)


if __name__ == "__main__":
    main()
