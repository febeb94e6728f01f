"""Put and get in kernels of numba. dst, src: contiguous arrays of one element type; of two sizes the smaller is copied.

`_nbi` ones return before the source may be reused; `_block` and `_warp` ones are called by all threads of the block or warp
with the same arguments.
"""

from ..names import NUMBERS
from . import calls
from .calls import INT, NOTHING, POINTER, SIZE, c_function, device_function, first_of, name_of, require_arrays, require_same, types

__all__ = [
    "g", "get", "get_block", "get_nbi", "get_nbi_block", "get_nbi_warp", "get_warp", "p", "put", "put_block", "put_nbi",
    "put_nbi_block", "put_nbi_warp", "put_signal", "put_signal_block", "put_signal_nbi", "put_signal_nbi_block",
    "put_signal_nbi_warp", "put_signal_warp", "put_warp"]


def _copy(name, dst, src):
    require_same(dst=dst, src=src)
    call = c_function(name, NOTHING, POINTER, POINTER, SIZE, INT)

    def implementation(dst, src, pe):
        call((dst, src, min(dst.size, src.size) * dst.itemsize, pe))
    return implementation


def _copy_signal(name, dst, src, signal_var):
    require_same(dst=dst, src=src)
    require_signal(signal_var)
    call = c_function(name, NOTHING, POINTER, POINTER, SIZE, POINTER, types.uint64, INT, INT)

    def implementation(dst, src, signal_var, signal_val, signal_op, pe):
        call((dst, src, min(dst.size, src.size) * dst.itemsize, signal_var, signal_val, signal_op, pe))
    return implementation


def require_signal(signal_var):
    require_arrays(signal_var=signal_var)
    if signal_var.dtype not in (types.int64, types.uint64):
        raise calls.TypingError(f"nvshmem.core.device.numba: a signal is an array of int64 or uint64, not of {signal_var.dtype}")


# A half is passed as the word that it is kept in.
_WORDS = {types.float16: "uint16"}


def _scalar(array, call):
    require_arrays(array=array)
    return _WORDS.get(array.dtype) or name_of(array, NUMBERS, call)


@device_function
def p(dst, src, pe):
    """Puts one value, a number or the first element of an array."""
    call = c_function(f"nvshmem_{_scalar(dst, 'p')}_p", NOTHING, POINTER, dst.dtype, INT)
    if isinstance(src, types.Array):
        def implementation(dst, src, pe):
            call((dst, first_of(src), pe))
    else:
        def implementation(dst, src, pe):
            call((dst, src, pe))
    return implementation


@device_function
def g(src, pe):
    """Gets one value."""
    call = c_function(f"nvshmem_{_scalar(src, 'g')}_g", src.dtype, POINTER, INT)

    def implementation(src, pe):
        return call((src, pe))
    return implementation


@device_function
def put(dst, src, pe):
    return _copy("nvshmem_putmem", dst, src)


@device_function
def put_warp(dst, src, pe):
    return _copy("nvshmemx_putmem_warp", dst, src)


@device_function
def put_block(dst, src, pe):
    return _copy("nvshmemx_putmem_block", dst, src)


@device_function
def put_nbi(dst, src, pe):
    return _copy("nvshmem_putmem_nbi", dst, src)


@device_function
def put_nbi_warp(dst, src, pe):
    return _copy("nvshmemx_putmem_nbi_warp", dst, src)


@device_function
def put_nbi_block(dst, src, pe):
    return _copy("nvshmemx_putmem_nbi_block", dst, src)


@device_function
def get(dst, src, pe):
    return _copy("nvshmem_getmem", dst, src)


@device_function
def get_warp(dst, src, pe):
    return _copy("nvshmemx_getmem_warp", dst, src)


@device_function
def get_block(dst, src, pe):
    return _copy("nvshmemx_getmem_block", dst, src)


@device_function
def get_nbi(dst, src, pe):
    return _copy("nvshmem_getmem_nbi", dst, src)


@device_function
def get_nbi_warp(dst, src, pe):
    return _copy("nvshmemx_getmem_nbi_warp", dst, src)


@device_function
def get_nbi_block(dst, src, pe):
    return _copy("nvshmemx_getmem_nbi_block", dst, src)


@device_function
def put_signal(dst, src, signal_var, signal_val, signal_op, pe):
    """A put, and then the update of the signal of `pe` by a SignalOp: who sees it sees the data."""
    return _copy_signal("nvshmem_putmem_signal", dst, src, signal_var)


@device_function
def put_signal_warp(dst, src, signal_var, signal_val, signal_op, pe):
    return _copy_signal("nvshmemx_putmem_signal_warp", dst, src, signal_var)


@device_function
def put_signal_block(dst, src, signal_var, signal_val, signal_op, pe):
    return _copy_signal("nvshmemx_putmem_signal_block", dst, src, signal_var)


@device_function
def put_signal_nbi(dst, src, signal_var, signal_val, signal_op, pe):
    return _copy_signal("nvshmem_putmem_signal_nbi", dst, src, signal_var)


@device_function
def put_signal_nbi_warp(dst, src, signal_var, signal_val, signal_op, pe):
    return _copy_signal("nvshmemx_putmem_signal_nbi_warp", dst, src, signal_var)


@device_function
def put_signal_nbi_block(dst, src, signal_var, signal_val, signal_op, pe):
    return _copy_signal("nvshmemx_putmem_signal_nbi_block", dst, src, signal_var)
