"""The counters of RDMA devices: /sys/class/infiniband/DEVICE/ports/PORT/{counters,hw_counters}.

Owner: the collector's thread. Invariants: files stay open as far as the limit of descriptors allows; bytes
are read at every look, packets and RDMA's own bytes five times a second while they move, everything else once a second
and spread over it; a file that does not hold a number is dropped for good, a device that goes away takes nothing else with it.
"""

import os
from os import pread

from ..model import Nic, Notice
from .counter_files import NUMBER_BYTES, CounterFile
from .printable import identifier, printable
from .rdma_names import ALWAYS, NOT_COUNTERS, SUMS, WHILE_MOVING, meaning

DEFAULT_ROOT = "/sys/class/infiniband"
RDMA = "rdma:"  # stands for the namespace, which devices have none of, in the list of who uses what
LOOK_NS = 1_000_000_000
LOOK_AT_PORTS_NS = 10_000_000_000
SLOW_NS = 1_000_000_000
# What moves beside the bytes; a little less than 0.2 s, so that two looks of 10 Hz reach it.
MOVING_NS = 180_000_000


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


class _Port:
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
        self._fast = [file for file in files if file.name in ALWAYS]
        self._moving = []
        self._slow = [file for file in files if file.name not in ALWAYS]
        self._at_last_slow = {}  # counters of WHILE_MOVING as they were
        self._sums = SUMS.get(self.driver, {})
        self.due_ns = 0
        self.moving_due_ns = 0
        self._facts = ("unknown", None)
        self._counters = {}
        self._nic = None

    def close(self):
        for file in (self._state, self._rate, *self._fast, *self._moving, *self._slow):
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


    def _sort(self, counters):
        """What has moved since the last slow read is read more often from now on, what has not no more."""
        now = {name: counters[name] for name in WHILE_MOVING if name in counters}
        moving = {name for name, value in now.items() if self._at_last_slow.get(name, value) != value}
        self._at_last_slow = now
        files = self._moving + self._slow
        self._moving = [file for file in files if file.name in moving]
        self._slow = [file for file in files if file.name not in moving]


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
    try:
        return printable(os.path.basename(os.readlink(os.path.join(path, "device", "driver"))))
    except OSError:
        # Where the link is hidden (containers), the name of the device often tells.
        known = {"mlx5_": "mlx5_core", "efa_": "efa", "rdmap": "efa", "hfi1_": "hfi1", "bnxt_re": "bnxt_re"}
        return next((driver for prefix, driver in known.items() if device.startswith(prefix)), "")


def _address(base):
    try:
        with open(os.path.join(base, "gids", "0"), "rb") as file:
            gid = printable(file.read(64).strip())
        return "" if set(gid) <= {"0", ":"} else gid
    except OSError:
        return ""


class RdmaSource:
    """All ports of all RDMA devices under `root`; `holders` is an RdmaHolders or None."""

    name = "rdma"

    def __init__(self, root=DEFAULT_ROOT, holders=None):
        self._root = root
        self._holders = holders
        self._ports = {}  # (device, port) -> _Port
        self._looked = None
        self._looked_at_ports = None
        self._trouble = ""

    def close(self):
        for port in self._ports.values():
            port.close()
        self._ports = {}
        if self._holders:
            self._holders.close()

    def notices(self):
        texts = [self._trouble, self._holders.trouble if self._holders else ""]
        return [Notice(self.name, text) for text in texts if text]

    def read(self, time_ns, pages, holders):
        """[Nic]; `holders` says which PEs use a device."""
        if self._looked is None or time_ns - self._looked >= LOOK_NS:
            self._looked = time_ns
            self._look(time_ns)
        held = self._holders.read(time_ns) if self._holders and self._ports else {}
        counts = {}
        for device, _ in self._ports:
            counts[device] = counts.get(device, 0) + 1
        nics = []
        for (device, port), entry in list(self._ports.items()):
            name = printable(device) + (f":{entry.port}" if counts[device] > 1 else "")
            processes = held.get(device) or holders.get((RDMA, printable(device))) or ()
            try:
                nics.append(entry.read(time_ns, name, processes))
            except OSError:
                self._ports.pop((device, port)).close()
                self._looked = self._looked_at_ports = None
        return nics

    def _look(self, time_ns):
        """Find the ports that came and went."""
        present = {}
        self._trouble = ""
        try:
            devices = sorted(os.listdir(self._root))
        except FileNotFoundError:
            devices = []  # no RDMA here
        except OSError as error:
            devices, self._trouble = [], f"cannot read {self._root} ({error.strerror})"
        # A port that goes away is noticed when it is read; one that a known device gains can wait.
        again = self._looked_at_ports is None or time_ns - self._looked_at_ports >= LOOK_AT_PORTS_NS
        self._looked_at_ports = time_ns if again else self._looked_at_ports
        known = {} if again else self._known()
        for device in devices:
            present.update(known.get(device) or _ports_of(self._root, device))
        for key in [key for key, port in self._ports.items() if present.get(key) != port.identity]:
            self._ports.pop(key).close()
        for (device, port), identity in present.items():
            if (device, port) not in self._ports:
                self._ports[device, port] = _Port(device, port, self._root, identity)
        # In the order of names, and the slow reads spread over a second.
        self._ports = {key: self._ports[key] for key in present}
        for position, port in enumerate(self._ports.values()):
            if not port.due_ns:
                port.due_ns = time_ns - SLOW_NS + (position + 1) * SLOW_NS // len(self._ports)
                port.moving_due_ns = time_ns + (position % 2) * MOVING_NS // 2


    def _known(self):
        """{device: {(device, port): what identifies it}} of what is being read."""
        found = {}
        for (device, port), entry in self._ports.items():
            found.setdefault(device, {})[device, port] = entry.identity
        return found


def _ports_of(root, device):
    """{(device, port): what identifies it}."""
    folder = os.path.join(root, device, "ports")
    try:
        names = os.listdir(folder)
        numbered = sorted(names, key=lambda name: (not name.isdigit(), len(name), name))
        return {(device, port): os.stat(os.path.join(folder, port)).st_ino for port in numbered}
    except OSError:
        return {}  # no device, or one that is going away
