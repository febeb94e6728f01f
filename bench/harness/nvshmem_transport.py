"""`scripts/bench nvshmem`: remote transports of NVSHMEM on emulated EFA, Weft's and NVIDIA's in turn; the table of
docs/NVSHMEM.md. No GPU and no NVSHMEM: a fake host's proxy thread drives each (bench/nvshmem_transport_rate.cpp).

NVIDIA's come from its wheels, in folders named with --nvidia or beside this Python's nvidia.nvshmem. A transport that
cannot run here is left out, with the line that says why.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field

from .emulated_faults import JOB, Broken
from .places import SECRET, Missing, json_lines, program
from .report import Log, Result

NAME = "nvshmem_transport_libfabric.so."
NICS = 4  # of each PE
RELEASES = {3: "3.4.5", 4: "3.5.21", 5: "3.6.5", 6: "3.7.2", 7: "3.8.0"}


@dataclass(frozen=True)
class Side:
    """A transport, as the fake host loads it."""

    name: str
    interface: int = 7
    folder: pathlib.Path | None = None  # None: Weft's
    environment: dict = field(default_factory=dict, hash=False)

    def words(self):
        return ["--interface", self.interface, *(["--folder", self.folder] if self.folder else [])]


@dataclass(frozen=True)
class Row:
    """One pattern on one fabric; the figure is a share of the receiving NICs' rate, or operations per second."""

    name: str
    says: str
    nodes: int
    pes_per_node: int
    gbits: float
    pattern: str
    reach: float | None
    counts_operations: bool = False
    only_ours: tuple = ("Weft",)  # beside NVIDIA's: sides of Weft that say something here

    def command(self, board, side, seconds):
        fabric = ["--nodes", self.nodes, "--pes-per-node", self.pes_per_node, "--nics", NICS, "--persona", "efa", "--gbits", self.gbits]
        return [program("loom"), "run", *fabric, "--job", JOB, "--", program("nvshmem_transport_rate"), *self.pattern.split(), "--seconds", seconds,
                "--board", board, *side.words()]

    def run(self, side, seconds):
        """The figure, and what the program printed."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {"WEFT_JOB_SECRET": SECRET, "LOOM_DIR": folder} | side.environment
            line = json_lines(self.command(f"{folder}/board", side, seconds), environment)[-1]
        if self.counts_operations:
            return line["steps"] / line["seconds"] / 1e6, line
        return line["received"] / line["seconds"] / (NICS * self.gbits * 1e9 / 8), line


OURS = ("Weft", "Weft by interface 5", "Weft, rule of 3.6.5")
ROWS = [
    Row("alltoall_512k", "all-to-all, 2 nodes x 4 PEs x 4 NICs of 0.1 Gbit/s, 512 KiB a peer: share", 2, 4, 0.1,
        "alltoall --bytes 524288", 0.92, only_ours=OURS),
    Row("alltoall_64k", "the same, 64 KiB a peer: share", 2, 4, 0.1, "alltoall --bytes 65536", 0.85, only_ours=OURS),
    Row("alltoall_512k_slower", "the same with NICs of 0.02 Gbit/s, 512 KiB a peer: share", 2, 4, 0.02, "alltoall --bytes 524288", 0.92,
        only_ours=OURS[::2]),
    Row("alltoall_64k_slower", "the same, 64 KiB a peer: share", 2, 4, 0.02, "alltoall --bytes 65536", 0.85, only_ours=OURS[::2]),
    Row("eight_512k", "8 nodes x 1 PE, NICs of 0.1 Gbit/s, 512 KiB a peer: share", 8, 1, 0.1, "alltoall --bytes 524288", 0.92,
        only_ours=("Weft", "Weft, rule of 3.6.5")),
    Row("put_bw", "put_bw of 1 MiB, PE to PE, 4 NICs of 1 Gbit/s: share", 2, 1, 1, "put_bw --bytes 1048576", 0.95),
    Row("put_signals", "put_signals of 64 B, PE to PE, NICs of 100 Gbit/s, a quiet after 16,384", 2, 1, 100,
        "put_signal_rate --bytes 64 --window 16384", 1, counts_operations=True),
    Row("put_signals_1k", "the same, a quiet after 1,024", 2, 1, 100, "put_signal_rate --bytes 64 --window 1024", None,
        counts_operations=True),
]


def faulty(name, says, event, reach, at_least):
    """A row of emulated_faults with the plugin's put_bw as its job."""
    row = next(row for row in ROWS if row.name == "put_bw")
    side = Side("Weft")
    return Broken(name, says, event, reach, at_least, "" if event == "slow_rate" else "s",
                  program=lambda folder, seconds: [*row.command(f"{folder}/board", side, seconds), "--window", 64])


FAULTS = [
    faulty("slow_nic", "put_bw, one of 4 NICs at a quarter of its rate, from 2 s on: share of what is left", "slow_rate", 0.9, True),
    faulty("cut_nic", "put_bw, one of 4 NICs cut: time until 0.9 of what is left", "cut", 1, False),
    faulty("heal_nic", "that NIC healed after 4 s: time until 0.9 of four NICs", "heal", 1, False),
]


def sides_of_weft():
    return [Side("Weft"), Side("Weft by interface 5", 5),
            Side("Weft, rule of 3.6.5", environment={"WEFT_RAIL_POLICY": "coupled"})]


def folders_of_nvidia(named):
    if named:
        return named
    found = importlib.util.find_spec("nvidia.nvshmem") if importlib.util.find_spec("nvidia") else None
    return [pathlib.Path(place) / "lib" for place in found.submodule_search_locations] if found else []


