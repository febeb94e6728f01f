"""One port of one RDMA device: which of its files are read when, and what they mean.

Owner: RdmaSource (the collector's thread). Invariants: bytes are read at every look; packets and RDMA's own bytes
five times a second while they move; errors, and whatever has ever moved, once a second; the rest every four
seconds. A file that does not hold a number is dropped for good.
"""

import os
from os import pread

from ..model import Nic
from ..nic_counters import BYTES
from .counter_files import NUMBER_BYTES, CounterFile
from .glances import Target
from .links import driver_of
from .printable import identifier, printable
from .rdma_names import NOT_COUNTERS, SUMS, TROUBLE, WHILE_MOVING, meaning

SLOW_NS = 1_000_000_000
# A little less than 0.2 s, so that every second look at 10 Hz reaches it.
MOVING_NS = 180_000_000
RARE_TURNS = 4


def parse_state(text):
    """"4: ACTIVE" -> "up" (Documentation/infiniband/sysfs: DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER)."""
    words = text.upper().split()
    if not words:
        return "unknown"
    return "up" if words[-1] in ("ACTIVE", "ACTIVE_DEFER") else "down"


def parse_rate(text):
    """"100 Gb/sec (4X EDR)" -> bits per second; None if it says nothing."""
    words = text.split()
    try:
        return round(float(words[0]) * 1e9) or None if words[1].startswith("Gb/sec") else None
    except (IndexError, ValueError, OverflowError):
        return None


