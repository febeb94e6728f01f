"""`scripts/bench emulated`: Weft on emulated NICs (loom/), the rows of docs/LOOM.md. Not a measurement of EFA or Slingshot.

Rates are scaled down, so that two cores can move the bytes; shares of the rails and max/mean are what carries over.
"""
import argparse
import os
import statistics
import sys
from dataclasses import dataclass

from . import emulated_faults, emulated_gpu, emulated_pages
from .places import SECRET, Perf, json_lines, program
from .report import Log, Result


@dataclass(frozen=True)
class Emulated:
    """One row: the fabric, what runs on it, and the figure that is looked at."""

    name: str
    says: str
    fabric: str
    perf: str
    figure: str = "share"  # or "rate": the value of the last row, 1/s; "load": of one PE's NICs; "rx", "tx": max/mean
    gbits: float = 0  # of one PE's NICs together: for "load"
    reach: float | None = None
    at_least: bool = True
    unit: str = ""

    def command(self, seconds):
        return [program("loom"), "run", *self.fabric.split(), "--", program("weft-perf"),
                *self.perf.format(seconds=seconds).split(), "--json"]

    def run(self, seconds):
        """The figure, and what else goes into the data."""
        measured = Perf(json_lines(self.command(seconds), {"WEFT_JOB_SECRET": SECRET}))
        if self.figure == "rate":
            return measured.value() / 1e6, {}
        if self.figure == "load":
            return measured.value() * measured.value("size") * 8 / (self.gbits * 1e9), {"per_second": measured.value()}
        if self.figure == "share":
            return measured.balance["share_of_rails"], {}
        return measured.balance_ratio(self.figure), {}


TWO_PES = "--nodes 2 --nics 4 --persona efa --gbits"
TWO_BY_FOUR = "--nodes 2 --pes-per-node 4 --nics 4 --persona efa --gbits 0.1"
EIGHT_BY_ONE = "--nodes 8 --nics 4 --persona efa --gbits 0.1"
STEP = "alltoall_latency -b {size} -e {size} --duration {{seconds}}"
LARGE, SMALL = STEP.format(size="4M"), STEP.format(size="512K")  # 512 KiB and 64 KiB to each of 8 PEs

