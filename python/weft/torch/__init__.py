"""Weft for torch: tensors over symmetric memory, and operators that torch.compile and CUDA graphs take.

    import torch, weft, weft.torch

    with weft.init() as job:
        inbox = weft.torch.zeros(4, dtype=torch.bfloat16)          # a plain tensor; the same memory on every PE
        weft.put(inbox, torch.ones(4, dtype=torch.bfloat16), 0)    # weft's functions take tensors
        shared = weft.torch.all_to_all(torch.randn(job.pe_count, 8, requires_grad=True))

Three layers: functions of weft on tensors (eager, the least overhead); operators torch.ops.weft.*, with fake kernels,
for graphs; functions that return new tensors and have gradients: all_to_all, all_gather, all_reduce.

On CUDA everything is enqueued on torch's current stream and the call returns at once; on the CPU it is done when the
call returns. Collective functions need the same shapes on all PEs of the team.
"""

from ..errors import NoTorch

try:
    import torch
except ImportError as error:
    raise NoTorch(f"weft.torch: torch cannot be imported ({error}); install it (pip install torch), or use weft with numpy") from None
if not hasattr(torch, "library"):
    raise NoTorch(f"weft.torch: {torch.__file__ or 'the folder torch'} is not PyTorch; install torch 2.4 or later")

from . import operators, splits
from .functional import (
    all_gather, all_reduce, all_to_all, all_to_all_vdev, all_to_all_vdev_2d, all_to_all_vdev_2d_offset)
from .tensors import Handle, empty, free, rendezvous, zeros
from .workspace import reserve

__all__ = ["Handle", "all_gather", "all_reduce", "all_to_all", "all_to_all_vdev", "all_to_all_vdev_2d",
           "all_to_all_vdev_2d_offset", "empty", "free", "operators", "rendezvous", "reserve", "splits", "zeros"]
