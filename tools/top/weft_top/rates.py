"""From Snapshots to Frames: rolling rates, each PE's balance and verdict, events.

Owner: one thread. Invariants: the same Snapshots give the same Frames, so a replay shows what was seen live;
no rate is negative (tracks.py); memory is bounded by the window and by one minute of history for each NIC.
"""

from collections import deque
from operator import add

from .balance import balances, verdict
from .events import Changes
from .frame import Event, Frame, NicRates, PeRates, RailRates
from .moments import MomentTrack, NicFinder
from .tracks import CounterTrack, PeerTrack

__all__ = ["Event", "Frame", "NicRates", "PeRates", "RailRates", "RateHistory"]

WINDOW_S = 1.0
HISTORY_S = 60
HISTORY_STEP_NS = 1_000_000_000
# How far above its line rate a step of a NIC is still believed, and for how long a step is at
# least.
LINE_RATE_SLACK = 2.0
STEP_S_MIN = 1.0


class _NicTrack:
    """What is remembered of one NIC."""

    __slots__ = ("counters", "history", "shown", "_mark")

    def __init__(self, window_s):
        self.counters = CounterTrack(window_s)
        self.history = deque(maxlen=HISTORY_S)
        self.shown = ()
        self._mark = None

    def remember(self, time_ns):
        """Add a point to the history if a second has passed."""
        mark = self._mark
        # A timer that comes a little early must not halve the points.
        if mark is not None and time_ns - mark[0] < HISTORY_STEP_NS * 0.95:
            return
        now = (time_ns, self.counters.total("tx_bytes"), self.counters.total("rx_bytes"))
        if None in now:
            return
        self._mark = now
        if mark is not None:
            bits_per_ns = 8e9 / (time_ns - mark[0])
            self.history.append(((now[1] - mark[1]) * bits_per_ns, (now[2] - mark[2]) * bits_per_ns))
            self.shown = tuple(self.history)


class _PageTrack:
    """What is remembered of one PE."""

    __slots__ = ("rails", "peers", "moments")

    def __init__(self, window_s, rail_count):
        self.rails = [CounterTrack(window_s) for _ in range(rail_count)]
        self.peers = PeerTrack(window_s)
        self.moments = MomentTrack()


