"""How evenly each PE uses its rails, in each direction: small bars, max/mean, the worst rail, and the verdict in words.

A PE is one line, and one more for its verdict; its rails are unfolded below it where all fit, or by a key.
"""

import textwrap
from dataclasses import dataclass

from ...balance import loads
from .. import lines, numbers
from ..table import Column, Table, order
from .nics import natural
from .page import NicIndex, Page, balance_style, nothing, pe_label

EMPTY = "no job was found: a Weft job is shown while it runs, by the counter pages of its PEs"
ONE_NODE = "all its PEs are on one node: it uses no NIC"
VERDICT_CELLS = 79  # the usual verdict; a screen that has so much room shows it in the PE's line


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the view: a PE, one of its rails, or a piece of its verdict."""

    pe: object
    rail: object = None
    words: str = ""

    def key(self):
        if self.words:
            return None
        return self.pe.page.key, None if self.rail is None else self.rail.rail.index


def total(rails, direction):
    """Bits per second of all rails; None where none is known."""
    known = [value for value in (getattr(rail, f"{direction}_bits_per_s") for rail in rails) if value is not None]
    return sum(known) if known else None


def glyphs(rails, direction, width):
    """One cell a rail; where there are more rails than cells, each shows the largest of its group."""
    values = [getattr(rail, f"{direction}_bits_per_s") or 0.0 for rail in rails]
    group = -(-len(values) // width) if values else 1
    values = [max(values[begin:begin + group]) for begin in range(0, len(values), group)]
    return lines.levels(values).ljust(width)


class _Figures:
    """The scales of one paint: the unit, the decimals of PEs' and of rails' rates, the largest rail."""

    def __init__(self, state, pes):
        self.bits = state.unit_bits
        totals = [total(pe.rails, direction) or 0 for pe in pes for direction in ("tx", "rx")]
        rails = [value or 0 for pe in pes for rail in pe.rails for value in (rail.tx_bits_per_s, rail.rx_bits_per_s)]
        self.decimals = numbers.decimals_for(max(totals, default=0) / self.bits)
        self.largest = max(rails, default=0)
        self.rail_decimals = numbers.decimals_for(self.largest / self.bits)

    def rate(self, value, width, decimals):
        return numbers.rate(None if value is None else value / self.bits, decimals, width)


def _ratio_cell(value, width):
    style, mark = balance_style(value)
    return [(numbers.ratio(value, width - 1), style), (mark, style)]


def _worst(pe):
    """The rail to look at: of the direction that is less even."""
    if (pe.rx_balance or 0) >= (pe.tx_balance or 0):
        return pe.worst_rx_rail, pe.rx_balance
    return pe.worst_tx_rail, pe.tx_balance


def _worst_cell(pe, width):
    down = [rail.rail.index for rail in pe.rails if not rail.rail.up]
    if down:
        return [(lines.fit(f"{down[0]} down!" if len(down) == 1 else f"{len(down)} down!", width), "bad")]
    index, balance = _worst(pe)
    style, mark = balance_style(balance)
    return [(lines.fit(f"rail {index}" if index is not None and mark == "!" else "", width), style)]


def _verdict_style(pe):
    return (balance_style(_worst(pe)[1])[0] or "warn") + "-words" if pe.verdict else "dim"


def _verdict_cell(pe, width):
    return [(lines.fit(_words(pe), width), _verdict_style(pe))]


def _words(pe):
    return pe.verdict or ("" if pe.rails else ONE_NODE)


def _name_key(pe):
    return natural(pe.page.job), pe.page.pe


def pe_columns(figures, jobs, rail_count):
    """The Columns of a PE's line."""

    def side(direction, title):
        return (
            Column(direction, title, 6, lambda pe, width: [
                (figures.rate(total(pe.rails, direction), width, figures.decimals), "")],
                lambda pe: total(pe.rails, direction)),
            Column(f"{direction}_rails", "rails", 6, lambda pe, width: [(glyphs(pe.rails, direction, width), direction)],
                   None, max(rail_count, 6), 3, "left"),
            Column(f"{direction}_balance", "max/mean", 8, lambda pe, width: _ratio_cell(getattr(pe, f"{direction}_balance"), width),
                   lambda pe: getattr(pe, f"{direction}_balance")),
        )  # fmt: skip

    return (
        Column("name", "PE", 9, lambda pe, width: [(lines.fit(pe_label(pe.page), width), "bold")], _name_key, 22, 0,
               "left", False),
        *side("tx", "TX"),
        *side("rx", "RX"),
        Column("worst", "worst", 7, _worst_cell, None, 0, 2, "left"),
        Column("policy", "policy", 8, lambda pe, width: [(lines.fit(pe.page.policy, width), "")],
               lambda pe: pe.page.policy, 12, 4, "left", False),
        Column("job", "job", 8, lambda pe, width: [(lines.fit(pe.page.job, width), "")],
               lambda pe: natural(pe.page.job), 24, 1 if jobs > 1 else 5, "left", False),
        Column("process", "process", 12, lambda pe, width: [
            (lines.fit(f"{pe.page.process.pid} {pe.page.process.command}", width), "dim")], None, 24, 6, "left"),
        Column("verdict", "", VERDICT_CELLS, _verdict_cell, None, VERDICT_CELLS, 7, "left"),
    )  # fmt: skip


