"""The one widget of the screen: it shows a Picture, and repaints only the lines that changed.

Owner: the application's thread. Invariants: `render_lines` gives ready Strips, past Textual's caches for borders,
padding and styles, since there are none; a line that is equal to the one painted before, in text, styles and
selection, is not sent to the terminal again. Rejected, painting 32 NICs 4 times a second on 80x24 (share of one core
of a shared EPYC, November 2026): a DataTable, rebuilt or cell by cell, 19 %; a Static with a Text, 7 %; a widget
with `render_line`, 1.8 %. This: 1.4 %, 0.8 % at 2 paints a second; app.py makes one.
"""

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Canvas(Widget, can_focus=True):
    """Covers the whole terminal. Keys, clicks and sizes go to the application's methods."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; }"
    ALLOW_SELECT = False

    def __init__(self, palette):
        super().__init__()
        self._palette = palette
        self._lines = []  # (Line, selected), as painted
        self._strips = []
        self._width = 0

    def show(self, picture):
        """Paint what differs from the last Picture."""
        if picture.width != self._width or len(picture.lines) != len(self._lines):
            self._width, self._lines = picture.width, [None] * len(picture.lines)
            self._strips = [None] * len(picture.lines)
        changed = [y for y, line in enumerate(picture.lines) if line != self._lines[y]]
        for y in changed:
            self._lines[y] = picture.lines[y]
            self._strips[y] = self._strip(*picture.lines[y])
        if changed:
            self.refresh(*(Region(0, first, self._width, count) for first, count in _runs(changed)))

    def _strip(self, line, selected):
        segments, style_before = [], None
        for text, style in line:
            if style == style_before:
                segments[-1] += text
            else:
                segments += [style, text]
                style_before = style
        style_of = self._palette.style
        pairs = zip(segments[::2], segments[1::2])
        return Strip([Segment(text, style_of(style, selected)) for style, text in pairs], self._width)

    def text(self):
        """The painted lines as plain text, without spaces at their ends."""
        return [strip.text.rstrip() for strip in self._strips]

    # ---- What Textual calls ----------------------------------------------------------------------

    def render_lines(self, crop):
        lines = []
        for y in range(crop.y, crop.bottom):
            strip = self._strips[y] if y < len(self._strips) else None
            # Between a new size and the Picture for it there may be a paint.
            strip = strip if strip is not None else Strip.blank(crop.right)
            lines.append(strip if crop.x == 0 and crop.right == strip.cell_length else strip.crop_extend(crop.x, crop.right, None))
        return lines

    def on_resize(self, event):
        self.app.resized(event.size.width, event.size.height)

    def on_key(self, event):
        event.stop()
        event.prevent_default()
        self.app.pressed(event.key, event.character)

    def on_paste(self, event):
        event.stop()
        self.app.pasted(event.text)

    def on_click(self, event):
        event.stop()
        self.app.clicked(event.x, event.y)

    def on_mouse_scroll_down(self, event):
        event.stop()
        self.app.scrolled(1)

    def on_mouse_scroll_up(self, event):
        event.stop()
        self.app.scrolled(-1)


def _runs(numbers):
    """[1, 2, 3, 7] -> [(1, 3), (7, 1)]."""
    runs = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return runs
