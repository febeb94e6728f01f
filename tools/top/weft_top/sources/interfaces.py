"""The counters of plain network interfaces: /proc/net/dev of every namespace in sight.

Owner: the collector's thread. Invariants: one read gives all counters of a namespace at one moment, through a
descriptor that stays open; a line that has not changed is not parsed again; a line that cannot be read is left
out, alone.
"""

from ..model import Nic
from ..nic_counters import BYTES, DROPS, ERRORS, PACKETS
from .glances import Target
from .links import UNKNOWN
from .printable import identifier, printable

# Positions in a line of /proc/net/dev (proc_pid_net(5)): eight figures for RX, then eight for TX.
_COLUMNS = dict(zip(BYTES + PACKETS + DROPS + ERRORS, (8, 0, 9, 1, 11, 3, 10, 2)))


def split_lines(data):
    """{interface's name: the rest of its line}, both in bytes."""
    found = {}
    for line in data.split(b"\n")[2:]:
        name, colon, figures = line.rpartition(b": ")
        if colon:
            found[name.strip()] = figures
    return found


def parse_counters(figures):
    """The counters in one line; a ValueError or IndexError if it is no such line."""
    field = figures.split()
    return {name: int(field[column]) for name, column in _COLUMNS.items()}


class _Parser:
    """The bytes of some interfaces in the text of a namespace."""

    def __init__(self, names):
        self._names = names  # name in bytes -> key

    def __call__(self, data):
        found = {}
        for name, figures in split_lines(data[0]).items():
            if name in self._names:
                try:
                    field = figures.split()
                    found[self._names[name]] = tuple(int(field[_COLUMNS[way]]) for way in BYTES)
                except (ValueError, IndexError):
                    continue
        return found


class InterfaceSource:
    """All interfaces of the places that `namespaces` gives."""

    name = "net"

    def __init__(self, namespaces):
        self._namespaces = namespaces
        self._known = {}  # (label, name) -> (figures, link, rate, processes, Nic)

    def close(self):
        """Nothing: the namespaces own what is open."""

    def notices(self):
        return ()

    def read(self, time_ns, pages, holders):
        """[Nic] of all namespaces; `holders` says who uses (label, name)."""
        nics, known = [], {}
        for place in self._namespaces.places(pages):
            lines = split_lines(place.counters())
            links = place.links(time_ns, lines.keys())
            for name, figures in lines.items():
                try:
                    entry = self._entry(place, name, figures, (links, holders))
                except (ValueError, IndexError):
                    continue
                known[place.label, name] = entry
                nics.append(entry[-1])
        self._known = known
        return nics

    def targets(self, pages, keys):
        """[Target] for the NICs of these keys, as they were last read."""
        found = []
        for place in self._namespaces.places(pages):
            names = {name: entry[-1].key for (label, name), entry in self._known.items()
                     if label == place.label and entry[-1].key in keys}
            if names and place.descriptor is not None:
                found.append(Target([place.descriptor], place.read, _Parser(names)))
        return found

    def _entry(self, place, name, figures, facts):
        links, holders = facts
        link = links.get(name, UNKNOWN)
        before = self._known.get((place.label, name))
        shown = before[-1].name if before else printable(name)
        rate = place.rates.get(shown) or link.rate_bits_per_s
        processes = holders.get((place.label, shown), ())
        if before and before[0] == figures and before[1] is link and before[2] == rate and before[3] == processes:
            return before
        key = before[-1].key if before else f"net:{place.label}/{identifier(name)}"
        nic = Nic(
            key, "net", shown, place.label, link.state, rate, link.driver, link.address, parse_counters(figures),
            processes,
        )  # fmt: skip
        return figures, link, rate, processes, nic
