"""What changed between two Snapshots, as Events: NICs and pages that come and go, links, errors, resets.

Owner: RateHistory (one thread). Invariants: the first Snapshot makes no event; what keeps happening is
reported at once and then at most every REPEAT_S, with its sum, so that a log stays readable.
"""

from .frame import Event

REPEAT_S = 10.0

# Counters whose growth is worth a line, with its severity and what to call it.
NIC_TROUBLE = {
    "tx_errors": ("error", "TX errors"), "rx_errors": ("error", "RX errors"),
    "tx_drops": ("warning", "packets dropped in TX"), "rx_drops": ("warning", "packets dropped in RX"),
    "retransmits": ("warning", "retransmits"), "link_downed": ("error", "times the link went down"),
}  # fmt: skip
RAIL_TROUBLE = {"errors": ("error", "failed operations"), "retries": ("info", "retries")}


class Repeats:
    """Adds up what keeps happening."""

    def __init__(self):
        self._open = {}  # key -> [last reported ns, amount since]

    def add(self, key, time_ns, amount):
        """The amount to report now; 0 if it was reported a moment ago."""
        entry = self._open.setdefault(key, [None, 0])
        entry[1] += amount
        if not entry[1] or (entry[0] is not None and time_ns - entry[0] < REPEAT_S * 1e9):
            return 0
        amount, entry[0], entry[1] = entry[1], time_ns, 0
        return amount

    def forget(self, thing):
        """Drop what is known of a NIC or page; keys are (thing, ...)."""
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
        self._nics = None
        self._pages = None

    def presence(self, snapshot):
        """Events of what came, went, and changed its state."""
        nics = {nic.key: nic for nic in snapshot.nics}
        pages = {(page.key, page.process.pid): page for page in snapshot.pes}
        events = []
        if self._nics is not None:
            self._compare_nics(snapshot.wall_ns, nics, events)
            self._compare_pages(snapshot.wall_ns, pages, events)
        self._nics, self._pages = nics, pages
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
            self._repeats.forget(key)

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
            self._repeats.forget(key)

    def _compare_rails(self, wall_ns, before, page, events):
        for old, rail in zip(before.rails, page.rails):
            if old.up != rail.up:
                text, severity = ("is up again", "info") if rail.up else ("is down", "error")
                events.append(Event(wall_ns, rail_subject(page, rail), text, severity))

    def nic_counters(self, snapshot, nic, track, reset):
        """Events of one NIC's counters."""
        subject = None
        for name, (severity, words) in NIC_TROUBLE.items():
            step = track.step(name)
            amount = self._repeats.add((nic.key, name), snapshot.time_ns, step) if name in nic.counters else 0
            if amount:
                subject = subject or nic_subject(nic)
                yield Event(snapshot.wall_ns, subject, f"{amount} {words}", severity)
        if reset and self._repeats.add((nic.key, "reset"), snapshot.time_ns, 1):
            yield Event(snapshot.wall_ns, nic_subject(nic), f"counters began anew: {_some(reset)}")

    def rail_counters(self, snapshot, page, rail, track):
        """Events of one rail's counters."""
        for name, (severity, words) in RAIL_TROUBLE.items():
            key = ((page.key, page.process.pid), rail.index, name)
            amount = self._repeats.add(key, snapshot.time_ns, track.step(name))
            if amount:
                yield Event(snapshot.wall_ns, rail_subject(page, rail), f"{amount} {words}", severity)


def _some(names):
    names = sorted(map(str, names))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
