#!/usr/bin/env python3
"""What weft-top costs: share of one core and resident memory, at 10 Hz with 32 EFA devices and 8 PEs of 4 rails.

The devices are files in a tree of ours and the pages files in a folder of ours, all of which a process moves at
every look, because what stands still costs less. Not in the figures: what a real driver does when its counters
are read. Prints a JSON line for each mode; asserts nothing.

  bench/weft_top_cost.py [--seconds S] [MODE...]     modes: sampling json record perfetto screen
"""

import argparse
import datetime
import json
import os
import platform
import pty
import select
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOP = ROOT / "tools" / "top"
sys.path[:0] = [str(TOP), str(ROOT / "tests" / "top")]

from device_trees import efa  # noqa: E402: the path above comes first
from page_files import PageFile  # noqa: E402
from weft_top import __version__  # noqa: E402

NICS, PES, RAILS = 32, 8, 4
MODES = {
    "sampling": ["--headless", "--prometheus", "127.0.0.1:0"],  # nobody scrapes
    "json": ["--json"],
    "record": ["--headless", "--record", "{folder}/recording"],
    "perfetto": ["--headless", "--perfetto", "{folder}/trace.json"],
    "screen": [],
}
SETTLE_S = 4


def move(folder, owner):
    """Change every device's bytes and packets and every page, 10 times a second, until the parent ends. Files are
    written in place, as counters change."""
    ports = [open(folder / "infiniband" / f"rdmap{nic}s0" / "ports" / "1" / "hw_counters" / name, "r+b", buffering=0)
             for nic in range(NICS) for name in ("tx_bytes", "rx_bytes", "tx_pkts", "rx_pkts", "rdma_write_bytes")]
    pages = [PageFile(folder / "pages", pe=pe, pe_count=PES, rails=RAILS, pid=owner).save() for pe in range(PES)]
    step = 0
    while os.getppid() == owner:
        step += 1
        for index, port in enumerate(ports):
            os.pwrite(port.fileno(), b"%d\n" % (10**12 + step * (10**6 + index)), 0)
        for page in pages:
            for index, rail in enumerate(page.rails):
                rail.update(tx_bytes=step * 10**6, rx_bytes=step * 10**5, tx_operations=step * 9, outstanding=step % 7)
                page.peers.update({(peer, index): (step * 1000 * (peer + 1), step) for peer in range(PES)})
            page.save()
        time.sleep(0.1)


def cpu_ns(pid):
    """Nanoseconds on a CPU of all threads (proc_pid_schedstat)."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            continue
    return total


def memory_mib(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def watch(pid, terminal, seconds):
    """(share of one core, resident MiB, most MiB) of a process once it has settled."""
    def pass_time(duration):
        end = time.monotonic() + duration
        while (rest := end - time.monotonic()) > 0:
            if terminal is None:
                time.sleep(rest)
            elif select.select([terminal], [], [], rest)[0]:
                os.read(terminal, 1 << 16)

    pass_time(SETTLE_S)
    start, before = time.monotonic(), cpu_ns(pid)
    pass_time(seconds)
    share = (cpu_ns(pid) - before) / ((time.monotonic() - start) * 1e9)
    return share, memory_mib(pid, "VmRSS"), memory_mib(pid, "VmHWM")


def measure(mode, folder, seconds):
    words = [word.format(folder=folder) for word in MODES[mode]]
    command = [sys.executable, str(TOP / "weft-top"), "--interval", "0.1", "--rdma-root", str(folder / "infiniband"),
               "--pages", str(folder / "pages"), *words]
    terminal = None
    if mode == "screen":
        terminal, inner = pty.openpty()
        termios.tcsetwinsize(inner, (50, 200))
        # COLUMNS and LINES would outweigh the terminal's own size.
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                                   env=clean | {"TERM": "xterm-256color"})
        os.close(inner)
    else:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        share, resident, most = watch(process.pid, terminal, seconds)
    finally:
        process.terminate()
        process.wait()
    return {
        "subcommand": "weft_top_cost", "mode": mode, "cpu_share": round(share, 5), "rss_mib": round(resident, 1),
        "rss_max_mib": round(most, 1), "interval_s": 0.1, "nics": NICS, "pes": PES, "rails": RAILS, "seconds": seconds,
        "load_average": os.getloadavg()[0], "machine": platform.node(), "cpu": cpu_name(), "kernel": platform.release(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {"weft_top": __version__, "python": platform.python_version()},
    }  # fmt: skip


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("modes", metavar="MODE", nargs="*", choices=[[], *MODES], help="default: all but screen")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-top-cost-", dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "pages").mkdir()
        for nic in range(NICS):
            efa(folder / "infiniband", f"rdmap{nic}s0")
        owner = os.getpid()
        mover = os.fork()
        if mover == 0:
            try:
                move(folder, owner)
            finally:
                os._exit(0)
        try:
            for mode in options.modes or [mode for mode in MODES if mode != "screen"]:
                print(json.dumps(measure(mode, folder, options.seconds)), flush=True)
        finally:
            os.kill(mover, 15)
            os.waitpid(mover, 0)


if __name__ == "__main__":
    main()
