"""How even a PE's NICs are at each moment, from bursts of looks 10 ms apart. Pure.

Bytes that are even over a second may still have taken turns: one NIC busy, the others waiting. Invariants: an
interval lies between two looks of a burst, and counts only if somebody was busy in it: the busiest NIC carried at
least half of what its line rate allows, or 64 KiB where the rate is not known; one that is longer than two steps
does not count, since the look came late. Line rates that differ are compared by the time that the bytes need.
weft-perf judges by the same rule (tools/perf/README.md).
"""

from collections import deque

from .nic_counters import max_over_mean

STEP_NS = 10_000_000
LATE_NS = 2 * STEP_NS
PIECE_BYTES = 64 << 10
WINDOW_NS = 10_000_000_000
# Fewer intervals are chance.
COUNT_MIN = 10


def ratio(steps, lines, seconds):
    """max/mean of one interval in one direction; None if it says nothing. `steps`: bytes of each NIC; `lines`:
    their line rates in bits per second."""
    if len(steps) < 2:
        return None
    if all(lines):
        bits = [step * 8 for step in steps]
        is_busy = max(step / line for step, line in zip(bits, lines)) >= seconds / 2
        return max_over_mean(bits, lines) if is_busy else None
    return max_over_mean(steps) if max(steps) >= PIECE_BYTES else None


class MomentTrack:
    """The intervals of one PE in the last ten seconds."""

    __slots__ = ("_sides",)

    def __init__(self):
        self._sides = (deque(), deque())  # TX, RX: (time_ns, ratio)

    def add(self, looks, nics):
        """Take the `looks` of a burst; `nics`: the PE's, all different."""
        keys = [nic.key for nic in nics]
        lines = [nic.rate_bits_per_s for nic in nics]
        for before, after in zip(looks, looks[1:]):
            step_ns = after.time_ns - before.time_ns
            if not 0 < step_ns <= LATE_NS:
                continue
            old, new = before.counts(), after.counts()
            if not all(key in old and key in new for key in keys):
                continue
            for way, side in enumerate(self._sides):
                steps = [max(0, new[key][way] - old[key][way]) for key in keys]
                found = ratio(steps, lines, step_ns / 1e9)
                if found is not None:
                    side.append((after.time_ns, found))

    def balances(self, time_ns):
        """(TX, RX): the mean max/mean of the last ten seconds; None where too few intervals counted."""
        return tuple(_mean(side, time_ns - WINDOW_NS) for side in self._sides)


def _mean(side, begin_ns):
    while side and side[0][0] < begin_ns:
        side.popleft()
    return sum(value for _, value in side) / len(side) if len(side) >= COUNT_MIN else None


class NicFinder:
    """Finds the NICs of a PE's rails in a Snapshot."""

    def __init__(self, nics):
        self._nics = {}
        for nic in nics:
            # A device with several ports is one rail's by its first.
            self._nics.setdefault((nic.namespace, nic.name.partition(":")[0] if nic.kind == "rdma" else nic.name), nic)

    def of_rail(self, page, rail):
        """The Nic of a rail of a page; None if it is not known."""
        places = [(where, name) for name in (rail.nic, rail.device) for where in (page.namespace, "")]
        return next((self._nics[place] for place in places if place in self._nics), None)

    def of_page(self, page):
        """One Nic for each rail that is up; () unless all are known and different."""
        found = [self.of_rail(page, rail) for rail in page.rails if rail.up]
        keys = {nic.key for nic in found if nic is not None}
        return tuple(found) if len(found) > 1 and len(keys) == len(found) else ()

    def line_of(self, page, rail):
        """The line rate of a rail's NIC in bits per second. What the NIC says now goes before what the page says; a provider
        that works over any interface, such as tcp, knows no rate. None where neither is known."""
        nic = self.of_rail(page, rail)
        return (nic.rate_bits_per_s if nic is not None else None) or rail.rate_bits_per_s
