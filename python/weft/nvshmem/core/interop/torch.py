"""Symmetric memory as tensors of torch: those of weft.torch."""

from .... import arrays
from .. import init_fini, memory
from ..nvshmem_types import NvshmemInvalid, raised_by_nvshmem


def tensor(shape, dtype=None, release=False, morder="C", except_on_del=True):
    """A tensor over symmetric memory. Collective."""
    import torch

    from .... import torch as tensors
    shape = tuple(shape) if hasattr(shape, "__len__") else (shape,)
    with raised_by_nvshmem():
        made = tensors.empty(*(shape if morder == "C" else shape[::-1]), dtype=dtype or torch.float32, device=init_fini.device())
    return made if morder == "C" else made.permute(*reversed(range(len(shape))))


def bytetensor(shape, dtype=None, release=False, morder="C", except_on_del=True):
    """As tensor, of as many bytes, as elements of uint8."""
    import math

    import torch
    return tensor((math.prod(shape) * (dtype or torch.float32).itemsize,), torch.uint8)


def free_tensor(tensor):
    """Frees what tensor and bytetensor made. Collective."""
    from .... import torch as tensors
    with raised_by_nvshmem():
        tensors.free(tensor)


def tensor_get_buffer(tensor):
    """Its Buffer, its bytes, and its element type."""
    return memory.Buffer(_array_of(tensor, "nvshmem.core.tensor_get_buffer"), tensor.nbytes), tensor.nbytes, str(tensor.dtype)


def get_peer_tensor(tensor, peer_pe=None):
    """The same memory of a PE, where loads and stores reach it."""
    import torch
    with raised_by_nvshmem():
        peer = _array_of(tensor, "nvshmem.core.get_peer_tensor").peer(peer_pe)
    return torch.from_dlpack(peer).as_strided(tensor.shape, tensor.stride())


def get_multicast_tensor(team, tensor):
    raise NvshmemInvalid("nvshmem.core.get_multicast_tensor: Weft has no multicast; nvshmemx_mc_ptr is null too")


def register_external_tensor(tensor):
    """Makes a tensor of the CPU symmetric, in place. Collective."""
    return memory.change(arrays.register, tensor, "nvshmem.core.register_external_tensor", "a tensor of nvshmem.core.tensor")


def unregister_external_tensor(tensor):
    memory.change(arrays.unregister, tensor, "nvshmem.core.unregister_external_tensor", "a tensor of nvshmem.core.tensor")


def _array_of(tensor, name):
    from ....torch import tensors
    found = tensors._arrays.get(tensor.data_ptr())
    if found is None or found.is_freed:
        raise NvshmemInvalid(f"{name}: no tensor of nvshmem.core begins there")
    return found
