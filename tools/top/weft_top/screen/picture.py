"""From the ScreenState to all lines of the screen, and back from a key or a click to what it means. No Textual.

Invariants: exactly `height` lines of exactly `width` cells, also in a terminal of 1 x 1; only lines that are
seen are drawn; a cursor that was moved stays on its thing when rows move, and on its line when the thing goes.
"""

import textwrap
from dataclasses import dataclass

from . import lines, surround
from .views import VIEWS

HEAD_LINES = 2  # header and tabs


@dataclass(slots=True)
class Picture:
    """One paint. `lines`: (Line, selected) for each row of the terminal; `body`: (first row, rows) that scroll."""

    width: int
    lines: list
    page: object
    body: tuple
    tab_spans: tuple


def paint(state, width, height):
    """The Picture of `state` for a terminal of this size."""
    tabs, tab_spans = surround.tabs(state, width)
    page = VIEWS[state.view].page(state, width, max(height - HEAD_LINES - 1, 1))
    head = [(surround.header(state, width), False), (tabs, False)] + [(line, False) for line in page.head]
    head = head[:max(height - 2, 0)]
    room = max(height - len(head) - 1, 0)
    _settle(state.place(), page, room)
    body = _body(state.place(), page, room) if page.rows else _sentence(page.empty, width)[:room]
    blank = [((), False)] * (room - len(body))
    everything = (head + body + blank + [(surround.footer(state, width), False)])[:height]
    exact = [(_exact(line, width), selected) for line, selected in everything]
    return Picture(width, exact, page, (len(head), room), tab_spans)


def _exact(line, width):
    """`line` cut or filled to `width` cells."""
    cells = lines.line_cells(line)
    if cells > width:
        return lines.cut_line(line, 0, width)
    return line if cells == width else (*line, (" " * (width - cells), ""))


def _sentence(text, width):
    return [(((line, "dim"),), False) for line in textwrap.wrap(lines.clean(text), max(width, 1))]


def _body(place, page, room):
    shown = []
    for index in range(place.top, min(place.top + room, len(page.rows))):
        selected = page.has_cursor and index == place.index and page.key(page.rows[index]) is not None
        shown.append((page.draw(page.rows[index]), selected))
    return shown


def _settle(place, page, room):
    """Find the cursor's line again, and keep it in sight."""
    count = len(page.rows)
    last_top = max(count - room, 0)
    place.left = min(max(place.left, 0), page.left_max)
    if not count or not page.has_cursor:
        place.top = min(max(place.top, 0), last_top)
        return
    place.index = _cursor_index(place, page)
    place.top = min(max(min(place.top, place.index), place.index - room + 1, 0), last_top)


def _cursor_index(place, page):
    rows, key = page.rows, page.key
    index = min(place.index, len(rows) - 1)
    if place.cursor is None or key(rows[index]) == place.cursor:
        return index if key(rows[index]) is not None else _standing(page, index, -1)
    found = next((other for other, row in enumerate(rows) if key(row) == place.cursor), None)
    return found if found is not None else _standing(page, index, -1)


def _standing(page, index, direction):
    """The nearest row from `index` on that a cursor may stand on, in `direction`, else in the other one."""
    for step in (direction, -direction):
        at = index
        while 0 <= at < len(page.rows):
            if page.key(page.rows[at]) is not None:
                return at
            at += step
    return index


def move(state, picture, amount):
    """Move the cursor, or the page where it has none, by `amount` lines."""
    place, page = state.place(), picture.page
    if not page.rows:
        return
    if not page.has_cursor:
        place.top = min(max(place.top + amount, 0), max(len(page.rows) - picture.body[1], 0))
        return
    target = min(max(place.index + amount, 0), len(page.rows) - 1)
    direction = 1 if amount > 0 else -1
    at = _standing(page, target, direction)
    # Past the last row that can hold it the cursor stays where it is.
    place.index = at if (at - place.index) * direction > 0 else place.index
    place.cursor = page.key(page.rows[place.index])
    if place.index == _standing(page, 0, 1) and direction < 0:
        # At the top it lets go, so that the largest stays in sight when the order changes.
        place.top, place.cursor = 0, None


def row_at(state, picture, y):
    """The index of the row that is painted at line `y` of the terminal, or None."""
    first, room = picture.body
    index = state.place().top + y - first
    return index if first <= y < first + room and 0 <= index < len(picture.page.rows) else None


def opened(state, picture):
    """Key of the NIC that Enter shows now, or None."""
    index, page = state.place().index, picture.page
    return page.opens(page.rows[index]) if page.has_cursor and index < len(page.rows) else None


def hit(spans, x):
    """The name of the span at cell `x`, or None."""
    return next((name for first, end, name in spans if first <= x < end), None)