ROWS = [
    Emulated("put_bw_1", "put_bw, 2 PEs x 4 NICs of 1 Gbit/s: share", f"{TWO_PES} 1",
             "put_bw -b 1M -e 1M --duration {seconds}", reach=0.98),
    Emulated("put_bw_4", "put_bw, 2 PEs x 4 NICs of 4 Gbit/s: share", f"{TWO_PES} 4",
             "put_bw -b 1M -e 1M --duration {seconds}", reach=0.97),
    Emulated("single", "all-to-all, 2 nodes x 4 PEs x 4 NICs, 512 KiB a peer, `single`: share", TWO_BY_FOUR,
             f"{LARGE} --policy single", reach=0.26, at_least=False),
    Emulated("coupled", "the same, `coupled`: share", TWO_BY_FOUR, f"{LARGE} --policy coupled", reach=0.27, at_least=False),
    Emulated("coupled_rx", "the same, `coupled`: RX max/mean", TWO_BY_FOUR, f"{LARGE} --policy coupled", "rx", reach=3.9),
    Emulated("offset", "the same, `offset`: share", TWO_BY_FOUR, f"{LARGE} --policy offset", reach=0.90),
    Emulated("default", "the same, default: share", TWO_BY_FOUR, LARGE, reach=0.95),
    Emulated("default_4_steps", "the same, 4 steps between quiets, default: share", TWO_BY_FOUR, f"{LARGE} --window 4"),
    Emulated("default_64k", "64 KiB a peer, default: share", TWO_BY_FOUR, SMALL, reach=0.90),
    Emulated("offset_64k", "64 KiB a peer, `offset`: share", TWO_BY_FOUR, f"{SMALL} --policy offset"),
    Emulated("eight_offset", "8 nodes x 1 PE, 512 KiB a peer, `offset`: share", EIGHT_BY_ONE, f"{LARGE} --policy offset"),
    Emulated("eight", "8 nodes x 1 PE, 512 KiB a peer, default: share", EIGHT_BY_ONE, LARGE, reach=0.95),
    Emulated("eight_64k", "8 nodes x 1 PE, 64 KiB a peer, default: share", EIGHT_BY_ONE, SMALL, reach=0.90),
    Emulated("signals", "2 x 4, 512 KiB and a signal in turn, default: share", TWO_BY_FOUR, f"{LARGE} --alternate-signal",
             reach=0.95),
    Emulated("pareto", "2 x 4, Pareto sizes (alpha 1.2) up to 512 KiB, 16 steps between quiets, default: share", TWO_BY_FOUR,
             f"{LARGE} --sizes pareto:1.2:1 --window 16", reach=0.95),
    Emulated("put_signal", "put_signals of 64 B to one peer, a quiet after 1,024, NICs of 100 Gbit/s", f"{TWO_PES} 100",
             "put_signal_rate -b 64 -e 64 -n 262144 --duration {seconds}", "rate", reach=5, unit="M/s"),
    Emulated("put_signal_16k", "the same, a quiet after 16,384", f"{TWO_PES} 100",
             "put_signal_rate -b 64 -e 64 -n 262144 --window 16384 --duration {seconds}", "rate", reach=5, unit="M/s"),
    Emulated("put_signal_7", "the same, to 7 peers in turn", "--nodes 8 --nics 4 --persona efa --gbits 100",
             "put_signal_rate -b 64 -e 64 -n 262144 --window 16384 --pattern alltoall --duration {seconds}", "rate", reach=3,
             unit="M/s"),
    Emulated("put_signal_7k", "put_signals of 7 KiB to one peer, 4 NICs of 1 Gbit/s: of what they carry", f"{TWO_PES} 1",
             "put_signal_rate -b 7K -e 7K -n 20000 --duration {seconds}", "load", gbits=4, reach=0.95),
    Emulated("cxi", "put_bw on `cxi`, 2 PEs x 4 NICs of 1 Gbit/s: share",
             "--nodes 2 --nics 4 --persona cxi --gbits 1", "put_bw -b 1M -e 1M --duration {seconds} --nic-rate 1gbit", reach=0.97),
    *emulated_faults.ROWS,
    *emulated_pages.ROWS,
    *emulated_gpu.ROWS,
]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench emulated", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the rows and what each measures")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row; the median counts (default: 3)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default: 3)")
    parser.add_argument("rows", metavar="ROW", nargs="*", help="only these (default: all, without a GPU those that need none)")
    return parser.parse_args(arguments)


def rows_of_machine():
    gpus = emulated_gpu.gpu_count()
    needs = {emulated_gpu.OnGpu: 2, emulated_gpu.PagedOnGpu: 1}
    return [row.name for row in ROWS if gpus >= needs.get(type(row), 0)]


def main(arguments):
    settings = parse_arguments(arguments)
    known = {row.name: row for row in ROWS}
    if unknown := [name for name in settings.rows if name not in known]:
        sys.exit(f"scripts/bench: no row {', '.join(unknown)}; scripts/bench emulated --list shows them")
    if settings.list:
        print("\n".join(f"{row.name:<22} {row.says}" for row in ROWS))
        return 0
    log = Log(settings, "-emulated")
    print("| emulated | value | target | |\n|---|---|---|---|")
    for row in [known[name] for name in settings.rows or rows_of_machine()]:
        runs = [row.run(settings.seconds) for _ in range(settings.runs)]
        samples = [value for value, _ in runs]
        drawn = [more.pop("drawn", []) for _, more in runs]  # the first run's is enough for a picture
        emulated_pages.write(log.path.with_name(f"{log.path.stem}-pages.jsonl"), drawn[0])
        median = statistics.median(samples)
        result = Result(what=row.says, value=median, reach=row.reach, at_least=row.at_least, unit=row.unit, samples=samples)
        command = " ".join(os.path.basename(str(part)) for part in row.command(settings.seconds))
        log.add(row, result, emulated=True, command=command, details=[more for _, more in runs if more])
        sign = "≥" if row.at_least else "≤"
        target = "" if row.reach is None else f"{sign} {row.reach:g}"
        verdict = "" if row.reach is None else "yes" if result.is_reached() else "**no**"
        print(f"| {row.says} | {median:.3f}{' ' + row.unit if row.unit else ''} | {target} | {verdict} |", flush=True)
    print(f"data: {log.path}", file=sys.stderr)
    return 0
