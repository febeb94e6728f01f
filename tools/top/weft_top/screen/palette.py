"""Style names and what they look like in a theme.

Invariants: plain text is always the terminal's own foreground on its own background, so that a light terminal
works like a dark one; where a style sets a background it also sets the foreground; no meaning is carried by
colour alone (the views add marks such as "!"); "mono" sets no colour at all.
"""

import os

_PLAIN = {
    "": "", "dim": "dim", "bold": "bold", "select": "reverse", "title": "bold", "tab": "", "tab-on": "bold reverse",
    "head": "underline", "spark": "dim", "head-on": "bold underline", "key": "bold", "flag": "bold reverse", "input": "bold underline",
}  # fmt: skip
_MONO = {"tx": "", "rx": "", "full": "", "warn": "bold", "bad": "bold", "warn-words": "", "bad-words": "", "ok": ""}
_MONO_HEAT = {"heat1": "", "heat2": "", "heat3": "bold", "heat4": "bold reverse"}
# The mark before a number is of the number's background, as if it were a part of it.
_HEAT = {"heat1": "color(231) on color(24)", "heat2": "color(231) on color(29)", "heat3": "color(16) on color(178)",
         "heat4": "bold color(231) on color(124)", "heat1-mark": "color(24) on color(24)", "heat2-mark": "color(29) on color(29)",
         "heat3-mark": "color(178) on color(178)", "heat4-mark": "color(124) on color(124)"}  # fmt: skip
# What is drawn rather than written: reversed it would show the opposite.
_DRAWN = ("tx", "rx", "full", "spark", *_HEAT)
# "auto" takes middle tones: each has a contrast of at least 3 to black and to white.
_COLOURS = {
    "auto": {"tx": "color(32)", "rx": "color(70)", "warn": "bold color(172)", "bad": "bold color(196)", "ok": "color(70)"},
    "dark": {"tx": "color(45)", "rx": "color(84)", "warn": "bold color(220)", "bad": "bold color(203)", "ok": "color(84)"},
    "light": {"tx": "color(25)", "rx": "color(28)", "warn": "bold color(130)", "bad": "bold color(124)", "ok": "color(28)"},
}  # fmt: skip


def choose_theme(theme, environment=os.environ):
    """The theme to use: "mono" where NO_COLOR is set; "auto" asks COLORFGBG, which some terminals set."""
    if environment.get("NO_COLOR"):
        return "mono"
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    if theme != "auto" or not background.isdigit():
        return theme
    return "light" if int(background) in (7, 15) else "dark"


def _mono():
    return {**_MONO, **_MONO_HEAT, **{f"{name}-mark": "" for name in _MONO_HEAT}}


def _coloured(theme):
    colours = _COLOURS[theme]
    return {**_HEAT, **colours, "full": colours["warn"].removeprefix("bold "),
            "warn-words": colours["warn"].removeprefix("bold "), "bad-words": colours["bad"].removeprefix("bold ")}  # fmt: skip


class Palette:
    """Style name -> rich Style, also for the selected line: reversed, except what is drawn. One thread."""

    def __init__(self, theme):
        from rich.style import Style

        texts = {**_PLAIN, **(_mono() if theme == "mono" else _coloured(theme))}
        self._styles = {name: Style.parse(text) for name, text in texts.items()}
        reverse = Style(reverse=True)
        self._selected = {name: style if name in _DRAWN else style + reverse for name, style in self._styles.items()}

    def style(self, name, selected=False):
        """The Style of a name; KeyError for a name that no theme has."""
        return (self._selected if selected else self._styles)[name]
