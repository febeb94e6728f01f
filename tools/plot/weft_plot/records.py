"""What recorded lines mean, as values. forms.py makes them, everything behind it reads them only.

Units are fixed here, whatever a line had: microseconds, GB/s of 1e9 bytes, bytes, milliseconds since the
run began. `fields` says under which circumstances a value was measured (see series.py); a field that a
line does not have is absent.
"""
from collections.abc import Mapping
from dataclasses import dataclass

Fields = Mapping[str, object]


@dataclass(frozen=True)
class Point:
    """One measured value at one size."""

    benchmark: str
    metric: str  # a key of METRICS
    size: int  # bytes; 0 where a benchmark has none
    value: float
    fields: Fields


@dataclass(frozen=True)
class Step:
    """The throughput of one run at one moment."""

    benchmark: str
    run: tuple  # the same for all steps of a run
    time_ms: float
    value: float  # GB/s since the step before
    fields: Fields


@dataclass(frozen=True)
class Event:
    """What was done to a run from outside, at one moment."""

    benchmark: str
    run: tuple
    time_ms: float
    what: str
    fields: Fields


@dataclass(frozen=True)
class Nic:
    node: int
    name: str
    tx_bytes: int
    rx_bytes: int
    sends: bool = True  # its PEs take part in that direction
    receives: bool = True


@dataclass(frozen=True)
class NicLoads:
    """The bytes of every NIC in one run."""

    benchmark: str
    nics: tuple[Nic, ...]
    source: str  # "kernel" or "library": who counted
    fields: Fields


@dataclass(frozen=True)
class PeerMatrix:
    """Who sent how much to whom: matrix[from][to]."""

    benchmark: str
    matrix: tuple[tuple[float, ...], ...]
    unit: str  # "bytes" or "bytes/s"
    fields: Fields
    grows_in: str = ""  # a job whose matrices only grow, so that its last one counts


@dataclass(frozen=True)
class Comparison:
    """A row of scripts/bench: samples of both sides, in the metric's unit."""

    benchmark: str  # the row's name
    what: str
    metric: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    date: str
    fields: Fields


# metric -> the label of its axis
METRICS = {
    "latency": "latency (µs)",
    "bandwidth": "bandwidth (GB/s)",
    "bus_bandwidth": "bus bandwidth (GB/s)",
    "throughput": "throughput (GB/s)",
    "rate": "operations per second",
    "memory": "memory (MiB)",
}

# unit of a line -> metric, factor to the metric's unit
UNITS = {
    "ns": ("latency", 1e-3), "us": ("latency", 1.0), "µs": ("latency", 1.0), "ms": ("latency", 1e3), "s": ("latency", 1e6),
    "GB/s": ("bandwidth", 1.0), "MB/s": ("bandwidth", 1e-3),
    "1/s": ("rate", 1.0), "messages/s": ("rate", 1.0), "reads/s": ("rate", 1.0), "M/s": ("rate", 1e6),
    "MiB": ("memory", 1.0),
}