class Port:
    """One port of one device."""

    def __init__(self, device, port, folder, identity):
        self.identity = identity
        self.device = device
        self.driver = _driver(os.path.join(folder, device), device)
        base = os.path.join(folder, device, "ports", port)
        self.key = f"rdma:{identifier(device)}/{identifier(port)}"
        self.port = printable(port)
        self.address = _address(base)
        self._state = CounterFile(os.path.join(base, "state"), "", 1)
        self._rate = CounterFile(os.path.join(base, "rate"), "", 1)
        files = _find(base, self.driver)
        self._fast = [file for file in files if file.name in BYTES]
        self._moving = []
        self._slow = [file for file in files if file.name in TROUBLE | WHILE_MOVING]
        self._rare = [file for file in files if file.name not in {*BYTES} | TROUBLE | WHILE_MOVING]
        self._turn = 0
        self._at_last_slow = {}  # counters of WHILE_MOVING as they were
        self._sums = SUMS.get(self.driver, {})
        self.due_ns = None  # see begin()
        self.moving_due_ns = 0
        self._facts = ("unknown", None)
        self._counters = {}
        self._nic = None

    def begin(self, time_ns, part):
        """Read all at once now, and then at a time of its own within the second: `part` of it, 0 to 1, has passed."""
        self.due_ns = time_ns - SLOW_NS + int(part * SLOW_NS)
        self.moving_due_ns = time_ns + int(part * SLOW_NS) % MOVING_NS

    def close(self):
        for file in (self._state, self._rate, *self._fast, *self._moving, *self._slow, *self._rare):
            file.close()

    def read(self, time_ns, name, processes):
        """The Nic now; an OSError if the device is gone."""
        counters = dict(self._counters)
        _take(self._fast, counters)
        if time_ns >= self.moving_due_ns:
            self.moving_due_ns = time_ns + MOVING_NS
            _take(self._moving, counters)
        facts = self._facts
        if time_ns >= self.due_ns:
            self.due_ns = max(self.due_ns + SLOW_NS, time_ns + SLOW_NS // 2)
            _take(self._slow, counters)
            self._take_rare(counters)
            self._sort(counters)
            for target, names in self._sums.items():
                found = [counters[part] for part in names if part in counters]
                if found:
                    counters[target] = sum(found)
            facts = self._facts = (parse_state(self._state.text()), parse_rate(self._rate.text()))
        nic = self._nic
        if nic is None or counters != self._counters or facts != (nic.state, nic.rate_bits_per_s) or (
                processes != nic.processes or name != nic.name):
            self._counters = counters
            nic = self._nic = Nic(
                self.key, "rdma", name, "", *facts, self.driver, self.address, counters, processes,
            )  # fmt: skip
        return nic


    def targets(self):
        """[Target] of its bytes; [] where their files are not kept open."""
        files = {file.name: file for file in self._fast}
        ways = [files.get(name) for name in BYTES]
        if any(file is None or file.descriptor < 0 for file in ways):
            return []
        factors = [file.factor for file in ways]
        return [Target([file.descriptor for file in ways], lambda descriptor: pread(descriptor, NUMBER_BYTES, 0),
                       lambda data: _bytes_of(self.key, data, factors))]

    def _take_rare(self, counters):
        """A quarter of what has never moved; what has moved is no longer rare."""
        turn = self._rare[self._turn % RARE_TURNS::RARE_TURNS] if self._counters else list(self._rare)
        self._turn += 1
        left = list(turn)
        _take(left, counters)
        before = self._counters
        moved = {file.name for file in left if before.get(file.name, counters[file.name]) != counters[file.name]}
        if moved or len(left) < len(turn):
            odd = {file.name for file in turn} - {file.name for file in left}
            self._slow += [file for file in left if file.name in moved]
            self._rare = [file for file in self._rare if file.name not in moved | odd]

    def _sort(self, counters):
        """What has moved since the last slow read is read more often from now on, what has not no more."""
        now = {name: counters[name] for name in WHILE_MOVING if name in counters}
        moving = {name for name, value in now.items() if self._at_last_slow.get(name, value) != value}
        self._at_last_slow = now
        files = self._moving + self._slow
        self._moving = [file for file in files if file.name in moving]
        self._slow = [file for file in files if file.name not in moving]


def _bytes_of(key, data, factors):
    try:
        tx, rx = (int(text) * factor for text, factor in zip(data, factors))
    except ValueError:
        return {}
    return {key: (tx, rx)}


def _take(files, counters):
    """Read all; drop those that hold no number. ENODEV and ENOENT mean that the device itself is gone."""
    odd = []
    for file in files:
        try:
            if (descriptor := file.descriptor) >= 0:  # number(), without the two calls: this is where the time goes
                value = int(pread(descriptor, NUMBER_BYTES, 0))
                counters[file.name] = value * file.factor if value >= 0 else file.number()
            else:
                counters[file.name] = file.number()
        except (FileNotFoundError, ValueError):
            odd.append(file)
        except OSError as error:
            if error.errno in CounterFile.GONE:
                raise
            odd.append(file)
    for file in odd:
        file.close()
        files.remove(file)
        counters.pop(file.name, None)


def _find(base, driver):
    """The CounterFiles of a port; where two files mean the same, the first folder has it."""
    found = {}
    for folder in ("counters", "hw_counters"):
        try:
            names = sorted(os.listdir(os.path.join(base, folder)))
        except OSError:
            continue
        for raw in names:
            if raw in NOT_COUNTERS:
                continue
            name, scale = meaning(raw, driver)
            file = CounterFile(os.path.join(base, folder, raw), printable(name), scale)
            if file.name not in found and file.holds_a_number():
                found[file.name] = file
            else:
                file.close()
    return list(found.values())


def _driver(path, device):
    # Where the link is hidden (containers), the name of the device often tells.
    known = {"mlx5_": "mlx5_core", "efa_": "efa", "rdmap": "efa", "hfi1_": "hfi1", "bnxt_re": "bnxt_re"}
    return driver_of(path) or next((driver for prefix, driver in known.items() if device.startswith(prefix)), "")


def _address(base):
    try:
        with open(os.path.join(base, "gids", "0"), "rb") as file:
            gid = printable(file.read(64).strip())
        return "" if set(gid) <= {"0", ":"} else gid
    except OSError:
        return ""
