"""`--perfetto`: a trace in the trace event format's JSON, which ui.perfetto.dev opens: counter tracks in Mbit/s
for each NIC and each rail, and the events of the log as instants.

Owner: one thread. Invariant: after each frame the file is complete JSON, so a program that is killed leaves a
trace that opens; a counter is written when it changes.
"""

import json
import os

_END = b"\n]\n"
EVENTS_PROCESS = 1


class PerfettoTrace:
    """Writes each Frame to `path`, which it overwrites. OSError where that fails."""

    name = "perfetto"

    def __init__(self, path):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._end = 0  # where the next event goes
        self._processes = {}  # name -> number
        self._last = {}  # (process, counter) -> value
        self._first_ns = None
        self._events = []
        self._number("weft-top events")
        self._flush()

    def write(self, snapshot, frame):
        if self._first_ns is None:
            self._first_ns = frame.time_ns
        time_us = (frame.time_ns - self._first_ns) / 1000
        for nic in frame.nics:
            process = self._number(f"NICs of {nic.nic.namespace}" if nic.nic.namespace else "NICs")
            self._counter(process, f"{nic.nic.name} ({nic.nic.kind})", time_us, nic)
        for pe in frame.pes:
            process = self._number(f"PE {pe.page.pe} of job {pe.page.job}")
            for rail in pe.rails:
                self._counter(process, f"rail {rail.rail.index} ({rail.rail.nic})", time_us, rail)
        for event in frame.events:
            self._events.append({"ph": "i", "s": "g", "pid": EVENTS_PROCESS, "tid": 1, "ts": time_us,
                                 "name": f"{event.subject}: {event.text}", "cat": event.severity})
        self._flush()

    def _number(self, name):
        """The process that stands for a group of tracks; the viewer shows its name."""
        if name not in self._processes:
            number = self._processes[name] = len(self._processes) + EVENTS_PROCESS
            self._events.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": name}})
        return self._processes[name]

    def _counter(self, process, name, time_us, rates):
        for direction, rate in (("TX", rates.tx_bits_per_s), ("RX", rates.rx_bits_per_s)):
            if rate is None:
                continue
            key, value = (process, name, direction), round(rate / 1e6, 6)
            if self._last.get(key) != value:
                self._last[key] = value
                self._events.append({"ph": "C", "pid": process, "ts": time_us, "name": f"{name} {direction}",
                                     "args": {"Mbit/s": value}})

    def _flush(self):
        """One write puts the new events over the old end, and a new end behind them."""
        if not self._events:
            return
        lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in self._events).encode()
        self._events = []
        data = (b",\n" if self._end else b"[\n") + lines
        whole, offset = data + _END, self._end
        while whole:
            written = os.pwrite(self._descriptor, whole, offset)
            whole, offset = whole[written:], offset + written
        self._end += len(data)

    def close(self):
        os.close(self._descriptor)
