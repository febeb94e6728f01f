"""The log: what changed, newest first, below what is to be known about the sources now."""

import textwrap

from .. import lines, numbers
from .page import Page, nothing

EMPTY = "nothing has happened yet: links, errors, drops, resets, and jobs that come and go are written here"
MARKS = {"error": ("!!", "bad"), "warning": ("! ", "warn")}
PLAIN = ("  ", "")
NOTICE = ("i ", "warn")
TIME_CELLS, MARK_CELLS, SUBJECT_CELLS = 8, 2, 30


class _Layout:
    """How wide the subject and the text are."""

    def __init__(self, width):
        room = max(width - TIME_CELLS - MARK_CELLS - 2, 2)
        self.subject = min(SUBJECT_CELLS, max(room // 3, 1))
        self.text = max(room - self.subject - 1, 1)

    def rows(self, when, mark, subject, text):
        """The line of one event, and more where its text is long."""
        text = lines.clean(text)
        pieces = [text] if len(text) <= self.text else textwrap.wrap(text, self.text)
        return [(when, mark, subject, pieces[0] if pieces else ""), *(("", ("", mark[1]), "", piece) for piece in pieces[1:])]

    def draw(self, row):
        when, (mark, style), subject, text = row
        return (
            (lines.fit(when, TIME_CELLS), "dim"), (" ", ""), (lines.fit(mark, MARK_CELLS), style), (" ", ""),
            (lines.fit(subject, self.subject), style or "bold"), (" ", ""), (lines.fit(text, self.text), style),
        )  # fmt: skip


class EventsView:
    name, title = "events", "Events"

    def page(self, state, width, height):
        layout = _Layout(width)
        rows = []
        for notice in state.frame.notices:
            if state.matches(notice.source, notice.text):
                rows += layout.rows("now", NOTICE, notice.source, notice.text)
        for event in reversed(state.log):
            if state.matches(event.subject, event.text, event.severity):
                mark = MARKS.get(event.severity, PLAIN)
                rows += layout.rows(numbers.clock(event.wall_ns), mark, event.subject, event.text)
        return Page((), rows, layout.draw, empty=nothing(state, EMPTY), has_cursor=False)
