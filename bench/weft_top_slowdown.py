#!/usr/bin/env python3
"""How much an application slows down while weft-top watches it: the ratio of its progress with and without, in one run.

Two PEs exchange messages over rails on the loopback device, as fast as they can, for the whole run. weft-top runs
all the while at 10 Hz, but is stopped (SIGSTOP) in half of the phases. Progress is what the PEs' own pages count.
Two neighbouring phases make one ratio, so that slow drifts of the machine cancel. Prints one JSON line; asserts
nothing.

  bench/weft_top_slowdown.py --build release [--phases N] [--phase-s S] [--message SIZE]
"""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOP = ROOT / "tools" / "top"
sys.path.insert(0, str(TOP))

from weft_top import __version__  # noqa: E402: the path above comes first
from weft_top.sources.pages import PageSource  # noqa: E402

PES = 2
START_LIMIT_S = 30
SETTLE_S = 0.3


def start_job(options, pages):
    seconds = options.phases * (options.phase_s + SETTLE_S) + 20
    binaries = ROOT / "build" / options.build / "bin"
    program = [binaries / "weft-perf", "message_rate", "-b", options.message, "-e", options.message]
    command = [binaries / "weft-run", "-n", str(PES), "--", *program, "--duration", str(seconds), "--repeats", "1",
               "--no-counters"]
    environment = os.environ | {"WEFT_NODE_SIZE": "1", "WEFT_NICS": "127.0.0.1,127.0.0.2", "WEFT_NICS_SHARED": "yes",
                                "WEFT_COUNTERS_DIR": str(pages)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


class Progress:
    """Operations of all PEs, from their pages."""

    def __init__(self, pages):
        self._source = PageSource(str(pages))

    def count(self):
        found = self._source.read(time.monotonic_ns(), lambda inode, pid: "")
        return len(found), sum(rail.counters["tx_operations"] for page in found for rail in page.rails)


def wait_for_traffic(progress, job):
    end = time.monotonic() + START_LIMIT_S
    while progress.count()[0] < PES or progress.count()[1] < 1000:
        if time.monotonic() > end or job.poll() is not None:
            sys.exit("weft_top_slowdown: the job does not get going; is the build complete? (scripts/build release)")
        time.sleep(0.1)


def phase(progress, top, watched, seconds):
    """Operations per second in a phase with weft-top running or stopped."""
    os.kill(top.pid, signal.SIGCONT if watched else signal.SIGSTOP)
    time.sleep(SETTLE_S)
    start, before = time.monotonic(), progress.count()[1]
    time.sleep(seconds)
    return (progress.count()[1] - before) / (time.monotonic() - start)


def measure(options, pages):
    job = start_job(options, pages)
    words = [sys.executable, TOP / "weft-top", "--json", "--interval", "0.1", "--pages", pages]
    top = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        progress = Progress(pages)
        wait_for_traffic(progress, job)
        # on off off on on off off on ...: drifts of the machine hit both alike.
        rates = [phase(progress, top, index % 4 in (0, 3), options.phase_s) for index in range(options.phases)]
    finally:
        os.kill(top.pid, signal.SIGCONT)
        for process in (top, job):
            process.terminate()
            process.wait()
    pairs = [(rates[index], rates[index + 1]) for index in range(0, len(rates) - 1, 2)]
    return [first / second if index % 2 == 0 else second / first for index, (first, second) in enumerate(pairs)], rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="release", help="the build under build/ (default: release)")
    parser.add_argument("--phases", type=int, default=40)
    parser.add_argument("--phase-s", type=float, default=1.0)
    parser.add_argument("--message", default="4K")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-top-slowdown-") as pages:
        ratios, rates = measure(options, Path(pages))
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    print(json.dumps({
        "subcommand": "weft_top_slowdown", "ratio_median": round(statistics.median(ratios), 5),
        "ratio_standard_error": round(error, 5), "pairs": len(ratios), "message": options.message, "pes": PES,
        "operations_per_s": round(statistics.median(rates)), "interval_s": 0.1, "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0], "machine": platform.node(), "kernel": platform.release(),
        "versions": {"weft_top": __version__, "python": platform.python_version()},
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
