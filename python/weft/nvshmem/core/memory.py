"""Symmetric memory as buffers of bytes."""

from ... import arrays
from ...native import core
from . import init_fini
from .nvshmem_types import NvshmemError, NvshmemInvalid, raised_by_nvshmem

_buffers = {}  # by address: those that this process has made and not freed


class _Type:
    """An element type as weft reads it from tensors."""

    def __init__(self, name):
        self._name = name

    def __str__(self):
        return f"weft.{self._name}"


_TYPES = {name: _Type(name) for name in core.dtype_names().split(", ")}


class View:
    """`count` elements of type `dtype` at an address, as weft's functions take tensors. Keeps nothing alive."""

    def __init__(self, address, count, dtype, device):
        self._address, self._count, self._device = address, count, device
        self.dtype = _TYPES[dtype]
        self.device = device
        self.is_cuda = device != "cpu"
        self.is_cpu = not self.is_cuda

    def data_ptr(self):
        return self._address

    def numel(self):
        return self._count

    def is_contiguous(self):
        return True

    def get_device(self):
        return int(self._device.partition(":")[2])


class Buffer:
    """Symmetric memory, as a Buffer of cuda.core shows it: `handle` is its address, `size` its bytes. DLPack shows bytes."""

    def __init__(self, array, size):
        self._array = array
        self.size = size

    @property
    def handle(self):
        return self._array.address

    @property
    def device(self):
        return self._array.device

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def view(self, dtype="uint8"):
        """All of it as elements of `dtype`."""
        return View(self.handle, self.size // core.element_bytes(dtype), dtype, self.device)


def buffer(size, release=False, except_on_del=True):
    """`size` bytes of symmetric memory, a Buffer. Collective. It lasts until free or finalize, whoever holds it."""
    with raised_by_nvshmem():
        made = Buffer(arrays.empty(size, "uint8", init_fini.device()), size)
    _buffers[made.handle] = made
    return made


def free(buffer):
    """Frees a Buffer. Collective. That of a peer needs no free."""
    if not isinstance(buffer, Buffer):
        raise NvshmemInvalid(f"nvshmem.core.free: this is a {type(buffer).__name__}; give what nvshmem.core.buffer returned")
    if buffer._array.is_peer:
        return
    if buffer._array.is_freed:
        raise NvshmemError("nvshmem.core.free: the buffer was freed already")
    address = buffer.handle
    with raised_by_nvshmem():
        arrays.free(buffer._array)
    _buffers.pop(address, None)


def get_peer_buffer(buffer, pe):
    """The same memory of `pe`, as loads and stores of this PE reach it."""
    if not isinstance(buffer, Buffer):
        raise NvshmemInvalid("nvshmem.core.get_peer_buffer: give what nvshmem.core.buffer returned")
    with raised_by_nvshmem():
        return Buffer(buffer._array.peer(pe), buffer.size)


def buffer_at(address, name):
    """The Buffer that begins there."""
    found = _buffers.get(address)
    if found is None or found._array.is_freed:
        raise NvshmemInvalid(f"{name}: no memory of nvshmem.core begins there")
    return found


def change(call, memory, name, instead):
    """Registers memory of the CPU, or takes it back. `instead`: what memory of a GPU is copied into."""
    if init_fini.device() != "cpu":
        raise NvshmemError(f"{name}: Weft makes memory of the CPU alone symmetric in place; copy into {instead}")
    with raised_by_nvshmem():
        return call(memory)


def operand(value):
    """What weft's functions take for a Buffer, an array or a tensor."""
    return value.view() if isinstance(value, Buffer) else value


def signal_of(value, name):
    """The first word of a Buffer, an array or a tensor."""
    if isinstance(value, Buffer):
        if value.size < 8:
            raise ValueError(f"{name}: a signal has 8 bytes, and the buffer {value.size}")
        return View(value.handle, 1, "uint64", value.device)
    return value
