"""The table of NICs: TX and RX as numbers, shares and bars, packets, drops, and a sparkline of the last minute."""

import re
from functools import lru_cache

from .. import lines, numbers
from ..table import Column, Table, order
from .page import Page, nic_label, nothing

FULL_SHARE = 0.95  # of the line rate: from here on the bar has the colour of a warning
# A sparkline's full height is at least this share of the line rate, so that idle chatter stays low.
SPARK_TOP_SHARE = 0.01
SPARK_TOP_BITS = 1e6
EMPTY = "no NIC was found here: no RDMA device, no network interface, no NVLink"


@lru_cache(maxsize=8192)
def natural(text):
    """A sort key by which nic10 comes after nic9."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def name_key(item):
    return natural(item.nic.namespace), natural(item.nic.name)


def _sum(item, *names):
    """The sum of those rates that are known; None where none is."""
    known = [item.rates[name] for name in names if name in item.rates]
    return sum(known) if known else None


def packets(item):
    return _sum(item, "tx_packets", "rx_packets")


def drops(item):
    return _sum(item, "tx_drops", "rx_drops")


def errors(item):
    return _sum(item, "tx_errors", "rx_errors", "retransmits")


def _count_cell(value, width, alarm=False):
    style = "bad" if alarm and value else ""
    return [(numbers.count(value, width), style)]


def _state_cell(item, width):
    state = item.nic.state
    return [(lines.fit("" if state == "up" else "!" if state == "down" else "?", width), "bad" if state == "down" else "dim")]


def _is_full(share):
    return share is not None and share > FULL_SHARE


class _Sparks:
    """Sparklines, kept while they are the same: a history changes once a second, and a paint may come more often."""

    KEPT_MAX = 4096

    def __init__(self):
        self._kept = {}  # NIC's key -> (history, (width, phase), text)

    def text(self, item, width, phase):
        kept = self._kept.get(item.nic.key)
        # The same object is the same history; comparing its values would cost as much as drawing
        # them.
        if kept is not None and kept[0] is item.history and kept[1] == (width, phase):
            return kept[2]
        text = self._draw(item, width, phase)
        if len(self._kept) >= self.KEPT_MAX:
            self._kept.clear()
        self._kept[item.nic.key] = (item.history, (width, phase), text)
        return text

    @staticmethod
    def _draw(item, width, phase):
        """A minute of TX and RX together."""
        values = [tx + rx for tx, rx in item.history]
        line = item.nic.rate_bits_per_s
        top = max(max(values, default=0), line * SPARK_TOP_SHARE if line else SPARK_TOP_BITS)
        return lines.spark(values, width, top, phase)


_SPARKS = _Sparks()


class _Cells:
    """Draws what depends on the unit and on the largest value of a column."""

    def __init__(self, state, items):
        self.bits = state.unit_bits
        known = [value for item in items for value in (item.tx_bits_per_s, item.rx_bits_per_s) if value is not None]
        self.decimals = numbers.decimals_for(max(known, default=0) / self.bits)
        # Where no line rate is known a bar is of the largest.
        self.largest = max(known, default=0)
        self.phase = state.frame.time_ns // 1_000_000_000

    def rate(self, direction):
        name = f"{direction}_bits_per_s"

        def draw(item, width):
            value = getattr(item, name)
            return [(numbers.rate(None if value is None else value / self.bits, self.decimals, width), "")]

        return draw

    def share(self, direction):
        name = f"{direction}_share"
        return lambda item, width: [(numbers.percent(getattr(item, name), width), "warn" if _is_full(getattr(item, name)) else "")]

    def bar(self, direction):
        share_name, bits_name = f"{direction}_share", f"{direction}_bits_per_s"

        def draw(item, width):
            share, value = getattr(item, share_name), getattr(item, bits_name)
            if share is None and value is not None and self.largest:
                share = value / self.largest
            return [(lines.bar(share, width), "full" if _is_full(getattr(item, share_name)) else direction)]

        return draw

    def spark(self, item, width):
        return [(_SPARKS.text(item, width, self.phase), "spark")]


def columns(state, items):
    """The Columns for these NicRates, most important first in priority."""
    cells = _Cells(state, items)
    tx, rx = (lambda item: item.tx_bits_per_s), (lambda item: item.rx_bits_per_s)
    # What the longest name needs, as far as there is room.
    names = max((len(nic_label(item.nic)) for item in items), default=0)
    return (
        Column("state", "", 1, _state_cell),
        Column("name", "NIC", 13, lambda item, width: [(lines.fit(nic_label(item.nic), width, "tail"), "")],
               name_key, min(max(names, 13), 40), 0, "left", False),
        Column("tx", "TX", 6, cells.rate("tx"), tx),
        Column("tx_share", "", 4, cells.share("tx"), None, 0, 1),
        Column("tx_bar", "of line", 7, cells.bar("tx"), None, 22, 2, "left"),
        Column("rx", "RX", 6, cells.rate("rx"), rx),
        Column("rx_share", "", 4, cells.share("rx"), None, 0, 1),
        Column("rx_bar", "of line", 7, cells.bar("rx"), None, 22, 2, "left"),
        Column("packets", "pkt/s", 6, lambda item, width: _count_cell(packets(item), width), packets, 0, 4),
        Column("drops", "drop/s", 6, lambda item, width: _count_cell(drops(item), width, True), drops, 0, 3),
        Column("errors", "err/s", 5, lambda item, width: _count_cell(errors(item), width, True), errors, 0, 7),
        Column("spark", "last min", 9, cells.spark, None, 31, 5, "left"),
        Column("line", "line rate", 11, lambda item, width: [(numbers.line_rate(item.nic.rate_bits_per_s).rjust(width), "")],
               lambda item: item.nic.rate_bits_per_s, 0, 8),
        Column("driver", "driver", 10, lambda item, width: [(lines.fit(item.nic.driver, width), "")],
               lambda item: item.nic.driver, 0, 9, "left", False),
    )  # fmt: skip


class NicsView:
    name, title = "nics", "NICs"

    def page(self, state, width, height):
        items = [item for item in state.frame.nics if self._matches(state, item.nic)]
        all_columns = columns(state, items)
        sort = state.place(self.name).sort or ("name", False)
        items.sort(key=name_key)
        items = order(items, all_columns, sort)
        table = Table(all_columns, width)
        head, spans = table.header(sort)
        return Page(
            (head,), items, table.line, lambda item: item.nic.key, lambda item: item.nic.key, spans,
            tuple(column for column, _ in table.columns if column.sort_key), sort, nothing(state, EMPTY))  # fmt: skip

    @staticmethod
    def _matches(state, nic):
        return state.matches(nic.name, nic.namespace, nic.driver, nic.kind, nic.address)
