"""What stands around a view: the header line, the tabs, the footer with keys, filter or an answer. Pure.

Invariants: each gives exactly `width` cells; what matters most (frozen, notices) is the last to be cut.
"""

from . import lines, numbers
from .views import NIC_KEY, TABS, VIEWS

KEYS = {
    "nics": ("s sort", "/ filter", "Enter open", "space freeze", "u unit", "+- interval", "? help", "q quit"),
    "balance": ("x rails", "s sort", "/ filter", "Enter open", "space freeze", "u unit", "+- interval", "? help", "q quit"),
    "processes": ("s sort", "/ filter", "Enter open", "space freeze", "u unit", "+- interval", "? help", "q quit"),
    "peers": ("x rails", "j job", "arrows scroll", "/ filter", "space freeze", "u unit", "? help", "q quit"),
    "events": ("/ filter", "space freeze", "arrows scroll", "? help", "q quit"),
    "nic": ("Esc back", "space freeze", "u unit", "+- interval", "? help", "q quit"),
    "help": ("Esc back", "arrows scroll", "q quit"),
}  # fmt: skip


def _plural(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _flags(state):
    """What must not be overlooked, at the right of the header."""
    flags = []
    if state.is_replay:
        end = " END" if state.ended else f" {state.speed:g}x" if state.speed != 1 else ""
        flags.append((f" REPLAY{end} ", "flag"))
    if state.frozen:
        flags.append((" PAUSED " if state.is_replay else " FROZEN ", "flag"))
    if state.frame is not None and state.frame.notices:
        flags.append((f"! {_plural(len(state.frame.notices), 'notice')}", "warn"))
    if state.frame is not None:
        flags.append((numbers.clock(state.frame.wall_ns), ""))
    return flags


def header(state, width):
    """The first line: how much there is, how often it is read, and flags."""
    right = [piece for flag in _flags(state) for piece in (flag, (" ", ""))]
    left = [("weft-top", "title")]
    frame = state.frame
    if frame is not None:
        jobs = len({pe.page.job for pe in frame.pes})
        counts = [_plural(jobs, "job"), _plural(len(frame.pes), "PE"), _plural(len(frame.nics), "NIC")]
        left.append(("  " + "  ".join(counts), ""))
    every = "" if state.is_replay else f"  every {numbers.seconds(state.interval_s)}"
    left.append((f"  {state.unit}{every}", ""))
    room = max(width - lines.line_cells(right), 0)
    shown = lines.cut_line(left, 0, room)
    gap = room - lines.line_cells(shown)
    return lines.cut_line((*shown, (" " * gap, ""), *right), 0, width)


def tabs(state, width):
    """(Line, spans): the second line; spans are (first cell, end, view name)."""
    shown = [(str(index + 1), view) for index, view in enumerate(TABS)]
    if state.nic_key is not None:
        shown.append((NIC_KEY, VIEWS["nic"]))
    shown.append(("?", VIEWS["help"]))
    short = sum(len(f" {key} {view.title} ") for key, view in shown) > width
    pieces, spans, position = [], [], 0
    for key, view in shown:
        text = f" {key} " if short and view.name != state.view else f" {key} {view.title} "
        pieces.append((text, "tab-on" if view.name == state.view else "tab"))
        spans.append((position, position + len(text), view.name))
        position += len(text)
    return tuple(pieces), tuple(spans)


def footer(state, width):
    """The last line."""
    if state.filter_open:
        return (("filter: ", "bold"), (lines.fit(state.filter_text + "_", max(width - 40, 10), "left"), "input"),
                ("  Enter keeps it, Esc clears it", "dim"))  # fmt: skip
    if state.message:
        return ((lines.clean(state.message), "bold"),)
    pieces = []
    if state.filter_text:
        pieces += [(f"filter: {lines.clean(state.filter_text)} (Esc clears)", "warn"), ("  ", "")]
    room = width - lines.line_cells(pieces)
    for words in KEYS[state.view]:
        room -= len(words) + 2
        if room < -2:
            break
        key, _, what = words.partition(" ")
        pieces += [(key, "key"), (f" {what}", "dim"), ("  ", "")]
    return tuple(pieces)
