"""Symmetric arrays: made and freed by all PEs together."""

from __future__ import annotations

import math

from . import _cuda
from .errors import Error, Freed, InvalidArgument, Mismatch, NotContiguous, WrongDevice, WrongDtype
from .native import core

TYPE_CHECKING = False  # true for type checkers; here typing need not be imported
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from ._weft import Array

    T = TypeVar("T")

_NAMES_OF_PYTHON = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def empty(shape: int | Sequence[int], dtype: object = "float32", device: object = "cpu") -> Array:
    """A symmetric array with undefined contents. Collective: all PEs call it with the same arguments.

    shape: an integer or a tuple. dtype: a name ("float32", "bfloat16"), or a dtype of numpy or torch.
    device: "cpu", "cuda" (this PE's GPU), or "cuda:1".

    Returns when all PEs have it. If the PEs differ, every PE raises weft.Mismatch with the arguments of each. A PE whose
    arguments are wrong raises that error, and the others raise weft.Mismatch with its text. weft.OutOfMemory where the
    symmetric heap has no room.
    """
    return _allocate("weft.empty", (shape, dtype, device), False)


def zeros(shape: int | Sequence[int], dtype: object = "float32", device: object = "cpu") -> Array:
    """As weft.empty, and zeroed."""
    return _allocate("weft.zeros", (shape, dtype, device), True)


def free(array: Array) -> None:
    """Frees an array. Collective: waits for all PEs. Views of it raise weft.Freed from then on.

    If a PE still has numpy arrays, tensors or memory views over it, every PE raises weft.InvalidArgument, which names
    this PE, and nothing is freed. weft.finalize frees all arrays; an array that Python forgets is not freed before.
    """
    core.require_ready("weft.free")
    note, error = "", None
    try:
        note = _note_of_free(array)
    except Exception as raised:  # the other PEs hear of it
        note, error = f"!{raised}", raised
    _agree("weft.free", note, error)
    address, is_device = array.address, array.device != "cpu"
    core.mark_freed(array, "weft.free")
    core.release(address, is_device)


def register(array: T) -> T:
    """Makes memory of this PE symmetric: a contiguous, writable array of numpy or a tensor of the CPU. Collective, with
    the same number of bytes on all PEs. It can then be the target of puts and the source of gets, where the same bytes
    of every PE's array are meant. Keep it alive until weft.unregister. Returns it.

    An array in GPU memory does not become symmetric: it is the source of puts and the dest of gets on this PE, as it is
    without this call, but then NICs that reach GPU memory need no copy of it.
    """
    core.require_ready("weft.register")
    address, count, note, error = 0, 0, "", None
    try:
        address, count, device = _bytes_of(array, "weft.register")
        note = f"weft.register of {count} bytes of the {device}"
    except Error as raised:
        note, error = f"!{raised}", raised
    _agree("weft.register", note, error)
    core.register_window(address, count)
    return array


def unregister(array: object) -> None:
    """Undoes weft.register. Collective: waits for all PEs."""
    core.require_ready("weft.unregister")
    core.unregister_window(_bytes_of(array, "weft.unregister")[0])


def is_mapped(array: Array, pe: int) -> bool:
    """True if array.peer(pe) works: loads and stores of this process reach the memory of `pe`."""
    return core.is_mapped(array.address, pe, array.device != "cpu")


def dtype_name(dtype, name):
    """"float32" for "float32", numpy.float32, numpy.dtype("float32") and torch.float32."""
    if isinstance(dtype, str):
        found = dtype
    elif dtype in _NAMES_OF_PYTHON:
        found = _NAMES_OF_PYTHON[dtype]
    else:
        found = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")
    if not core.element_bytes(found) or not getattr(dtype, "isnative", True):
        raise WrongDtype(f"{name}: there is no element type {dtype!r}; give one of {core.dtype_names()}")
    return found


def _allocate(name, wanted, is_zeroed):
    core.require_ready(name)
    note, error, shape, dtype, device = "", None, (), "", None
    try:
        shape, dtype = _shape_of(wanted[0], name), dtype_name(wanted[1], name)
        device = _cuda.device_of(wanted[2], name)
        note = f"{name} of {shape} of {dtype} on {'cpu' if device is None else 'cuda'}"
    except Exception as raised:  # the other PEs hear of it
        note, error = f"!{raised}", raised
    _agree(name, note, error)
    if device is not None:
        device = _cuda.initialize(device, name, _agree)
    count = core.element_bytes(dtype)
    for extent in shape:
        count *= extent
    return core.wrap(core.allocate(count, is_zeroed, device is not None), list(shape), dtype,
                     -1 if device is None else device)


def _agree(name, note, error):
    """All PEs call it, each with its note; where they differ, or one has an error, all raise."""
    try:
        core.agree(note, name)
    except Mismatch:
        if error is None:
            raise
    if error is not None:
        raise error


def _note_of_free(array):
    if not isinstance(array, core.Array):
        raise InvalidArgument(f"weft.free: this is a {type(array).__name__}; give the weft.Array that weft.empty or "
                              "weft.zeros returned")
    if array.is_freed:
        raise Freed("weft.free: the array was freed already")
    if array.is_peer or not array._is_whole:
        raise InvalidArgument("weft.free: this is a view; free the array that weft.empty or weft.zeros returned")
    if array._exports:
        raise InvalidArgument(f"weft.free: {array._exports} numpy arrays, tensors or memory views over the array are "
                              "alive; delete them first")
    return f"weft.free of {array.shape} of {array.dtype}"


def _shape_of(shape, name):
    found = tuple(core.shape_of(shape))
    if any(extent < 0 for extent in found):
        raise InvalidArgument(f"{name}: the shape is {shape!r}; its numbers must not be negative")
    return found


def _bytes_of(array, name):
    """Address, number of bytes, and "CPU" or "GPU"."""
    if hasattr(array, "data_ptr"):
        device = _of_this_pe(array.device, name)
        if not array.is_contiguous():
            raise NotContiguous(f"{name}: the tensor is a view with gaps; give a contiguous one")
        return array.data_ptr(), array.numel() * array.element_size(), device
    if hasattr(array, "__cuda_array_interface__"):
        return _bytes_on_gpu(array.__cuda_array_interface__, name)
    try:
        view = memoryview(array)
    except TypeError:
        raise WrongDtype(f"{name}: this is a {type(array).__name__}; give an array of numpy or a tensor") from None
    if not view.c_contiguous or view.readonly:
        raise NotContiguous(f"{name}: the memory is read-only or has gaps; give a contiguous, writable array")
    return core.address_of(array), view.nbytes, "CPU"


def _of_this_pe(device, name):
    if _cuda.device_of(device, name) is None:
        return "CPU"
    if not core.device_initialized():
        raise WrongDevice(f"{name}: the memory is on {device}, and this PE has taken no GPU; make an array with "
                          "weft.zeros(..., device=\"cuda\") first")
    return "GPU"


def _bytes_on_gpu(interface, name):
    _of_this_pe("cuda", name)
    address, is_readonly = interface["data"]
    item = int(interface["typestr"][2:])
    count = math.prod(interface["shape"])
    packed = [item * math.prod(interface["shape"][i + 1:]) for i in range(len(interface["shape"]))]
    if is_readonly or (interface.get("strides") is not None and list(interface["strides"]) != packed):
        raise NotContiguous(f"{name}: the memory is read-only or has gaps; give a contiguous, writable array")
    return address, count * item, "GPU"
