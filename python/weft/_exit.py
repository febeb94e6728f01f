"""How a PE ends: by an exception, by sys.exit, by Ctrl-C, or in order."""

import os
import pathlib
import sys
import threading
import traceback

from .errors import PeerLost
from .native import core

_earlier_hook = None
_earlier_exit = None
_failed = None  # the status with which the program ends, once it is known


def install():
    """From now on, what ends this program ends the job."""
    global _earlier_hook, _earlier_exit
    if _earlier_hook is None:
        _earlier_hook, sys.excepthook = sys.excepthook, _on_exception
        _earlier_exit, sys.exit = sys.exit, _on_exit
    if threading.current_thread() is threading.main_thread():
        core.watch_interrupts()


def remove():
    """The hooks that were there before; where others put theirs on top, ours stay below and do nothing."""
    global _earlier_hook, _earlier_exit
    if sys.excepthook is _on_exception and sys.exit is _on_exit:
        sys.excepthook, sys.exit = _earlier_hook, _earlier_exit
        _earlier_hook = _earlier_exit = None


def leave(finalize):
    """At exit of the interpreter: in order, or, after a failure, with all PEs at once."""
    if _failed is None:
        finalize()
    else:
        sys.stdout.flush()
        sys.stderr.flush()
        core.global_exit(_failed)


def _on_exception(kind, error, trace):
    global _failed
    if issubclass(kind, PeerLost) and os.environ.get("WEFT_ON_PEER_LOST", "end") == "end" and core.is_ready():
        print(f"weft: PE {core.pe()}: error: {kind.__name__}: {error} ({_place(trace)})", file=sys.stderr)  # the traceback is for the PE that failed
    else:
        (_earlier_hook or sys.__excepthook__)(kind, error, trace)
    if core.is_ready():
        _failed = 130 if issubclass(kind, KeyboardInterrupt) else 1


def _on_exit(status=None):
    global _failed
    if status not in (None, 0) and core.is_ready() and threading.current_thread() is threading.main_thread():
        _failed = status if isinstance(status, int) else 1
    if _earlier_exit is None:  # a process that was spawned with sys.exit of a PE as its target, and is no PE
        raise SystemExit(status)
    _earlier_exit(status)


def _place(trace):
    """The program's own line that the exception came through last."""
    frames = traceback.extract_tb(trace)
    ours = str(pathlib.Path(__file__).parent)
    frame = next((one for one in reversed(frames) if not one.filename.startswith(ours)), frames[-1])
    return f"{frame.filename}:{frame.lineno}, in {frame.name}"
