"""Bursts of quick looks at the bytes of those NICs that PEs use, 10 ms apart: what happens within a second.

Owner: the collector's thread calls begin() and take(); a thread of its own looks meanwhile, so that nobody waits.
Invariants: that thread touches only what it was given, descriptors of its own, which it closes; it keeps what it
read as bytes, which take() parses. A burst costs 11 reads of each namespace a second.
"""

import os
import threading
import time

from ..model import Look
from ..moments import STEP_NS

LOOK_COUNT = 11
PERIOD_NS = 1_000_000_000


class Target:
    """Some counters to look at. `descriptors` are duplicated; `read(descriptor)` gives what one holds, and `parse` of
    the list of these {NIC's key: (tx_bytes, rx_bytes)}."""

    __slots__ = ("descriptors", "parse", "_read")

    def __init__(self, descriptors, read, parse):
        self.descriptors = [os.dup(descriptor) for descriptor in descriptors]
        self.parse = parse
        self._read = read

    def read(self):
        return [self._read(descriptor) for descriptor in self.descriptors]

    def close(self):
        while self.descriptors:
            os.close(self.descriptors.pop())


class Glances:
    """One burst at a time."""

    def __init__(self, step_ns=STEP_NS, look_count=LOOK_COUNT, period_ns=PERIOD_NS):
        self._step_ns, self._look_count, self._period_ns = step_ns, look_count, period_ns
        self._begun_ns = None
        self._thread = None
        self._targets = ()
        self._looks = []  # (time_ns, [data of each target])
        self._ending = threading.Event()

    def close(self):
        self._ending.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def is_due(self, time_ns):
        return self._thread is None and (self._begun_ns is None or time_ns - self._begun_ns >= self._period_ns)

    def begin(self, time_ns, targets):
        """Start a burst at the Targets, which are closed with it."""
        self._begun_ns = time_ns
        self._targets, self._looks = tuple(targets), []
        if self._targets:
            self._thread = threading.Thread(target=self._run, name="weft-top burst", daemon=True)
            self._thread.start()

    def take(self):
        """The Looks of the burst that has ended since, () if there is none."""
        if self._thread is None or self._thread.is_alive():
            return ()
        self._thread.join()
        self._thread = None
        return tuple(self._parsed())

    def _run(self):
        due = time.monotonic_ns()
        try:
            for _ in range(self._look_count):
                now = time.monotonic_ns()
                self._looks.append((now, [target.read() for target in self._targets]))
                due = max(due + self._step_ns, now)
                if self._ending.wait(max(0, due - time.monotonic_ns()) / 1e9):
                    break
        except OSError:
            self._looks = []  # the device or the namespace has just gone
        finally:
            for target in self._targets:
                target.close()

    def _parsed(self):
        for time_ns, rows in self._looks:
            found = {}
            for target, data in zip(self._targets, rows):
                found.update(target.parse(data))
            yield Look(time_ns, tuple((key, *values) for key, values in sorted(found.items())))
