"""What one look at the machine found, as values. Sources make them, all views and exports read them.

Invariants: a Snapshot is complete and never changes; every counter is cumulative and as its source gave
it, so that wraps and resets are judged in one place (rates.py); a key names the same thing in every
Snapshot of a run and in a recording. What is made by the hundred at each look is a NamedTuple, which costs a
third of a frozen dataclass.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Mapping, NamedTuple, Optional, Tuple

NO_COUNTERS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds a NIC or is a PE."""

    pid: int
    command: str


class Nic(NamedTuple):
    """One network interface, RDMA device port or NVLink GPU at one moment."""

    key: str  # "net:NAMESPACE/NAME", "rdma:NAME/PORT", "nvlink:INDEX"
    kind: str  # "net", "rdma" or "nvlink"
    name: str
    namespace: str = ""  # of net: "" is this process's own, else the lab's host or "net:[INODE]"
    state: str = "unknown"  # "up", "down", "unknown"
    rate_bits_per_s: Optional[int] = None  # line rate of one direction
    driver: str = ""  # "efa", "mlx5_core", "veth", ...
    address: str = ""
    # By the names of nic_counters.py, without what its source does not know; others keep the
    # device's names.
    counters: Mapping[str, int] = NO_COUNTERS
    processes: Tuple[Process, ...] = ()


class Rail(NamedTuple):
    """One rail of one PE, from its page."""

    index: int
    nic: str
    address: str
    up: bool
    warm: bool
    rate_bits_per_s: Optional[int]
    outstanding_bytes: int
    # tx_bytes rx_bytes tx_operations rx_operations tx_signals rx_signals retries errors
    # rx_message_bytes refused
    counters: Mapping[str, int]

    @property
    def device(self):
        """The kernel's name of its NIC: libfabric calls the domain of an EFA device NAME-rdm."""
        return self.nic.removesuffix("-rdm")


class PeerTraffic(NamedTuple):
    """What a PE has exchanged with one rail of one peer. A put leaves no trace at its target, so the
    bytes that a PE's rail received are the sum of its peers' put_bytes, as far as their pages are here."""

    peer: int
    rail: int  # the peer's
    put_bytes: int
    get_bytes: int


@dataclass(frozen=True, slots=True)
class PePage:
    """The counter page of one PE."""

    key: str  # "JOB/PE"
    job: str
    pe: int
    pe_count: int
    process: Process
    policy: str
    namespace: str  # as in Nic
    rails: Tuple[Rail, ...]
    peers: Tuple[PeerTraffic, ...] = ()  # in the order of (peer, rail)
    # When it was read, by the clock of Snapshot.time_ns; 0: with the Snapshot. The same time twice:
    # not read again.
    read_ns: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about a source that a reader should know: a page of another version, a folder that may not be read."""

    source: str
    text: str


class Look(NamedTuple):
    """The bytes of the NICs that PEs use, in the midst of a burst of looks 10 ms apart."""

    time_ns: int  # by the clock of Snapshot.time_ns
    nics: Tuple[Tuple[str, int, int], ...]  # (key, tx_bytes, rx_bytes)

    def counts(self):
        """{key: (tx_bytes, rx_bytes)}"""
        return {key: (tx, rx) for key, tx, rx in self.nics}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that was found at one moment."""

    time_ns: int  # monotonic, differences only
    wall_ns: int  # since 1970
    nics: Tuple[Nic, ...] = ()
    pes: Tuple[PePage, ...] = ()
    notices: Tuple[Notice, ...] = field(default=())
    looks: Tuple[Look, ...] = ()  # the burst that has ended since the Snapshot before, if one has
