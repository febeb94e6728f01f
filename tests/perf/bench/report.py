"""What becomes of results: JSON lines as data, and lines of the table in docs/PERFORMANCE.md."""
import datetime
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field

from .places import ROOT

TABLE_HEAD = ["| measured | Weft | compared with | ratio or value | reach | |", "|---|---|---|---|---|---|"]


@dataclass
class Result:
    """One comparison. `value` is what the target speaks of: a ratio, or a figure of its own."""

    what: str
    value: float
    reach: float
    at_least: bool = True  # False: the target is an upper bound
    ours: float | None = None
    theirs: float | None = None
    unit: str = ""
    samples: list = field(default_factory=list)

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
    """Appends to docs/data/DATE-MACHINE.jsonl. The machine is named by its kind, not by its host name."""

    def __init__(self):
        self.machine = {"cpu": processor(), "cores": os.cpu_count(), "uname": " ".join(platform.uname()[::2][:2])}
        self.versions = versions()
        date = datetime.date.today().isoformat()
        self.path = ROOT / "docs" / "data" / f"{date}-{platform.machine()}-{os.cpu_count()}-cores.jsonl"

    def add(self, row, result):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        line = {"row": row.name, **asdict(result), "reached": result.is_reached(), "date": now,
                "machine": self.machine, "versions": self.versions}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def number(value, unit):
    return "" if value is None else f"{value:.4g} {unit}".strip()


def table_line(row, result):
    sign = "≥" if result.at_least else "≤"
    reached = "yes" if result.is_reached() else "**no**"
    return (f"| {row.says}: {result.what} | {number(result.ours, result.unit)} | {number(result.theirs, result.unit)} "
            f"| {result.value:.3f} | {sign} {result.reach:g} | {reached} |")