def _rail_label(row, width):
    rail = row.rail.rail
    state = "" if rail.up else "!down"
    name = lines.fit(f"  rail {rail.index:<2} {rail.nic}", width - len(state))
    return [(name, "dim" if rail.up else "bad"), (state, "bad")]


def rail_columns(figures):
    """The Columns of a rail's line: its rate, beside the mean of its PE's rails, and a bar on one scale for all."""

    def side(direction, title):
        attribute = f"{direction}_bits_per_s"

        def times_mean(row, width):
            load = next((load for rail, load in zip(row.pe.rails, loads(row.pe.rails, direction)) if rail is row.rail), None)
            return _ratio_cell(load if getattr(row.rail, attribute) is not None else None, width)

        def draw_bar(row, width):
            value = getattr(row.rail, attribute)
            return [(lines.bar(value / figures.largest if value and figures.largest else 0, width), direction)]

        return (
            Column(direction, title, 6, lambda row, width: [
                (figures.rate(getattr(row.rail, attribute), width, figures.rail_decimals), "")]),
            Column(f"{direction}_mean", "x mean", 6, times_mean, None, 0, 1),
            Column(f"{direction}_bar", "", 8, draw_bar, None, 60, 2, "left"),
        )  # fmt: skip

    return (Column("label", "", 20, _rail_label, None, 28, 0, "left"), *side("tx", "TX"), *side("rx", "RX"))


def _wrapped(words, width):
    """Lines of at most `width`; where one is not enough it breaks between two statements rather than anywhere."""
    words = lines.clean(words)
    if not words.strip():
        return []
    if len(words) == width + 1 and words.startswith("! "):
        words = "!" + words[2:]
    if len(words) <= width:
        return [words]
    first, mark, rest = words.rpartition("; ")
    if mark and max(len(first) + 1, len(rest) + 2) <= width:
        return [first + ";", "  " + rest]
    return textwrap.wrap(words, max(width, 10), subsequent_indent="  ")


class BalanceView:
    name, title = "balance", "Balance"

    def page(self, state, width, height):
        pes = [pe for pe in state.frame.pes if self._matches(state, pe.page)]
        figures = _Figures(state, pes)
        jobs = len({pe.page.job for pe in pes})
        columns = pe_columns(figures, jobs, max((len(pe.rails) for pe in pes), default=0))
        sort = state.place(self.name).sort or ("name", False)
        pes = order(sorted(pes, key=_name_key), columns, sort)
        table, rails = Table(columns, width), Table(rail_columns(figures), width)
        head, spans = table.header(sort)
        index = NicIndex(state.frame)
        return Page(
            (head,), self._rows(state, pes, table, width, height - 1), lambda row: self._draw(row, table, rails), Row.key,
            lambda row: _opens(index, row), spans, tuple(column for column, _ in table.columns if column.sort_key),
            sort, nothing(state, EMPTY))  # fmt: skip

    @staticmethod
    def _matches(state, page):
        return state.matches(pe_label(page), page.job, page.policy, page.process.command, *(rail.nic for rail in page.rails))

    @staticmethod
    def _rows(state, pes, table, width, height):
        inside = any(column.name == "verdict" for column, _ in table.columns)
        folded = []
        for pe in pes:
            words = [] if inside else _wrapped(("! " if pe.verdict else "  ") + _words(pe), width)
            folded.append((Row(pe), [Row(pe, words=text) for text in words]))
        unfolded = state.unfolded
        if unfolded is None:
            unfolded = sum(1 + len(words) + len(row.pe.rails) for row, words in folded) <= height
        rows = []
        for row, words in folded:
            rows += [row, *words]
            if unfolded:
                rows += [Row(row.pe, rail) for rail in row.pe.rails]
        return rows

    @staticmethod
    def _draw(row, table, rails):
        if row.words:
            return ((row.words, _verdict_style(row.pe)),)
        return table.line(row.pe) if row.rail is None else rails.line(row)


def _opens(index, row):
    """The NIC of the rail, or of the rail to look at of the PE."""
    rails = [rail.rail for rail in row.pe.rails]
    if row.words or not rails:
        return None
    rail = row.rail.rail if row.rail is not None else next((rail for rail in rails if rail.index == _worst(row.pe)[0]), rails[0])
    found = index.find(row.pe.page, rail)
    return found.nic.key if found is not None else None
