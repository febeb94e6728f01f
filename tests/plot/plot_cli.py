"""weft-plot as a user runs it, for the tests of this folder."""
import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from weft_plot.cli import main

PROJECT = Path(__file__).resolve().parents[2]
PLOT = PROJECT / "tools" / "plot" / "weft-plot"
DATA = PROJECT / "bench" / "data"
GPU_FILES = [DATA / "2026-11-21-4-h200-weft.jsonl", DATA / "2026-11-21-4-h200-peers.jsonl"]
BENCH_FILE = DATA / "2026-11-22-x86_64-2-cores.jsonl"
TRAFFIC_FILE = DATA / "2026-11-21-x86_64-2-cores-traffic.jsonl"


@dataclass
class Done:
    status: int
    output: str
    errors: str

    def figures(self):
        """The names that --list printed."""
        return [line.split()[0] for line in self.output.splitlines()]


def plot(*words, text=None, **environment):
    """Runs weft-plot: in this process, where an exception fails the test; with an environment of its own in another."""
    if not environment:
        return in_this_process([*map(str, words)], text)
    done = subprocess.run([sys.executable, PLOT, *map(str, words)], input=text, env=os.environ | environment,
                          capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def in_this_process(words, text):
    output, errors = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO((text or "").encode()))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), mock.patch("sys.stdin", given):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    return Done(status, output.getvalue(), errors.getvalue())


def row(**more):
    """A line as weft-perf writes it."""
    return {"kind": "row", "table": "put_latency", "subcommand": "put_latency", "size": 8, "value": 2.5, "unit": "us",
            "policy": "balanced", "pes": 2, "nodes": 2, "machine": {"cpu": "x", "cores": 2, "host": "h"},
            "date": "2026-11-21T10:00:00Z", "versions": {"weft": "0.1.0"},
            "command": "bin/weft-perf put_latency -b 8 -e 64 --json"} | more


def write(path, lines):
    """Each of `lines` is an object, or the text of a line."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path
