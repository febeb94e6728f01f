"""Who sends to whom: a matrix of PEs by peers, or by the rails of peers, with heat marks and colours.

A number is what the row's PE puts to and gets from the column's. Only rows whose pages are on this machine
are known. It scrolls in both directions; several jobs are shown one at a time.
"""

from dataclasses import dataclass

from .. import lines, numbers
from .page import Page, nothing, pe_label

EMPTY = "no job was found: who sends to whom is known from the counter pages of running PEs"
LABEL_CELLS = 12
CELL = 7  # a space, the heat mark, and a number
NUMBER = CELL - 2
ALL_CELLS = 8
HEAT = ((0.75, "█", "heat4"), (0.5, "▓", "heat3"), (0.25, "▒", "heat2"), (0.0, "░", "heat1"))


@dataclass(frozen=True, slots=True)
class Row:
    pe: object
    cells: dict  # column -> bytes per second
    whole: float

    def key(self):
        return self.pe.page.key


def jobs_of(frame):
    """Names of the jobs, in order."""
    return sorted({pe.page.job for pe in frame.pes})


def heat(share):
    """(mark, style) of a value beside the largest one."""
    return next((mark, style) for limit, mark, style in HEAT if share > limit or limit == 0.0)


def _row(pe, by_rail):
    cells = {}
    for (peer, rail), value in pe.traffic.items():
        if value:
            key = (peer, rail) if by_rail else (peer, None)
            cells[key] = cells.get(key, 0.0) + value
    return Row(pe, cells, sum(cells.values()))


def _title(column):
    peer, rail = column
    return str(peer) if rail is None else f"{peer}.{rail}"


class _Matrix:
    """What one paint needs: the columns that are seen, and the scales."""

    def __init__(self, state, rows, all_columns, width):
        self.bytes_per_unit = state.unit_bits / 8
        self.seen = max((width - LABEL_CELLS - ALL_CELLS) // CELL, 1)
        self.left_max = max(len(all_columns) - self.seen, 0)
        self.left = min(state.place("peers").left, self.left_max)
        self.columns = all_columns[self.left:self.left + self.seen]
        self.largest = max((value for row in rows for value in row.cells.values()), default=0)
        largest = self.largest / self.bytes_per_unit
        self.decimals = max(numbers.decimals_for(largest) - 1, 0)  # cells are narrower than other columns

    def number(self, value, width=NUMBER):
        return numbers.rate(value / self.bytes_per_unit, self.decimals, width)

    def header(self):
        pieces = [(lines.fit("from", LABEL_CELLS), "head"), (lines.fit("all", ALL_CELLS, "right"), "head")]
        pieces += [(lines.fit(f"to {_title(column)}", CELL, "right"), "head") for column in self.columns]
        return tuple(pieces)

    def sums(self, rows):
        """The line of what all the known PEs exchange with each."""
        pieces = [(lines.fit("all", LABEL_CELLS), "bold"), (self.number(sum(row.whole for row in rows), ALL_CELLS), "bold")]
        for column in self.columns:
            pieces.append((self.number(sum(row.cells.get(column, 0) for row in rows), CELL), "bold"))
        return tuple(pieces)

    def line(self, row):
        pieces = [(lines.fit(pe_label(row.pe.page), LABEL_CELLS), ""), (self.number(row.whole, ALL_CELLS), "bold")]
        for column in self.columns:
            value = row.cells.get(column, 0)
            if not value:
                pieces.append((lines.ZERO.rjust(CELL), "dim"))
                continue
            mark, style = heat(value / self.largest)
            pieces += [(" ", ""), (mark, f"{style}-mark"), (self.number(value), style)]
        return tuple(pieces)


class PeersView:
    name, title = "peers", "Peers"

    def page(self, state, width, height):
        jobs = jobs_of(state.frame)
        job = state.job if state.job in jobs else (jobs[0] if jobs else None)
        by_rail = bool(state.unfolded)
        pes = sorted((pe for pe in state.frame.pes if pe.page.job == job), key=lambda pe: pe.page.pe)
        rows = [_row(pe, by_rail) for pe in pes if self._matches(state, pe.page)]
        matrix = _Matrix(state, rows, self._columns(pes, rows, by_rail), width)
        title = (self._words(job, jobs, by_rail, state.unit), "dim")
        head = ((title,), matrix.header(), matrix.sums(rows)) if rows else ()
        return Page(head, rows, matrix.line, Row.key, empty=nothing(state, EMPTY), left_max=matrix.left_max)

    @staticmethod
    def _words(job, jobs, by_rail, unit):
        columns = "rails of peers (x: peers)" if by_rail else "peers (x: their rails)"
        return lines.clean(f"{unit} put and got, columns are {columns}, job {job}") + (
            f", j: next of {len(jobs)} jobs" if len(jobs) > 1 else "")

    @staticmethod
    def _matches(state, page):
        return state.matches(pe_label(page), page.job, page.process.command)

    @staticmethod
    def _columns(pes, rows, by_rail):
        if by_rail:
            return sorted({column for row in rows for column in row.cells})
        count = max((pe.page.pe_count for pe in pes), default=0)
        return [(peer, None) for peer in range(count)]
