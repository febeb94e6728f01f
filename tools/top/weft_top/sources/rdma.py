"""The counters of RDMA devices: /sys/class/infiniband/DEVICE/ports/PORT/{counters,hw_counters}.

Owner: the collector's thread. Invariants: what is read of a port, and how often, is rdma_port.py's; a device that goes
away takes nothing else with it; the reads that are not made at every look are spread evenly over the devices.
"""

import os

from ..model import Notice
from .printable import printable
from .rdma_port import Port

DEFAULT_ROOT = "/sys/class/infiniband"
RDMA = "rdma:"  # stands for the namespace, which devices have none of, in the list of who uses what
LOOK_NS = 1_000_000_000
LOOK_AT_PORTS_NS = 10_000_000_000


class RdmaSource:
    """All ports of all RDMA devices under `root`; `holders` is an RdmaHolders or None."""

    name = "rdma"

    def __init__(self, root=DEFAULT_ROOT, holders=None):
        self._root = root
        self._holders = holders
        self._ports = {}  # (device, port) -> Port
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

    def targets(self, pages, keys):
        """[Target] for the ports of these keys."""
        return [target for port in self._ports.values() if port.key in keys for target in port.targets()]

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
                self._ports[device, port] = Port(device, port, self._root, identity)
        # In the order of names, and the slow reads spread over a second.
        self._ports = {key: self._ports[key] for key in present}
        for position, port in enumerate(self._ports.values()):
            if port.due_ns is None:
                port.begin(time_ns, (position + 1) / len(self._ports))


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
