"""The seam between views and the canvas: what a view hands over to be painted. Pure.

Invariants: making a Page costs little for lines that are not seen, since a line is drawn only when asked for;
`key` is the same for the same thing in every Frame.
"""

from dataclasses import dataclass
from typing import Callable, Optional, Sequence, Tuple


def _none(_item):
    return None


@dataclass(slots=True)
class Page:
    """`head` stays while `rows` scroll. `draw(row)` -> Line. `key(row)`: what the cursor holds on to, None where
    it cannot stand. `opens(row)`: key of the NIC that Enter shows, or None. `spans`: (first cell, end, column) in
    the last line of `head`. `columns`: those that can be sorted by; `sort` is the (name, descending) in use.
    `empty` is said where there are no rows. `left_max`: how many steps it scrolls sideways."""

    head: Tuple = ()
    rows: Sequence = ()
    draw: Callable = None
    key: Callable = _none
    opens: Callable = _none
    spans: Tuple = ()
    columns: Tuple = ()
    sort: Optional[Tuple] = None
    empty: str = ""
    has_cursor: bool = True
    left_max: int = 0


class NicIndex:
    """Finds the NIC of a rail. A provider may name a NIC after its device with something behind it."""

    def __init__(self, frame):
        self._nics = {(nic.nic.namespace, nic.nic.name): nic for nic in frame.nics}

    def find(self, page, rail):
        """The NicRates of a rail of a PePage, or None."""
        for name in (rail.nic, rail.nic.rpartition("-")[0]):
            found = self._nics.get((page.namespace, name)) or self._nics.get(("", name))
            if found is not None:
                return found
        return None


def nic_label(nic):
    """How a NIC is called in a table: HOST/NAME."""
    return f"{nic.namespace}/{nic.name}" if nic.namespace else nic.name


def pe_label(page):
    """How a PE is called in a table: "PE 3 host"."""
    return f"PE {page.pe}" + (f" {page.namespace}" if page.namespace else "")


def nothing(state, what):
    """The sentence for an empty page: because of the filter, or because there is nothing."""
    return f"nothing matches the filter \"{state.filter_text}\"; Esc clears it" if state.filter_text else what


def balance_style(value):
    """(style, mark) of a max/mean: beyond 1.1 something is uneven, beyond 2 it costs half of the bandwidth."""
    if value is None or value <= 1.1:
        return "", " "
    return ("bad", "!") if value > 2 else ("warn", "!")
