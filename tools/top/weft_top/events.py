"""What changed between two Snapshots, as Events: NICs and pages that come and go, links, errors, resets.

Owner: RateHistory (one thread). Invariants: the first Snapshot makes no event; what keeps happening is
reported at once and then at most every REPEAT_S, with its sum, so that a log stays readable.
"""

from operator import attrgetter

from .frame import Event

REPEAT_S = 10.0
KEY_AND_STATE = attrgetter("key", "state")

# Counters whose growth is worth a line, with its severity and what to call it.
NIC_TROUBLE = {
    "tx_errors": ("error", "TX errors"), "rx_errors": ("error", "RX errors"),
    "tx_drops": ("warning", "packets dropped in TX"), "rx_drops": ("warning", "packets dropped in RX"),
    "retransmits": ("warning", "retransmits"), "link_downed": ("error", "times the link went down"),
}  # fmt: skip
RAIL_TROUBLE = {
    "errors": ("error", "failed operations"), "retries": ("info", "retries"),
    "refused": ("warning", "messages with a wrong signature"),
}  # fmt: skip


class Repeats:
    """Adds up what keeps happening. A key is (thing, ...)."""

    def __init__(self):
        self._open = {}  # key -> [last reported ns, amount since]
        self._waiting = set()  # things of which something is still to be reported

    def waits(self, thing):
        return thing in self._waiting

    def add(self, key, time_ns, amount):
        """The amount to report now; 0 if it was reported a moment ago."""
        entry = self._open.setdefault(key, [None, 0])
        entry[1] += amount
        if not entry[1]:
            return 0
        if entry[0] is not None and time_ns - entry[0] < REPEAT_S * 1e9:
            self._waiting.add(key[0])
            return 0
        amount, entry[0], entry[1] = entry[1], time_ns, 0
        return amount

    def forget(self, thing):
        """Drop what is known of a NIC or page; keys are (thing, ...)."""
        self._waiting.discard(thing)
        for key in [key for key in self._open if key[0] == thing]:
            del self._open[key]


def nic_subject(nic):
    return f"NIC {nic.name}" + (f" in {nic.namespace}" if nic.namespace else "")


def pe_subject(page):
    return f"PE {page.pe} of job {page.job}"


def rail_subject(page, rail):
    return f"PE {page.pe} rail {rail.index} ({rail.nic})"


class Changes:
    """Compares each Snapshot with the one before it."""

    def __init__(self):
        self._repeats = Repeats()
        self._nics = self._states = None
        self._pages = None
        self._trouble = {}  # NIC's key, or (page, rail) -> what its counters of trouble were

    def presence(self, snapshot):
        """Events of what came, went, and changed its state."""
        events = []
        states = tuple(map(KEY_AND_STATE, snapshot.nics))
        if states != self._states:
            nics = {nic.key: nic for nic in snapshot.nics}
            if self._nics is not None:
                self._compare_nics(snapshot.wall_ns, nics, events)
            self._states, self._nics = states, nics
        pages = {(page.key, page.process.pid): page for page in snapshot.pes}
        if self._pages is not None:
            self._compare_pages(snapshot.wall_ns, pages, events)
        self._pages = pages
        return events

    def _compare_nics(self, wall_ns, nics, events):
        for key, nic in nics.items():
            before = self._nics.get(key)
            if before is None:
                events.append(Event(wall_ns, nic_subject(nic), f"appeared, {nic.state}"))
            elif before.state != nic.state:
                severity = "error" if nic.state == "down" else "info"
                events.append(Event(wall_ns, nic_subject(nic), f"is {nic.state}, was {before.state}", severity))
        for key in self._nics.keys() - nics.keys():
            events.append(Event(wall_ns, nic_subject(self._nics[key]), "is gone", "warning"))
            self._forget(key)

    def _forget(self, thing):
        self._repeats.forget(thing)
        self._trouble = {key: seen for key, seen in self._trouble.items() if thing != key and key[0] != thing}

    def _compare_pages(self, wall_ns, pages, events):
        for key, page in pages.items():
            before = self._pages.get(key)
            if before is None:
                text = f"began: process {page.process.pid}, {len(page.rails)} rails, policy {page.policy or 'unknown'}"
                events.append(Event(wall_ns, pe_subject(page), text))
            elif before is not page:
                self._compare_rails(wall_ns, before, page, events)
        for key in self._pages.keys() - pages.keys():
            events.append(Event(wall_ns, pe_subject(self._pages[key]), "ended"))
            self._forget(key)

    def _compare_rails(self, wall_ns, before, page, events):
        for old, rail in zip(before.rails, page.rails):
            if old.up != rail.up:
                text, severity = ("is up again", "info") if rail.up else ("is down", "error")
                events.append(Event(wall_ns, rail_subject(page, rail), text, severity))

    def nic_counters(self, snapshot, nic, track, reset):
        """[Event] of one NIC's counters."""
        trouble = tuple(map(nic.counters.get, NIC_TROUBLE))
        if trouble == self._trouble.get(nic.key) and not reset and not self._repeats.waits(nic.key):
            return ()
        self._trouble[nic.key] = trouble
        found = self._steps(snapshot, (nic.key,), NIC_TROUBLE, track)
        events = [Event(snapshot.wall_ns, nic_subject(nic), text, severity) for text, severity in found]
        if reset and self._repeats.add((nic.key, "reset"), snapshot.time_ns, 1):
            events.append(Event(snapshot.wall_ns, nic_subject(nic), f"counters began anew: {_some(reset)}"))
        return events

    def rail_counters(self, snapshot, page, rail, track):
        """[Event] of one rail's counters."""
        thing = (page.key, page.process.pid)
        trouble = tuple(map(rail.counters.get, RAIL_TROUBLE))
        if trouble == self._trouble.get((thing, rail.index)) and not self._repeats.waits(thing):
            return ()
        self._trouble[thing, rail.index] = trouble
        found = self._steps(snapshot, (thing, rail.index), RAIL_TROUBLE, track)
        return [Event(snapshot.wall_ns, rail_subject(page, rail), text, severity) for text, severity in found]

    def _steps(self, snapshot, key, names, track):
        """[(text, severity)] of the named counters that grew and are to be reported now."""
        found = []
        for name, (severity, words) in names.items():
            amount = self._repeats.add((*key, name), snapshot.time_ns, track.step(name))
            if amount:
                found.append((f"{amount} {words}", severity))
        return found


def _some(names):
    names = sorted(map(str, names))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
