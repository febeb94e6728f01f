"""Symmetric memory as tensors of CuTe DSL, by way of torch, and kernels that call nvshmem.core.device.cute.

The memory lasts until free_tensor or finalize, whoever holds the tensor.
"""

try:
    import cutlass.torch
    from cutlass import cute
    from cutlass.cute.runtime import from_dlpack
except ImportError as error:
    raise ImportError(f"nvshmem.core.interop.cute needs CuTe DSL (nvidia-cutlass-dsl 4.8) and torch: {error}") from error

from ..modules import library_init
from ..nvshmem_types import NvshmemInvalid
from . import torch

__all__ = ["bytetensor", "cute_compile_helper", "free_tensor", "get_peer_tensor", "tensor"]

_made = {}  # by id: a tensor of CuTe, and the one of torch whose memory it shows


def tensor(shape, dtype=cutlass.Float32, release=False, morder="C", except_on_del=True):
    """A tensor over symmetric memory, of a type of cutlass. Collective."""
    return _shown(torch.tensor(shape, cutlass.torch.dtype(dtype), morder=morder))


def bytetensor(shape, dtype=cutlass.Float32, release=False, morder="C", except_on_del=True):
    """As tensor, of as many bytes, as elements of Uint8."""
    return _shown(torch.bytetensor(shape if hasattr(shape, "__len__") else (shape,), cutlass.torch.dtype(dtype)))


def free_tensor(tensor):
    """Frees what tensor and bytetensor made. Collective."""
    torch.free_tensor(_torch_of(tensor, "free_tensor"))
    del _made[id(tensor)]


def get_peer_tensor(tensor, peer_pe=None):
    """The same memory of a PE, where loads and stores reach it."""
    return from_dlpack(torch.get_peer_tensor(_torch_of(tensor, "get_peer_tensor"), peer_pe))


def cute_compile_helper(function, *arguments, **options):
    """cute.compile, and the state for its kernels, which therefore comes after nvshmem.core.init: (compiled, its library)."""
    compiled = cute.compile(function, *arguments, **options)
    library = compiled.library
    library_init(library)
    return compiled, library


def _shown(made):
    shown = from_dlpack(made)
    _made[id(shown)] = shown, made
    return shown


def _torch_of(tensor, name):
    if id(tensor) not in _made:
        raise NvshmemInvalid(f"nvshmem.core.interop.cute.{name}: this is no tensor of nvshmem.core.interop.cute, or freed")
    return _made[id(tensor)][1]
