"""Rows of `scripts/bench emulated` for paged_write: as in "Harnessing 3200 Gbps Network" (libfabric-efa-demo), a node
with 32 NICs has its memory filled with pages in random order, by one PE with all NICs and by 8 PEs with 4 each.

The first packet between two NICs costs FIRST_PACKET_US, an assumption: so the run without warm-up shows what one
with it has paid before. The first 100 ms of the first run go into a file of their own, for the picture."""
import json
from dataclasses import dataclass

from .places import SECRET, Perf, json_lines, program

FIRST_PACKET_US = 10_000
STEP_MS = 10
FIRST_MS = 100
PAGES = "-b 16K -e 16K -n 3 --window 16384 --interval {step}"


@dataclass(frozen=True)
class Paged:
    """`run` gives the share of the NICs, and the throughput over the first 100 ms."""

    name: str
    says: str
    fabric: str
    perf: str
    warmup: str
    place: str
    reach: float = 0.97
    at_least: bool = True
    unit: str = ""

    def command(self, _seconds):
        return [program("loom"), "run", *self.fabric.split(), "--gbits", "0.1", "--persona", "efa",
                "--first-packet-us", FIRST_PACKET_US, "--", program("weft-perf"), "paged_write",
                *PAGES.format(step=STEP_MS).split(), *self.perf.split(), "--warmup", self.warmup, "--json"]

    def run(self, _seconds):
        lines = json_lines(self.command(_seconds), {"WEFT_JOB_SECRET": SECRET})
        drawn = [self.drawn(line) for line in lines if line.get("table") == "paged_write"]
        drawn = [line for line in drawn if line["time_ms"] <= FIRST_MS]
        return Perf(lines).balance["share_of_rails"], {"drawn": drawn}

    def drawn(self, line):
        """What a picture needs of a line."""
        kept = {name: line[name] for name in ("kind", "table", "size", "value", "unit", "warmup", "pes") if name in line}
        return kept | {"place": self.place, "time_ms": round(line["time_ms"] / STEP_MS) * STEP_MS}


def write(path, drawn):
    if not drawn:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in drawn)


ALONE = "one PE with 32 NICs", "--nodes 2 --nics 32", "--total 256M"
EIGHT = "8 PEs with 4 NICs each", "--nodes 2 --pes-per-node 8 --nics 4", "--total 32M --clients 8"
ROWS = [
    Paged(f"paged_{name}_{warmup}", f"paged_write, {place}, of 0.1 Gbit/s, warm-up {warmup}: share", fabric, perf, warmup, place)
    for name, (place, fabric, perf) in (("1x32", ALONE), ("8x4", EIGHT)) for warmup in ("on", "off")
]
