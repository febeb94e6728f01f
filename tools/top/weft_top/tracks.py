"""The recent past of counters: judges wraps and resets, and gives rolling rates.

Owner: whoever adds the samples (one thread). Invariants: a total never decreases, so no rate is negative; a
counter that goes back is a wrap of 32 bits where that is likely, else a reset, and after a reset its rate is
not known until two samples have been seen since. Samples are never changed once added, so that rates may be
worked out later, only where somebody looks (Rates); whole rows are compared and subtracted by map(), which is
five times as fast as a loop.
"""

from collections import deque
from collections.abc import Mapping
from itertools import repeat
from operator import ge, mul, sub

from .nic_counters import BYTES

# Counters that drivers keep in 32 bits; and those in words of 4 bytes, which a source has made into
# bytes.
_WRAPS = (1 << 32, 1 << 34)


def wrap_of(before, after, step_max):
    """The modulus if `after` < `before` looks like a wrap, else 0. `step_max` is the largest plausible step, or
    None where nothing is known: then only the wrap of 32 bits, near both of its ends, is believed."""
    for modulus in _WRAPS if step_max is not None else _WRAPS[:1]:
        if before < modulus and before >= modulus - modulus // 4 and after < modulus // 4:
            if step_max is None or after + modulus - before <= step_max:
                return modulus
    return 0


class Rates(Mapping):
    """Counter name -> per second, between two samples of a track; worked out when first asked for. What was reset
    in between counts from then on, or is missing."""

    __slots__ = ("_first", "_last", "_resets", "_made", "extra")

    def __init__(self, first, last, resets=()):
        self._first, self._last = first, last  # (time_ns, totals)
        self._resets = resets  # (name, the sample after its reset)
        self._made = None
        self.extra = ()  # (name, rate) from elsewhere; set before anybody looks

    def value(self, name):
        """The rate of one counter, or None; without working out the others."""
        if self._made is not None or self._resets:
            return self.get(name)
        before, after = self._first[1].get(name), self._last[1].get(name)
        return None if before is None or after is None else (after - before) * self._per_ns(self._first)

    def _per_ns(self, first):
        return 1e9 / (self._last[0] - first[0])

    def _all(self):
        if self._made is None:
            first, last, per_ns = self._first[1], self._last[1], self._per_ns(self._first)
            if first.keys() != last.keys():
                last = {name: value for name, value in last.items() if name in first}
                first = {name: first[name] for name in last}
            elif list(first) != list(last):
                first = {name: first[name] for name in last}
            steps = map(sub, last.values(), first.values())
            made = dict(zip(last, map(mul, steps, repeat(per_ns))))
            for name, start in self._resets:
                made.pop(name, None)
                if name in start[1] and name in self._last[1] and start[0] < self._last[0]:
                    made[name] = (self._last[1][name] - start[1][name]) * self._per_ns(start)
            made.update(self.extra)
            self._made = made
        return self._made

    def __getitem__(self, name):
        return self._all()[name]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __repr__(self):
        return f"Rates({self._all()})"


class CounterTrack:
    """The counters of one thing over the last `window_s` seconds."""

    __slots__ = ("_window_ns", "_samples", "_raw", "_offsets", "_since")

    def __init__(self, window_s):
        self._window_ns = int(window_s * 1e9)
        self._samples = deque()  # (time_ns, {name: total})
        self._raw = None
        self._offsets = {}
        self._since = {}  # name -> the first sample after its reset

    def add(self, time_ns, counters, step_max=None):
        """Take a sample, which the caller does not change any more; `step_max`, if known, bounds a plausible step
        of a counter of bytes. Returns the names that were reset."""
        reset = ()
        if self._raw is not counters:
            reset = self._judge(counters, step_max)
        offsets = self._offsets
        totals = {name: value + offsets.get(name, 0) for name, value in counters.items()} if offsets else counters
        sample = (time_ns, totals)
        for name in reset:
            self._since[name] = sample
        samples = self._samples
        samples.append(sample)
        while len(samples) > 2 and samples[1][0] <= time_ns - self._window_ns:
            samples.popleft()
        return reset

    def _judge(self, counters, step_max):
        """See what went back, and remember what was seen."""
        raw, self._raw = self._raw, counters
        if raw is None:
            return ()
        try:
            if len(raw) == len(counters) and all(map(ge, counters.values(), map(raw.__getitem__, counters))):
                return ()
        except KeyError:
            pass
        # What is missing for a while must not come back lower than it was.
        self._raw = {**raw, **counters}
        return self._judge_each(raw, counters, step_max)

    def _judge_each(self, raw, counters, step_max):
        reset = []
        for name, before in raw.items():
            after = counters.get(name, before)
            if after < before:
                modulus = wrap_of(before, after, step_max if name in BYTES else None)
                self._offsets[name] = self._offsets.get(name, 0) + (modulus or before - after)
                if not modulus:
                    reset.append(name)
        return reset

    def total(self, name):
        """What was counted since the first sample, plus the first value; None if the last sample has none."""
        return self._samples[-1][1].get(name) if self._samples else None

    def step(self, name):
        """What the last sample added; 0 where that is not known."""
        if len(self._samples) < 2:
            return 0
        before, after = self._samples[-2][1].get(name), self._samples[-1][1].get(name)
        return 0 if before is None or after is None else after - before

    def rates(self):
        """The Rates over the window; empty while they are not known."""
        samples = self._samples
        if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
            return NO_RATES
        return Rates(samples[0], samples[-1], self._resets() if self._since else ())

    def _resets(self):
        first_ns = self._samples[0][0]
        self._since = {name: sample for name, sample in self._since.items() if sample[0] > first_ns}
        return tuple(self._since.items())


class _NoRates(Rates):
    """Nothing is known yet."""

    __slots__ = ()

    def __init__(self):
        super().__init__((0, {}), (1, {}))


NO_RATES = _NoRates()


class PeerTrack:
    """What a PE has put to and got from its peers' rails over the last `window_s` seconds. A pair that is not in a
    sample counts as 0, and one that goes back counts as still."""

    __slots__ = ("_window_ns", "_samples")

    def __init__(self, window_s):
        self._window_ns = int(window_s * 1e9)
        self._samples = deque()  # (time_ns, places, puts, gets)

    def add(self, time_ns, peers):
        samples = self._samples
        if peers:
            peer, rail, puts, gets = zip(*peers)
            samples.append((time_ns, tuple(zip(peer, rail)), puts, gets))
        else:
            samples.append((time_ns, (), (), ()))
        while len(samples) > 2 and samples[1][0] <= time_ns - self._window_ns:
            samples.popleft()

    def rates(self):
        """(places, bytes put per second to each, bytes got per second from each)."""
        if len(self._samples) < 2 or self._samples[-1][0] <= self._samples[0][0]:
            return (), (), ()
        (first_ns, known, *before), (last_ns, places, *now) = self._samples[0], self._samples[-1]
        if places != known:
            values = [dict(zip(known, row)) for row in before]
            before = [[row.get(place, 0) for place in places] for row in values]
        per_ns = repeat(1e9 / (last_ns - first_ns))
        return places, *(_steps(row, old, per_ns) for row, old in zip(now, before))


def _steps(now, before, per_ns):
    """The row of rates; () if nothing moved, which most gets do not."""
    if now == before:
        return ()
    steps = list(map(sub, now, before))
    if min(steps, default=0) < 0:
        steps = [max(0, step) for step in steps]
    return list(map(mul, steps, per_ns))
