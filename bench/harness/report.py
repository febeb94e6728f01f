"""What becomes of results: JSON lines as data, and lines of the table in docs/PERFORMANCE.md."""
import datetime
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field

from .places import ROOT

TABLE_HEAD = ["| measured | Weft | compared with | ratio or value | target | |", "|---|---|---|---|---|---|"]


# Sides whose samples differ by more were disturbed: whatever their ratio says, it is no evidence.
SPREAD_MAX = 1.5
RUNS_MIN = 3


def sides_of(samples):
    if samples and isinstance(samples[0], dict):
        return [side for sample in samples for side in sample.values()]
    return samples if samples and isinstance(samples[0], list) else [samples]


@dataclass
class Result:
    """One comparison. `value` is what the target speaks of: a ratio, or a figure of its own."""

    what: str
    value: float
    reach: float | None  # None: nothing is aimed at
    at_least: bool = True  # False: the target is an upper bound
    ours: float | None = None
    theirs: float | None = None
    unit: str = ""
    control: float | None = None  # what the same measures where it must fail
    samples: list = field(default_factory=list)  # numbers of one side, or [ours, theirs], or [{side: numbers}]
    in_time: list = field(default_factory=list)  # Perf.in_time() of each run, for the data alone

    def spread(self):
        """The largest max/min of a side's samples; 1 where there is only one."""
        ratios = [max(side) / min(side) for side in sides_of(self.samples) if len(side) > 1 and min(side) > 0]
        return max(ratios, default=1.0)

    def can_tell(self):
        """An upper bound that its control keeps as well says nothing."""
        return self.control is None or self.control > self.reach

    def is_steady(self):
        return self.spread() <= SPREAD_MAX

    def is_reached(self):
        return self.value >= self.reach if self.at_least else self.value <= self.reach


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(": ", 1)[1].strip() for line in file if line.startswith("model name") and ": " in line]
    return names[0] if names else platform.processor()


def versions():
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    fabric = subprocess.run(["pkg-config", "--modversion", "libfabric"], capture_output=True, text=True)
    return {"commit": commit.stdout.strip(), "libfabric": fabric.stdout.strip(), "kernel": platform.release()}


class Log:
    """Appends to bench/data/DATE-MACHINE[-KIND].jsonl. The machine is named by its kind, not by its host name."""

    def __init__(self, settings, kind=""):
        self.settings = settings
        self.machine = {"cpu": processor(), "cores": os.cpu_count(), "uname": " ".join(platform.uname()[::2][:2])}
        self.versions = versions()
        date = datetime.date.today().isoformat()
        self.path = ROOT / "bench" / "data" / f"{date}-{platform.machine()}-{os.cpu_count()}-cores{kind}.jsonl"

    def add(self, row, result, **more):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        line = {"row": row.name, **asdict(result), "reached": verdict(result, self.settings), "spread": result.spread(), "date": now,
                "runs": self.settings.runs, "seconds": self.settings.seconds,
                "machine": self.machine, "versions": self.versions, **more}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def number(value, unit):
    return "" if value is None else f"{value:.4g} {unit}".strip()


def verdict(result, settings):
    """A comparison counts only if it was repeated and its samples agree."""
    if settings.runs < RUNS_MIN:
        return f"not repeated ({settings.runs} of {RUNS_MIN} runs)"
    if not result.can_tell():
        return f"cannot tell (the control gives {result.control:.2f})"
    if not result.is_steady():
        return f"unsteady (samples differ {result.spread():.1f} times)"
    if result.reach is None:
        return ""
    return "yes" if result.is_reached() else "no"


def table_line(row, result, settings):
    aim = "" if result.reach is None else f"{'≥' if result.at_least else '≤'} {result.reach:g}"
    reached = verdict(result, settings)
    return (f"| {row.says}: {result.what} | {number(result.ours, result.unit)} | {number(result.theirs, result.unit)} "
            f"| {result.value:.3f} | {aim} | {reached} |")
