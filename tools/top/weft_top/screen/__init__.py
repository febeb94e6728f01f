"""The terminal screen of weft-top: views of Frames, keys and mouse.

Invariants: Textual is loaded only when a screen is really opened, so that --once and --json stay small and
quick; `run_screen` leaves the terminal as it found it, whatever ends the program. Owner: the main thread.
"""

from .options import INTERVALS_S, UNITS, ScreenOptions

__all__ = ["INTERVALS_S", "UNITS", "ScreenOptions", "run_screen"]


def run_screen(source, options):
    """Show `source` until the user quits. Main thread only.

    `source` has `next_frame()` (a Frame, or None at the end of a replay; does not sleep), `is_replay` (bool) and
    `frames_interval_s` (seconds, set by the screen). Returns the exit status: 0 after a quit, 128 + N after
    signal N, 2 with one message on stderr where there is no usable terminal. Raises what `source` raises, once
    the terminal is restored.
    """
    from .terminal import run_in_terminal

    return run_in_terminal(source, options)
