"""What is shown: the rates between Snapshots, as values. rates.py makes them, every view and export reads them.
To add a metric: docs/DEVELOPING.md, "A metric of weft-top".

Invariants: a Frame never changes after it was made; no rate is negative; a rate that is not known is missing
or None, never 0. Units: rates per second, `*_bits_per_s` bits per second, shares 1.0 for the whole.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Mapping, Optional, Sequence, Tuple

from .model import Nic, Notice, PePage, Rail

NO_RATES: Mapping = MappingProxyType({})


@dataclass(slots=True)
class NicRates:
    """One NIC and how fast its counters move."""

    nic: Nic
    # Counter name -> per second; missing when not known yet.
    rates: Mapping[str, float] = field(default_factory=lambda: NO_RATES)
    tx_bits_per_s: Optional[float] = None
    rx_bits_per_s: Optional[float] = None
    tx_share: Optional[float] = None  # of the line rate; may be above 1
    rx_share: Optional[float] = None
    # (tx_bits_per_s, rx_bits_per_s), one a second, oldest first, at most 60
    history: Sequence[Tuple[float, float]] = ()


@dataclass(slots=True)
class RailRates:
    """One rail of a PE. Beside the page's own counters `rates` may have rx_bytes_by_puts and tx_bytes_by_gets:
    what the peers whose pages are here have put to this rail and got from it. The bits include them."""

    rail: Rail
    rates: Mapping[str, float] = field(default_factory=lambda: NO_RATES)
    tx_bits_per_s: Optional[float] = None
    rx_bits_per_s: Optional[float] = None
    line_bits_per_s: Optional[int] = None  # of its NIC, or as its page says


@dataclass(slots=True)
class PeRates:
    """One PE. A balance is max/mean over its rails (balance.py), 1.0 is even; None where next to nothing moves."""

    page: PePage
    rails: Tuple[RailRates, ...] = ()
    tx_balance: Optional[float] = None
    rx_balance: Optional[float] = None
    worst_tx_rail: Optional[int] = None  # the rail with the largest load
    worst_rx_rail: Optional[int] = None
    # (peer, peer's rail) -> bytes put and got per second.
    traffic: Mapping[Tuple[int, int], float] = field(default_factory=lambda: NO_RATES)
    verdict: str = ""  # one sentence, or nothing
    # The mean max/mean of its NICs in 10 ms over the last ten seconds; None where too little is
    # known.
    tx_balance_in_time: Optional[float] = None
    rx_balance_in_time: Optional[float] = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that changed. `severity` is "info", "warning" or "error"."""

    wall_ns: int
    subject: str  # "PE 3 rail 2 (nic2)"
    text: str
    severity: str = "info"


@dataclass(slots=True)
class Frame:
    """All that one look gives to a reader."""

    time_ns: int
    wall_ns: int
    interval_s: float  # since the frame before; 0.0 for the first
    nics: Tuple[NicRates, ...] = ()
    pes: Tuple[PeRates, ...] = ()
    events: Tuple[Event, ...] = ()  # new since the frame before
    notices: Tuple[Notice, ...] = field(default=())
