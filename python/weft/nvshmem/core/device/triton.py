"""NVSHMEM's calls in kernels of Triton. NVSHMEM4Py's documentation has none for it: the names are NVSHMEM's own.

    import nvshmem.core.device.triton as nvshmem_triton     # after weft.nvshmem.install()

    @nvshmem_triton.jit
    def shift(dst, src, size, pe):
        nvshmem_triton.putmem_block(dst, src, size, pe)

Pointers are Triton's, or integers; sizes are bytes. A program of Triton is a block, and all its threads make each call:
that is what `_block` calls are for, and waits, fence and quiet bear it. A signal without data can be set, not added to, because
each thread would add; putmem_signal_block of 0 bytes adds once.

`jit` is triton.jit with the device library; a kernel gets its state when it is loaded, so its first launch comes after
nvshmem.core.init.
"""

import triton
import triton.language as tl
from triton import knobs
from triton.language import core

from ..modules import module_init
from .library import device_library

__all__ = [
    "alltoallmem_block", "barrier_all_block", "barrier_block", "broadcastmem_block", "fcollectmem_block", "fence", "float_sum_reduce_block",
    "getmem_block", "getmem_nbi_block", "jit", "my_pe", "n_pes", "ptr", "putmem_block", "putmem_nbi_block", "putmem_signal_block",
    "putmem_signal_nbi_block", "quiet", "signal_set", "signal_wait_until", "sync_all_block", "sync_block", "team_my_pe", "team_n_pes"]

_INT, _LONG = tl.int32, tl.int64


def jit(fn=None, **options):
    """triton.jit for kernels that call functions of this module."""
    if fn is None:
        return lambda fn: jit(fn, **options)
    made = triton.jit(fn, **options)
    run = made.run

    def run_linked(*arguments, extern_libs=None, **named):
        return run(*arguments, extern_libs={**(extern_libs or {}), "libnvshmem_device": device_library("bc")}, **named)
    made.run = run_linked
    return made


def _give_state(module, _function, _name, _metadata, _hash):
    module_init(module)


knobs.runtime.kernel_load_end_hook.add(_give_state)


# What a call's parameters are: addresses and sizes, or numbers.
_KINDS = dict.fromkeys("dest source signal size count value".split(), _LONG) | dict.fromkeys("pe team root operation comparison".split(), _INT)


def _call(name, parameters="", returns=_INT):
    """A function of C. Triton has no calls without a result; nobody reads that of those that have none."""
    names = parameters.split()
    kinds = tuple(_KINDS[one] for one in names)

    @core.extern
    def call(*arguments, _semantic=None, **named):
        values = [*arguments, *(named[one] for one in names[len(arguments):])]
        given = [_semantic.cast(_semantic.to_tensor(one), kind) for one, kind in zip(values, kinds, strict=True)]
        return core.extern_elementwise("", "", given, {kinds: (name, returns)}, is_pure=False, _semantic=_semantic)
    return call


my_pe = _call("nvshmem_my_pe")
n_pes = _call("nvshmem_n_pes")
team_my_pe = _call("nvshmem_team_my_pe", "team")
team_n_pes = _call("nvshmem_team_n_pes", "team")
ptr = _call("nvshmem_ptr", "dest pe", returns=_LONG)  # an integer: the address for loads and stores; 0 where they do not reach
putmem_block = _call("nvshmemx_putmem_block", "dest source size pe")
putmem_nbi_block = _call("nvshmemx_putmem_nbi_block", "dest source size pe")
getmem_block = _call("nvshmemx_getmem_block", "dest source size pe")
getmem_nbi_block = _call("nvshmemx_getmem_nbi_block", "dest source size pe")
# Operation 9 sets the signal of `pe`, 10 adds to it, after the data: who sees it sees them.
putmem_signal_block = _call("nvshmemx_putmem_signal_block", "dest source size signal value operation pe")
putmem_signal_nbi_block = _call("nvshmemx_putmem_signal_nbi_block", "dest source size signal value operation pe")
# Until this PE's signal and the value compare so: EQ 0, NE 1, GT 2, LE 3, LT 4, GE 5. The signal as
# it was then.
signal_wait_until = _call("nvshmem_signal_wait_until", "signal comparison value", returns=_LONG)
fence = _call("nvshmem_fence")
quiet = _call("nvshmem_quiet")
barrier_all_block = _call("nvshmemx_barrier_all_block")
barrier_block = _call("nvshmemx_barrier_block", "team")
sync_all_block = _call("nvshmemx_sync_all_block")
sync_block = _call("nvshmemx_team_sync_block", "team")
alltoallmem_block = _call("nvshmemx_alltoallmem_block", "team dest source size")  # `size` bytes for each PE
broadcastmem_block = _call("nvshmemx_broadcastmem_block", "team dest source size root")
fcollectmem_block = _call("nvshmemx_fcollectmem_block", "team dest source size")
float_sum_reduce_block = _call("nvshmemx_float_sum_reduce_block", "team dest source count")
_signal_op = _call("nvshmemx_signal_op", "signal value operation pe")


@triton.jit
def signal_set(signal, value, pe):
    """Sets the signal of `pe`."""
    _signal_op(signal, value, 9, pe)
