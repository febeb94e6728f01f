"""Tensors over symmetric memory, and handles to what peers have at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import reduce_tensor

from .. import arrays
from ..errors import InvalidArgument, NotSymmetric
from ..native import core

# The arrays behind tensors, by their address: they stay until weft.torch.free or weft.finalize.
_arrays = {}


def empty(*shape: int | Sequence[int], dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> torch.Tensor:
    """A tensor with undefined contents over symmetric memory. Collective, with the same arguments on all PEs.

    Any operator of torch takes it. Views of it are symmetric too; results of operators are not. See weft.empty.
    """
    return _tensor_of(arrays.empty(_shape(shape), dtype, device))


def zeros(*shape: int | Sequence[int], dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> torch.Tensor:
    """As weft.torch.empty, and zeroed."""
    return _tensor_of(arrays.zeros(_shape(shape), dtype, device))


def free(tensor: torch.Tensor) -> None:
    """Frees what weft.torch.empty made. Collective. The tensor is empty afterwards; other tensors over the memory must
    be gone, else every PE raises weft.InvalidArgument (or weft.Mismatch) and the tensor stays."""
    array = _arrays.get(tensor.data_ptr())
    if array is None or array.is_freed:
        raise InvalidArgument("weft.torch.free: the tensor is a view, was freed, or was not made by weft.torch.empty; "
                              "give the one that weft.torch.empty or weft.torch.zeros returned")
    kept, tensor.data = tensor.data, torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    address, shape = array.address, tensor.shape
    del kept, shape
    try:
        arrays.free(array)
    except Exception:
        tensor.data = torch.from_dlpack(array)
        raise
    del _arrays[address]


def rendezvous(tensor: torch.Tensor) -> Handle:
    """A Handle to the memory of all PEs behind a tensor that weft.torch.empty made, or behind a view of it.
    Not collective: symmetric addresses need no exchange."""
    for array in list(_arrays.values()):  # other threads may make tensors meanwhile
        if not array.is_freed and array.address <= tensor.data_ptr() < array.address + max(1, array.nbytes):
            return Handle(tensor, array)
    raise NotSymmetric("weft.torch.rendezvous: the tensor is not symmetric; make it with weft.torch.empty")


class Handle:
    """What the PEs have behind one symmetric tensor, as torch's symmetric memory shows it."""

    def __init__(self, tensor, array):
        self.tensor = tensor
        self._array = array

    @property
    def rank(self) -> int:
        """This PE."""
        return core.pe()

    @property
    def world_size(self) -> int:
        """The number of PEs."""
        return core.pe_count()

    def get_buffer(self, pe: int) -> torch.Tensor:
        """The tensor of `pe`, for loads and stores: a tensor of the same shape over its memory. weft.NotMapped if it is on
        another node; weft.put and weft.get reach it then."""
        start = (self.tensor.data_ptr() - self._array.address) // self._array.itemsize
        whole = torch.from_dlpack(self._array.peer(pe)).reshape(-1)
        return torch.as_strided(whole, self.tensor.shape, self.tensor.stride(), start)

    def barrier(self) -> None:
        """weft.barrier_all; on CUDA, in torch's current stream."""
        if self.tensor.is_cuda:
            core.barrier_all(stream=torch.cuda.current_stream(self.tensor.device))
        else:
            core.barrier_all()


def _shape(shape):
    return shape[0] if len(shape) == 1 else shape


def _tensor_of(array):
    for address in [address for address, known in _arrays.items() if known.is_freed]:
        del _arrays[address]
    tensor = torch.from_dlpack(array)
    _arrays[array.address] = array
    return tensor


def _reduce(tensor):
    """How a tensor goes to a process that was spawned: torch moves its memory into a file of its own, which the PEs would no
    longer write to, so that symmetric tensors are refused."""
    if tensor.device.type in ("cpu", "cuda") and core.is_ready() and \
            core.is_mapped(tensor.data_ptr(), core.pe(), tensor.is_cuda):
        raise InvalidArgument("weft.torch: a symmetric tensor was sent to another process, and torch would move it out of symmetric "
                              "memory; send tensor.clone(), or let the worker be forked (it then reads and writes the same memory)")
    return reduce_tensor(tensor)


for _type in (torch.Tensor, torch.nn.Parameter):
    ForkingPickler.register(_type, _reduce)
