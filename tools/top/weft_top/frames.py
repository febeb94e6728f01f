"""Where frames come from, for the screen and for everything without one: the machine, or a recording.

Owner: one thread calls next_frame(). Invariants: next_frame() never sleeps, pacing is its caller's; every frame
that is handed out has gone to all sinks before.
"""

from .model import Notice
from .rates import RateHistory


class FrameSource:
    """What the screen and the headless modes read. A sink has write(snapshot, frame) and close()."""

    is_replay = False

    def __init__(self, frames_interval_s=1.0, sinks=()):
        self.frames_interval_s = frames_interval_s  # how often the reader means to call; it may change it
        self._history = RateHistory()
        self._sinks = list(sinks)
        self.failures = []  # [Notice] of sinks that could not go on, a full disk say

    def next_frame(self):
        """The next Frame; None at the end of a recording."""
        snapshot = self._next_snapshot()
        if snapshot is None:
            return None
        frame = self._history.add(snapshot)
        for sink in list(self._sinks):
            try:
                sink.write(snapshot, frame)
            except OSError as error:
                self._give_up(sink, error)
        frame.notices += tuple(self.failures)
        return frame

    def _give_up(self, sink, error):
        self._sinks.remove(sink)
        self.failures.append(Notice(sink.name, f"stopped: {error.strerror or error}"))
        sink.close()

    def close(self):
        """Complete the files of all sinks, and let go of everything open. May be called twice."""
        while self._sinks:
            self._sinks.pop().close()

    def _next_snapshot(self):
        raise NotImplementedError


class LiveSource(FrameSource):
    """The machine, now."""

    def __init__(self, collector, frames_interval_s=1.0, sinks=()):
        super().__init__(frames_interval_s, sinks)
        self._collector = collector

    def _next_snapshot(self):
        return self._collector.sample()

    def close(self):
        super().close()
        self._collector.close()


class ReplaySource(FrameSource):
    """A recording, from its first frame to its last. frames_interval_s follows the recording."""

    is_replay = True

    def __init__(self, recording, sinks=()):
        super().__init__(1.0, sinks)
        self._recording = recording
        self._snapshots = recording.snapshots()
        self._last_ns = None

    def _next_snapshot(self):
        snapshot = next(self._snapshots, None)
        if snapshot is not None:
            if self._last_ns is not None and snapshot.time_ns > self._last_ns:
                self.frames_interval_s = (snapshot.time_ns - self._last_ns) / 1e9
            self._last_ns = snapshot.time_ns
        return snapshot

    @property
    def trouble(self):
        """What is wrong with the recording, once its end was reached; "" if nothing."""
        return self._recording.trouble

    def close(self):
        super().close()
        self._recording.close()
