"""weft-top on a terminal beside a real job in a lab: what is to be read there is what is known to be sent.

Each NIC of the lab carries 40 Mbit/s, and the policy "coupled" sends all that a PE receives to one of its two rails:
so one NIC of each PE shows the whole rate in RX, its other one next to nothing, and max/mean is 2.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from small_lab import HOSTS, NICS, PES
from terminals import Terminal

TOP = Path(__file__).resolve().parents[2] / "tools" / "top" / "weft-top"
JOB_S = 300  # long enough for a loaded machine; it is ended when all was seen


@pytest.fixture
def job(lab, bin_dir, pages):
    """An all-to-all by coupled rails, until the test ends."""
    environment = lab.environment | {"WEFT_RUN": str(bin_dir / "weft-run"), "WEFT_COUNTERS_DIR": str(pages)}
    size = str((128 << 10) * PES)
    command = [*lab.command, "run", "-n", str(PES), "--", bin_dir / "weft-perf", "alltoall_latency", "-b", size, "-e", size,
               "-w", "4", "--window", "4", "--duration", str(JOB_S), "--policy", "coupled", "--no-counters"]  # fmt: skip
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield process
    process.terminate()
    process.wait(timeout=60)


@pytest.fixture
def screen(lab, job, pages):
    environment = {"WEFT_LAB_DIR": lab.environment["WEFT_LAB_DIR"]}
    opened = Terminal([sys.executable, TOP, "--interval", "0.5", "--pages", str(pages)], (120, 40), environment)
    yield opened
    opened.close()


def nic_rows(lines):
    """NIC of the lab -> (TX, RX) in per cent of its line rate, from the painted table."""
    rows = {}
    for line in lines:
        words = line.split()
        shares = [int(word[:-1]) for word in words if word.endswith("%") and word[:-1].isdigit()]
        if words and words[0].startswith(("h0/nic", "h1/nic")) and len(shares) == 2:
            rows[words[0]] = tuple(shares)
    return rows


def shows_one_full_rail_for_each_pe(lines):
    rows = nic_rows(lines)
    full = [name for name, (_, rx) in rows.items() if 75 <= rx <= 106]
    idle = [name for name, (_, rx) in rows.items() if rx <= 10]
    return len(rows) == HOSTS * NICS and len(full) == PES and len(idle) == PES


def shows_the_verdicts(lines):
    text = "\n".join(lines)
    uneven = re.findall(r" (?:1\.9\d|2\.00)!", text)
    return len(uneven) >= PES and all(re.search(rf"RX of PE {pe} arrives (9\d|100) % on rail ", text) for pe in range(PES))


def shows_that_pe_3_sends_to_the_other_host_alone(lines):
    row = next((line.split() for line in lines if line.startswith("PE 3 h1")), [])
    # from, all, then what goes to PEs 0 to 3: a mark and a number, or a dot
    return "to 0" in lines[3] and row[-2:] == ["·", "·"] and row.count("·") == 2


def test_the_screen_shows_which_nics_carry_the_known_rate_and_says_why(screen):
    screen.read_until(b"NIC")
    os.write(screen.outer, b"ss")  # the busiest in RX first
    screen.read_lines_until(shows_one_full_rail_for_each_pe)
    os.write(screen.outer, b"2")
    lines = screen.read_lines_until(shows_the_verdicts)
    assert "policy is coupled; balanced would spread it" in "\n".join(lines)
    os.write(screen.outer, b"4")
    screen.read_lines_until(shows_that_pe_3_sends_to_the_other_host_alone)
    os.write(screen.outer, b"q")
    assert screen.end() == 0
    screen.assert_restored()
