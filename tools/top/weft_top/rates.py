"""From Snapshots to Frames: rolling rates, each PE's balance and verdict, events.

Owner: one thread. Invariants: the same Snapshots give the same Frames, so a replay shows what was seen live;
no rate is negative (tracks.py); memory is bounded by the window and by one minute of history for each NIC.
"""

from collections import deque

from .balance import direction_balance, verdict
from .events import Changes
from .frame import Event, Frame, NicRates, PeRates, RailRates
from .tracks import CounterTrack

__all__ = ["Event", "Frame", "NicRates", "PeRates", "RailRates", "RateHistory"]

WINDOW_S = 1.0
HISTORY_S = 60
HISTORY_STEP_NS = 1_000_000_000
# How far above its line rate a step of a NIC is still believed, and for how long a step is at least.
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
        totals = self.counters.totals()
        now = (time_ns, totals.get("tx_bytes"), totals.get("rx_bytes"))
        if self._mark is None or None in self._mark:
            self._mark = now
        # A timer that comes a little early must not halve the points.
        elif time_ns - self._mark[0] >= HISTORY_STEP_NS * 0.95 and None not in now:
            bits_per_ns = 8e9 / (time_ns - self._mark[0])
            self.history.append(((now[1] - self._mark[1]) * bits_per_ns, (now[2] - self._mark[2]) * bits_per_ns))
            self.shown = tuple(self.history)
            self._mark = now


class _PageTrack:
    """What is remembered of one PE."""

    __slots__ = ("rails", "puts", "gets")

    def __init__(self, window_s, rail_count):
        self.rails = [CounterTrack(window_s) for _ in range(rail_count)]
        self.puts = CounterTrack(window_s, missing_is_zero=True)
        self.gets = CounterTrack(window_s, missing_is_zero=True)


class RateHistory:
    """Turns Snapshots, added in the order of their time, into Frames. One thread."""

    def __init__(self, window_s=WINDOW_S):
        self._window_s = window_s
        self._nics = {}
        self._pages = {}
        self._changes = Changes()
        self._last_ns = None

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
        reset = track.counters.add(snapshot.time_ns, nic.counters, _step_max(nic, step_s))
        events.extend(self._changes.nic_counters(snapshot, nic, track.counters, reset))
        track.remember(snapshot.time_ns)
        rates = track.counters.rates()
        tx, rx = _bits(rates, "tx_bytes"), _bits(rates, "rx_bytes")
        line = nic.rate_bits_per_s
        shares = [rate / line if line and rate is not None else None for rate in (tx, rx)]
        return NicRates(nic, rates, tx, rx, *shares, track.shown)

    def _add_pes(self, snapshot, events):
        tracks = [self._add_page(snapshot, page, events) for page in snapshot.pes]
        _keep(self._pages, {_page_key(page) for page in snapshot.pes})
        puts = [track.puts.rates() for track in tracks]
        gets = [track.gets.rates() for track in tracks]
        put_to, got_from = {}, {}
        for page, put, got in zip(snapshot.pes, puts, gets):
            _add_up(put_to, page.job, put)
            _add_up(got_from, page.job, got)
        return tuple(
            _pe_rates(page, track, (put_to, got_from), _sum(put, got))
            for page, track, put, got in zip(snapshot.pes, tracks, puts, gets)
        )

    def _add_page(self, snapshot, page, events):
        key = _page_key(page)
        track = self._pages.get(key)
        if track is None or len(track.rails) != len(page.rails):
            track = self._pages[key] = _PageTrack(self._window_s, len(page.rails))
        for rail, counters in zip(page.rails, track.rails):
            counters.add(snapshot.time_ns, rail.counters)
            events.extend(self._changes.rail_counters(snapshot, page, rail, counters))
        track.puts.add(snapshot.time_ns, {(peer.peer, peer.rail): peer.put_bytes for peer in page.peers})
        track.gets.add(snapshot.time_ns, {(peer.peer, peer.rail): peer.get_bytes for peer in page.peers})
        return track


def _page_key(page):
    """A job that is started again under its old name is another one."""
    return page.key, page.process.pid


def _keep(tracks, keys):
    for key in tracks.keys() - keys:
        del tracks[key]


def _bits(rates, name):
    rate = rates.get(name)
    return None if rate is None else rate * 8


def _step_max(nic, step_s):
    """The largest believable step of a byte counter; None (for any other) means that nothing is known."""
    line = nic.rate_bits_per_s
    if not line:
        return None
    return lambda name: line / 8 * step_s if name.endswith("_bytes") else None


def _add_up(sums, job, rates):
    for (peer, rail), rate in rates.items():
        if rate:
            sums[job, peer, rail] = sums.get((job, peer, rail), 0.0) + rate


def _sum(put, got):
    """(peer, rail) -> both directions; entries without traffic are left out."""
    traffic = {}
    for rates in (put, got):
        for key, rate in rates.items():
            if rate:
                traffic[key] = traffic.get(key, 0.0) + rate
    return traffic


def _pe_rates(page, track, by_peers, traffic):
    rails = tuple(_rail_rates(page, rail, counters, by_peers) for rail, counters in zip(page.rails, track.rails))
    tx_balance, worst_tx_rail = direction_balance(rails, "tx")
    rx_balance, worst_rx_rail = direction_balance(rails, "rx")
    pe = PeRates(page, rails, tx_balance, rx_balance, worst_tx_rail, worst_rx_rail, traffic)
    pe.verdict = verdict(pe)
    return pe


def _rail_rates(page, rail, counters, by_peers):
    """A put leaves no trace at its target and a get none at its source: those bytes are in the peers' pages."""
    rates = counters.rates()
    tx, rx = rates.get("tx_bytes"), rates.get("rx_bytes")
    if tx is None or rx is None:
        return RailRates(rail, rates)
    place = (page.job, page.pe, rail.index)
    rates["rx_bytes_by_puts"] = by_puts = by_peers[0].get(place, 0.0)
    rates["tx_bytes_by_gets"] = by_gets = by_peers[1].get(place, 0.0)
    return RailRates(rail, rates, (tx + by_gets) * 8, (rx + by_puts) * 8)