def sides_of_nvidia(named, libfabric):
    environment = {"NVSHMEM_LIBFABRIC_PROVIDER": "efa", "NVSHMEM_DISABLE_GDRCOPY": "1"}
    if libfabric:
        environment["LD_LIBRARY_PATH"] = str(libfabric.parent)
    sides = []
    for folder in folders_of_nvidia(named):
        for file in sorted(folder.glob(NAME + "*")):
            interface = int(file.name.removeprefix(NAME))
            sides.append(Side(f"NVIDIA {RELEASES.get(interface, interface)}", interface, folder, environment))
    return sides


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench nvshmem", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the rows and what each measures")
    parser.add_argument("--runs", type=int, default=3, help="runs of each side, in turn; the median counts (default: 3)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default: 3)")
    parser.add_argument("--rest", type=float, default=0.3, help="begin a run when others use no more cores than that (default: 0.3)")
    parser.add_argument("--patience", type=float, default=60, help="or after so many seconds (default: 60)")
    parser.add_argument("--nvidia", metavar="DIR", type=pathlib.Path, action="append",
                        help=f"a folder with NVIDIA's {NAME}N; may be repeated (default: that of this Python's nvidia.nvshmem)")
    parser.add_argument("--libfabric", metavar="FILE", type=pathlib.Path, help="libfabric.so.1 of all sides (default: the system's)")
    parser.add_argument("rows", metavar="ROW", nargs="*", help="only these (default: all)")
    return parser.parse_args(arguments)


def why(text):
    """What the program itself said, once; else the last that anybody said."""
    lines = text.splitlines()
    said = [line.split("nvshmem_transport_rate: ", 1)[1] for line in lines if "nvshmem_transport_rate: in " in line]
    return said[0] if said else lines[-1]


def cores_in_use(seconds=1):
    """By others, while nothing of this is running."""
    def times():
        with open("/proc/stat", encoding="utf-8") as file:
            values = [int(word) for word in file.readline().split()[1:]]
        return values[3] + values[4], sum(values)

    (idle, total), _ = times(), time.sleep(seconds)
    idle_then, total_then = times()
    return round((1 - (idle_then - idle) / max(total_then - total, 1)) * os.cpu_count(), 2)


def wait_for_rest(settings):
    """Until the others leave enough of the machine; what they use then."""
    end = time.monotonic() + settings.patience
    while (used := cores_in_use()) > settings.rest and time.monotonic() < end:
        pass
    return used


def measure(row, sides, settings, stopped):
    """{side: [(figure, what was printed)]}, all sides in each run; a side that fails once is left out from then on."""
    measured = {}
    for _ in range(settings.runs):
        for side in sides:
            if side.name in stopped:
                continue
            used = wait_for_rest(settings)
            try:
                value, more = row.run(side, settings.seconds)
            except Missing as missing:
                stopped[side.name] = why(str(missing))
                print(f"{side.name} is left out: {stopped[side.name]}", file=sys.stderr)
            else:
                measured.setdefault(side.name, []).append((value, more | {"cores_of_others": used}))
    return measured


def add(log, row, result, settings, measured, stopped):
    log.add(row, result, emulated=True, sides={name: [value for value, _ in runs] for name, runs in measured.items()},
            details={name: [more for _, more in runs] for name, runs in measured.items()}, stopped=stopped)
    sign = "≥" if result.at_least else "≤"
    verdict = "" if result.reach is None else f"{sign} {result.reach:g}{'' if result.is_reached() else ' **no**'}"
    others = "; ".join(f"{name} {statistics.median(value for value, _ in runs):.3f}" for name, runs in measured.items() if name != "Weft")
    print(f"| {row.says} | {result.value:.3f}{' ' + result.unit if result.unit else ''} | {verdict} | {others} |", flush=True)


def main(arguments):
    settings = parse_arguments(arguments)
    known = {row.name: row for row in [*ROWS, *FAULTS]}
    if unknown := [name for name in settings.rows if name not in known]:
        sys.exit(f"scripts/bench: no row {', '.join(unknown)}; scripts/bench nvshmem --list shows them")
    if settings.list:
        print("\n".join(f"{row.name:<16} {row.says}" for row in known.values()))
        return 0
    if settings.libfabric:
        os.environ["WEFT_LIBFABRIC"] = str(settings.libfabric)
    theirs, stopped = sides_of_nvidia(settings.nvidia, settings.libfabric), {}
    if not theirs:
        print("NVIDIA's transports are not measured: install the wheel nvidia-nvshmem-cu12 or name its lib folder with --nvidia", file=sys.stderr)
    log = Log(settings, "-nvshmem-transport")
    print("| emulated | Weft | target | others |\n|---|---|---|---|")
    for row in [known[name] for name in settings.rows or known]:
        if isinstance(row, Broken):
            measured = {"Weft": [(wait_for_rest(settings), row.run(settings.seconds))[1] for _ in range(settings.runs)]}
        else:
            ours = [side for side in sides_of_weft() if side.name in row.only_ours]
            measured = measure(row, [*ours, *theirs], settings, stopped)
        if "Weft" not in measured:
            continue
        samples = [value for value, _ in measured["Weft"]]
        unit = "M/s" if getattr(row, "counts_operations", False) else getattr(row, "unit", "")
        result = Result(what=row.says, value=statistics.median(samples), reach=row.reach, at_least=getattr(row, "at_least", True),
                        unit=unit, samples=samples)
        add(log, row, result, settings, measured, stopped)
    print(f"data: {log.path}", file=sys.stderr)
    return 0
