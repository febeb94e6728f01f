"""Styled lines: text that a hostile name cannot break out of, bars and sparklines. Pure.

A Line is a tuple of (text, style name) pieces; the style names are those of palette.py. Invariants: `fit`
gives exactly the cells asked for; no piece holds a control character, whatever a device or a job is called.
"""

from functools import lru_cache

from rich.cells import cell_len, set_cell_size

EIGHTHS_RIGHT = " ▏▎▍▌▋▊▉"
EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
ZERO = "·"
REPLACEMENT = "?"
SPACE = (" ", "")


def _safe(character):
    return character.isprintable() and cell_len(character) > 0


@lru_cache(maxsize=8192)
def clean(text):
    """`text` without what could move the cursor or hide: control and zero-width characters become "?"."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _safe(character) else REPLACEMENT for character in text)


@lru_cache(maxsize=8192)
def fit(text, width, align="left"):
    """`text` cleaned, in exactly `width` cells; what is too long ends in "~" ("left") or begins so ("tail")."""
    text = clean(text)
    excess = cell_len(text) - width
    if excess <= 0:
        return " " * -excess + text if align == "right" else text + " " * -excess
    if width <= 0:
        return ""
    if align != "tail":
        return set_cell_size(text, width - 1) + "~"
    while cell_len(text) > width - 1:
        text = text[1:]
    return "~" + " " * (width - 1 - cell_len(text)) + text


def line_cells(line):
    """The cells that a Line takes."""
    return sum([len(text) if text.isascii() else cell_len(text) for text, _ in line])


def cut_line(line, left, width):
    """The cells [left, left + width) of a Line, as a Line; used where a line may be too long."""
    pieces, position = [], 0
    for text, style in line:
        size = cell_len(text)
        begin, end = max(left - position, 0), min(left + width - position, size)
        if begin < end:
            part = set_cell_size(text, end)
            pieces.append((part[len(set_cell_size(text, begin)):] if begin else part, style))
        position += size
    return tuple(pieces)


def bar(share, width):
    """A horizontal bar of exactly `width` cells, to an eighth of one; whatever is not 0 can be seen."""
    if not share or width <= 0:
        return " " * max(width, 0)
    eighths = min(max(int(share * width * 8 + 0.5), 1), width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS_RIGHT[rest] if rest else "")).ljust(width)


def level(share):
    """One cell that is filled from below."""
    if not share:
        return ZERO
    return EIGHTHS_UP[min(max(int(share * 8 + 0.5), 1), 8)]


def levels(values, top=None):
    """One cell for each value; `top` (default: the largest) is a full one."""
    top = top or max(values, default=0)
    return "".join([level(value / top if top else 0) for value in values])


def spark(values, width, top, phase=0):
    """A minute of values, one a second and oldest first, in `width` cells with the newest at the right.

    A cell is the mean of several seconds; `phase` (seconds, any origin) keeps a second in its cell while time
    goes on, so that the past does not shimmer.
    """
    step = max(-(-60 // max(width - 1, 1)), 1) if width < 60 else 1
    newest = phase % step + 1
    cells, end = [], len(values)
    while end > 0 and len(cells) < width:
        part = values[max(end - (newest if not cells else step), 0):end]
        cells.append(level(sum(part) / len(part) / top if top else 0))
        end -= len(part)
    return "".join(reversed(cells)).rjust(width)


def graph(values, width, height, top):
    """`height` lines of `width` cells, the newest value at the right; `top` is the full height."""
    values = list(values)[-width:]
    heights = [min(value / top, 1.0) * height if top else 0.0 for value in values]
    rows = []
    for row in range(height - 1, -1, -1):
        cells = [EIGHTHS_UP[min(max(int((value - row) * 8 + 0.5), 0), 8)] for value in heights]
        rows.append("".join(cells).rjust(width))
    return rows
