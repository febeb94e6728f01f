"""put, get, signals, atomics, order, teams. What is not defined here is weft._weft's own; its texts are in _weft.pyi."""

from __future__ import annotations

from .native import core

TYPE_CHECKING = False  # true for type checkers; here typing need not be imported
if TYPE_CHECKING:
    from . import _weft
    from ._weft import ArrayLike, SignalOperation, Stream

Array = core.Array
Context = core.Context
Team = core.Team
world = core.world
node = core.node_team

put, put_nbi, get, get_nbi = core.put, core.put_nbi, core.get, core.get_nbi
iput, iget = core.iput, core.iget
fence, quiet, barrier_all, sync_all = core.fence, core.quiet, core.barrier_all, core.sync_all
signal_wait_until, signal_fetch = core.signal_wait_until, core.signal_fetch
wait_until_all, wait_until_any, wait_until_some = core.wait_until_all, core.wait_until_any, core.wait_until_some
atomic_set, atomic_fetch, atomic_swap = core.atomic_set, core.atomic_fetch, core.atomic_swap
atomic_compare_swap = core.atomic_compare_swap
atomic_add, atomic_fetch_add = core.atomic_add, core.atomic_fetch_add
atomic_inc, atomic_fetch_inc = core.atomic_inc, core.atomic_fetch_inc
atomic_and, atomic_fetch_and = core.atomic_and, core.atomic_fetch_and
atomic_or, atomic_fetch_or = core.atomic_or, core.atomic_fetch_or
atomic_xor, atomic_fetch_xor = core.atomic_xor, core.atomic_fetch_xor

_put_signal, _put_signal_nbi, _signal_post = core.put_signal, core.put_signal_nbi, core.signal_post


def put_signal(dest: ArrayLike, source: ArrayLike, signal: ArrayLike, pe: int, *, value: int = 1, operation: SignalOperation = "set",
               context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """Puts `source` into `dest` of `pe`, then updates its signal: who sees the signal sees the data. One trip.

    dest, signal: symmetric; signal is one element of uint64 (signals[i]). source: any contiguous array with the element
    type and number of elements of dest. value, operation: "set" makes the signal `value`, "add" adds it. Complete when
    it returns: source may be reused. Signals of two calls to one PE may change their order, unless a fence is between.
    """
    _put_signal(dest, source, signal, (value, operation), pe, (context, stream))


def put_signal_nbi(dest: ArrayLike, source: ArrayLike, signal: ArrayLike, pe: int, *, value: int = 1,
                   operation: SignalOperation = "set", context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """As weft.put_signal, but source must not change before quiet."""
    _put_signal_nbi(dest, source, signal, (value, operation), pe, (context, stream))


def signal_post(signal: ArrayLike, pe: int, *, value: int = 1, operation: SignalOperation = "set",
                context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """Updates a signal of `pe` without data; the arguments are those of weft.put_signal."""
    _signal_post(signal, (value, operation), pe, (context, stream))
