"""Columns that share a line: which fit, how wide each becomes, what the header says. Pure.

Invariants: a table's lines have the same cells for the same width; columns of lower priority go first when
room is short; a header's spans name the column under a mouse click.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Optional

from .lines import SPACE, fit

DOWN, UP = "▼", "▲"


@dataclass(frozen=True, slots=True)
class Column:
    """`draw(item, width)` -> pieces of exactly `width` cells. `sort_key(item)` orders rows (None: it does not).
    `width` cells at least; up to `width_max` where there is room; 0 is the last priority to be dropped."""

    name: str
    title: str
    width: int
    draw: Callable
    sort_key: Optional[Callable] = None
    width_max: int = 0
    priority: int = 0
    align: str = "right"
    descending: bool = True  # which direction comes first when sorted by it


@lru_cache(maxsize=64)
def widths(shapes, width):
    """`shapes`: (width, width_max, priority) for each column -> the cells of each in `width`; 0 where dropped."""
    kept = list(range(len(shapes)))
    while len(kept) > 1 and sum(shapes[index][0] + 1 for index in kept) - 1 > width:
        kept.remove(max(kept, key=lambda index: (shapes[index][2], index)))
    cells = [0] * len(shapes)
    for index in kept:
        cells[index] = min(shapes[index][0], width)
    room = width - sum(cells) - (len(kept) - 1)
    growing = [index for index in kept if shapes[index][1] > cells[index]]
    while room > 0 and growing:
        for index in list(growing):
            if room > 0:
                cells[index] += 1
                room -= 1
            if cells[index] >= shapes[index][1]:
                growing.remove(index)
    return tuple(cells)


class Table:
    """Columns laid out for one width."""

    def __init__(self, columns, width):
        shapes = tuple((column.width, column.width_max, column.priority) for column in columns)
        cells = widths(shapes, width)
        self.columns = [(column, size) for column, size in zip(columns, cells) if size]

    def header(self, sort=None):
        """(Line, spans): `sort` is (column name, descending); spans are (first cell, end, column name)."""
        pieces, spans, position = [], [], 0
        for column, size in self.columns:
            on = sort is not None and sort[0] == column.name
            title = column.title + ((DOWN if sort[1] else UP) if on else "")
            if len(title) > size and on:
                title = title[: size - 1] + title[-1]
            style = "" if not column.title else "head-on" if on else "head"
            text = fit(title, size, column.align)
            pieces += [(text, style), SPACE]
            if column.sort_key is not None:
                spans.append((position, position + size, column.name))
            position += size + 1
        return tuple(pieces[:-1]), tuple(spans)

    def line(self, item):
        """One row."""
        pieces = []
        for column, size in self.columns:
            pieces += column.draw(item, size)
            pieces.append(SPACE)
        return tuple(pieces[:-1])


def order(items, columns, sort):
    """`items` sorted by (column name, descending); rows without a value come last in either direction."""
    keys = {column.name: column.sort_key for column in columns if column.sort_key is not None}
    if sort is None or sort[0] not in keys:
        return list(items)
    valued = [(keys[sort[0]](item), index, item) for index, item in enumerate(items)]
    known = [entry for entry in valued if entry[0] is not None]
    # The rows that are equal keep their order in both directions.
    known.sort(key=lambda entry: entry[0], reverse=sort[1])
    return [entry[2] for entry in known] + [entry[2] for entry in valued if entry[0] is None]
