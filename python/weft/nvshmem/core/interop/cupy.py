"""Symmetric memory as arrays of CuPy; those of the CPU are numpy's. Nothing holds the memory: after free_array an array over
it must not be touched."""

import ctypes
import math

from .... import arrays
from .. import init_fini, memory
from ..nvshmem_types import NvshmemInvalid


def array(shape, dtype="float32", release=False, morder="C", except_on_del=True):
    """An array over symmetric memory. Collective."""
    return _array_of(memory.buffer(_bytes_of(shape, dtype)), shape, dtype, morder)


def bytearray(shape, dtype="float32", release=False, device_id=None, morder="C", except_on_del=True):
    """As array, of as many bytes, as elements of uint8."""
    count = _bytes_of(shape, dtype)
    return _array_of(memory.buffer(count), (count,), "uint8", morder)


def free_array(array):
    """Frees what array and bytearray made. Collective."""
    memory.free(memory.buffer_at(_address_of(array), "nvshmem.core.free_array"))


def array_get_buffer(array):
    """Its Buffer, its bytes, and its element type."""
    found = memory.buffer_at(_address_of(array), "nvshmem.core.array_get_buffer")
    return found, found.size, str(array.dtype)


def get_peer_array(array, peer_pe=None):
    """The same memory of a PE, where loads and stores reach it."""
    found = memory.buffer_at(_address_of(array), "nvshmem.core.get_peer_array")
    return _array_of(memory.get_peer_buffer(found, peer_pe), array.shape, array.dtype, "C" if array.flags.c_contiguous else "F")


def get_multicast_array(team, array):
    raise NvshmemInvalid("nvshmem.core.get_multicast_array: Weft has no multicast; nvshmemx_mc_ptr is null too")


def register_external_array(array):
    """Makes an array of the CPU symmetric, in place. Collective."""
    return memory.change(arrays.register, array, "nvshmem.core.register_external_array", "an array of nvshmem.core.array")


def unregister_external_array(array):
    memory.change(arrays.unregister, array, "nvshmem.core.unregister_external_array", "an array of nvshmem.core.array")


def _module():
    if init_fini.device() == "cpu":
        import numpy
        return numpy
    import cupy
    return cupy


def _bytes_of(shape, dtype):
    return math.prod(shape if hasattr(shape, "__len__") else (shape,)) * _module().dtype(dtype).itemsize


def _address_of(array):
    return array.ctypes.data if init_fini.device() == "cpu" else array.data.ptr


def _array_of(buffer, shape, dtype, order):
    module = _module()
    if init_fini.device() == "cpu":
        held = (ctypes.c_uint8 * buffer.size).from_address(buffer.handle)
        return module.ndarray(shape, dtype, held, order=order)
    held = module.cuda.UnownedMemory(buffer.handle, buffer.size, buffer)
    return module.ndarray(shape, dtype, module.cuda.MemoryPointer(held, 0), order=order)
