"""put, get, signals, atomics, order, teams. What is not defined here is weft._weft's own; its texts are in _weft.pyi."""

from __future__ import annotations

from .native import core

TYPE_CHECKING = False  # true for type checkers; here typing need not be imported
if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import _weft
    from ._weft import ArrayLike, SignalOperation, Stream

    Pairs = Sequence[tuple[ArrayLike, ArrayLike]]

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

_putv, _putv_nbi, _putv_signal, _putv_signal_nbi = core.putv, core.putv_nbi, core.putv_signal, core.putv_signal_nbi
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


def putv(pairs: Pairs, pe: int, *, context: _weft.Context | None = None,
         stream: Stream | None = None) -> None:
    """Puts many sources to one PE as one operation: `pairs` are (dest, source), each as for weft.put.

    Pages of a cache, rows that lie apart, the edges of a halo: one call, and between nodes one operation that all NICs
    share, instead of one for each pair. All pairs are on one device. Complete when it returns: the sources may be
    reused. The pairs are not ordered among themselves.
    """
    _putv(pairs, pe, (context, stream))


def putv_nbi(pairs: Pairs, pe: int, *, context: _weft.Context | None = None,
             stream: Stream | None = None) -> None:
    """As weft.putv, but the sources must not change before quiet."""
    _putv_nbi(pairs, pe, (context, stream))


def putv_signal(pairs: Pairs, signal: ArrayLike, pe: int, *, value: int = 1, operation: SignalOperation = "set",
                context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """As weft.putv, then updates the signal of `pe`, as weft.put_signal: who sees the signal sees all pairs."""
    _putv_signal(pairs, signal, (value, operation), pe, (context, stream))


def putv_signal_nbi(pairs: Pairs, signal: ArrayLike, pe: int, *, value: int = 1, operation: SignalOperation = "set",
                    context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """As weft.putv_signal, but the sources must not change before quiet."""
    _putv_signal_nbi(pairs, signal, (value, operation), pe, (context, stream))


def signal_post(signal: ArrayLike, pe: int, *, value: int = 1, operation: SignalOperation = "set",
                context: _weft.Context | None = None, stream: Stream | None = None) -> None:
    """Updates a signal of `pe` without data; the arguments are those of weft.put_signal."""
    _signal_post(signal, (value, operation), pe, (context, stream))