class RateHistory:
    """Turns Snapshots, added in the order of their time, into Frames. One thread."""

    def __init__(self, window_s=WINDOW_S):
        self._window_s = window_s
        self._nics = {}
        self._pages = {}
        self._changes = Changes()
        self._last_ns = None
        self._pes = ((), ())  # (what identifies the pages of the last look, their PeRates)

    def add(self, snapshot):
        """The Frame of this Snapshot. Rates are averages of the last `window_s` seconds."""
        interval_s = 0.0 if self._last_ns is None else max(0, snapshot.time_ns - self._last_ns) / 1e9
        self._last_ns = snapshot.time_ns
        events = self._changes.presence(snapshot)
        step_s = max(interval_s, STEP_S_MIN) * LINE_RATE_SLACK
        nics = tuple(self._add_nic(snapshot, nic, step_s, events) for nic in snapshot.nics)
        _keep(self._nics, {nic.key for nic in snapshot.nics})
        pes = self._add_pes(snapshot, events)
        return Frame(snapshot.time_ns, snapshot.wall_ns, interval_s, nics, pes, tuple(events), snapshot.notices)

    def _add_nic(self, snapshot, nic, step_s, events):
        track = self._nics.get(nic.key)
        if track is None:
            track = self._nics[nic.key] = _NicTrack(self._window_s)
        line = nic.rate_bits_per_s
        reset = track.counters.add(snapshot.time_ns, nic.counters, line / 8 * step_s if line else None)
        events.extend(self._changes.nic_counters(snapshot, nic, track.counters, reset))
        track.remember(snapshot.time_ns)
        rates = track.counters.rates()
        tx, rx = _bits(rates, "tx_bytes"), _bits(rates, "rx_bytes")
        tx_share = tx / line if line and tx is not None else None
        rx_share = rx / line if line and rx is not None else None
        return NicRates(nic, rates, tx, rx, tx_share, rx_share, track.shown)

    def _add_pes(self, snapshot, events):
        reads = tuple((page.key, page.process.pid, page.read_ns) for page in snapshot.pes)
        if reads != self._pes[0] or snapshot.looks or not all(page.read_ns for page in snapshot.pes):
            self._pes = (reads, self._read_pes(snapshot, events))
        return self._pes[1]

    def _read_pes(self, snapshot, events):
        tracks = [self._add_page(snapshot, page, events) for page in snapshot.pes]
        _keep(self._pages, {_page_key(page) for page in snapshot.pes})
        put_to, got_from, traffic = {}, {}, []
        for page, track in zip(snapshot.pes, tracks):
            places, puts, gets = track.peers.rates()
            _add_up(places, puts, put_to.setdefault(page.job, {}))
            _add_up(places, gets, got_from.setdefault(page.job, {}))
            traffic.append(dict(zip(places, map(add, puts, gets) if puts and gets else puts or gets)))
        finder = NicFinder(snapshot.nics)
        pes = tuple(
            _pe_rates(page, _rail_rates(page, track, (put_to[page.job], got_from[page.job]), finder), mine)
            for page, track, mine in zip(snapshot.pes, tracks, traffic)
        )
        self._judge(snapshot, pes, tracks, finder)
        return pes

    @staticmethod
    def _judge(snapshot, pes, tracks, finder):
        """Set each PE's balance in time, and its verdict."""
        for pe, track in zip(pes, tracks):
            nics = finder.of_page(pe.page) if snapshot.looks else ()
            if nics:
                track.moments.add(snapshot.looks, nics)
            pe.tx_balance_in_time, pe.rx_balance_in_time = track.moments.balances(snapshot.time_ns)
            pe.verdict = verdict(pe)

    def _add_page(self, snapshot, page, events):
        key = _page_key(page)
        track = self._pages.get(key)
        if track is None or len(track.rails) != len(page.rails):
            track = self._pages[key] = _PageTrack(self._window_s, len(page.rails))
        time_ns = page.read_ns or snapshot.time_ns
        for rail, counters in zip(page.rails, track.rails):
            counters.add(time_ns, rail.counters)
            events.extend(self._changes.rail_counters(snapshot, page, rail, counters))
        track.peers.add(time_ns, page.peers)
        return track


def _page_key(page):
    """A job that is started again under its old name is another one."""
    return page.key, page.process.pid


def _keep(tracks, keys):
    for key in tracks.keys() - keys:
        del tracks[key]


def _bits(rates, name):
    rate = rates.value(name)
    return None if rate is None else rate * 8


def _add_up(places, rates, sums):
    """Add each place's rate to `sums`."""
    for place, rate in zip(places, rates):
        sums[place] = sums[place] + rate if place in sums else rate


def _pe_rates(page, rails, traffic):
    return PeRates(page, rails, *balances(rails), traffic)


def _rail_rates(page, track, by_peers, finder):
    """The RailRates of a PE."""
    return tuple(_rates_of(page, rail, (counters.rates(), by_peers), finder.line_of(page, rail))
                 for rail, counters in zip(page.rails, track.rails))  # fmt: skip


def _rates_of(page, rail, known, line):
    """A put leaves no trace at its target and a get none at its source: those bytes are in the peers' pages."""
    rates, by_peers = known
    tx, rx = rates.value("tx_bytes"), rates.value("rx_bytes")
    if tx is None or rx is None:
        return RailRates(rail, rates, line_bits_per_s=line)
    place = (page.pe, rail.index)
    by_puts, by_gets = by_peers[0].get(place, 0.0), by_peers[1].get(place, 0.0)
    # Messages stand in the senders' put_bytes as well as here; where no page of theirs is here,
    # only here.
    by_puts = max(by_puts - (rates.value("rx_message_bytes") or 0.0), 0.0)
    rates.extra = (("rx_bytes_by_puts", by_puts), ("tx_bytes_by_gets", by_gets))
    return RailRates(rail, rates, (tx + by_gets) * 8, (rx + by_puts) * 8, line)
