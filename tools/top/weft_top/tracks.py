"""The recent past of counters: judges wraps and resets, and gives rolling rates.

Owner: whoever adds the samples (one thread). Invariants: a total never decreases, so no rate is negative; a
counter that goes back is a wrap of 32 bits where that is likely, else a reset, and after a reset its rate is
not known until two samples have been seen since.
"""

from collections import deque

# Counters that drivers keep in 32 bits; and those in words of 4 bytes, which a source has made into bytes.
_WRAPS = (1 << 32, 1 << 34)


def wrap_of(before, after, step_max):
    """The modulus if `after` < `before` looks like a wrap, else 0. `step_max` is the largest plausible step, or
    None where nothing is known: then only the wrap of 32 bits, near both of its ends, is believed."""
    for modulus in _WRAPS if step_max is not None else _WRAPS[:1]:
        if before < modulus and before >= modulus - modulus // 4 and after < modulus // 4:
            if step_max is None or after + modulus - before <= step_max:
                return modulus
    return 0


class CounterTrack:
    """The counters of one thing over the last `window_s` seconds."""

    __slots__ = ("_window_ns", "_zero", "_samples", "_raw", "_offsets", "_since")

    def __init__(self, window_s, missing_is_zero=False):
        self._window_ns = int(window_s * 1e9)
        self._zero = missing_is_zero
        self._samples = deque()  # (time_ns, {name: total})
        self._raw = None
        self._offsets = {}
        self._since = {}  # name -> when it was reset

    def add(self, time_ns, counters, step_max=None):
        """Take a sample; `step_max(name)` bounds a plausible step. Returns the names that were reset."""
        reset = self._judge(time_ns, counters, step_max) if self._raw is not None and counters != self._raw else ()
        # What is missing for a while must not come back lower than it was.
        keeps_all = self._raw is None or counters.keys() >= self._raw.keys()
        self._raw = counters if keeps_all else {**self._raw, **counters}
        offsets = self._offsets
        totals = {name: value + offsets.get(name, 0) for name, value in counters.items()} if offsets else counters
        samples = self._samples
        samples.append((time_ns, totals))
        while len(samples) > 2 and samples[1][0] <= time_ns - self._window_ns:
            samples.popleft()
        return reset

    def _judge(self, time_ns, counters, step_max):
        reset = []
        for name, before in self._raw.items():
            after = counters.get(name, before)
            if after < before:
                modulus = wrap_of(before, after, step_max(name) if step_max else None)
                self._offsets[name] = self._offsets.get(name, 0) + (modulus or before - after)
                if not modulus:
                    self._since[name] = time_ns
                    reset.append(name)
        return reset

    def totals(self):
        """Name -> all that was counted since the first sample, plus the first value. Do not change it."""
        return self._samples[-1][1] if self._samples else {}

    def step(self, name):
        """What the last sample added; 0 where that is not known."""
        if len(self._samples) < 2:
            return 0
        before, after = self._samples[-2][1], self._samples[-1][1]
        if name not in after or (name not in before and not self._zero):
            return 0
        return after[name] - before.get(name, 0)

    def rates(self):
        """Name -> per second over the window."""
        if len(self._samples) < 2:
            return {}
        (first_ns, first), (last_ns, last) = self._samples[0], self._samples[-1]
        if last_ns <= first_ns:
            return {}
        per_ns = 1e9 / (last_ns - first_ns)
        if self._zero:
            rates = {name: (value - first.get(name, 0)) * per_ns for name, value in last.items()}
        elif first.keys() == last.keys():
            rates = {name: (value - first[name]) * per_ns for name, value in last.items()}
        else:
            rates = {name: (value - first[name]) * per_ns for name, value in last.items() if name in first}
        if self._since:
            self._correct(rates, first_ns)
        return rates

    def _correct(self, rates, first_ns):
        """Rates of counters that were reset in the window: from the reset on, or missing."""
        for name, since_ns in list(self._since.items()):
            if since_ns <= first_ns:
                del self._since[name]
                continue
            rates.pop(name, None)
            start = next(sample for sample in self._samples if sample[0] >= since_ns)
            last_ns, last = self._samples[-1]
            if last_ns > start[0] and name in last and name in start[1]:
                rates[name] = (last[name] - start[1][name]) * 1e9 / (last_ns - start[0])
