"""Functions on tensors that are not symmetric: each returns a new tensor, and has a gradient."""

from __future__ import annotations

import torch

from .workspace import team_number

TYPE_CHECKING = False  # true for type checkers
if TYPE_CHECKING:
    from torch.distributed import ReduceOp

    from .._weft import Reduction, Team


def all_to_all(source: torch.Tensor, team: Team | None = None) -> torch.Tensor:
    """Block k of `source` goes to PE k; block k of the result came from PE k. Collective over the team.

    source: [n * m, ...] with n PEs and blocks of m rows, the same shape on all PEs; it may require grad. Returns a new
    tensor of that shape. The gradient goes the same way back. team: a weft.Team; all PEs by default.
    """
    return torch.ops.weft.all_to_all(source, team_number(team))


def all_gather(source: torch.Tensor, team: Team | None = None) -> torch.Tensor:
    """The rows of all PEs, in their order. Collective over the team.

    source: [m, ...], the same shape on all PEs. Returns [n * m, ...]. The gradient is the sum over the PEs of the rows'.
    """
    return torch.ops.weft.all_gather(source, team_number(team))


def all_reduce(source: torch.Tensor, operation: Reduction = "sum", team: Team | None = None, *,
               op: Reduction | ReduceOp | None = None) -> torch.Tensor:
    """Elementwise over all PEs: sum, prod, min, max, and, or, xor. Collective over the team.

    `op` is `operation` under the name that torch.distributed has for it, and takes its ReduceOp too.

    The result is bitwise the same on all PEs and in every run. Integers, float32 and float64; complex numbers on the CPU.
    "sum" has a gradient: the sum of the PEs' gradients.
    """
    return torch.ops.weft.all_reduce(source, operation if op is None else _reduction_of(op), team_number(team))


def _reduction_of(op: Reduction | ReduceOp) -> str:
    """"sum" for "sum", and for torch.distributed.ReduceOp.SUM."""
    if isinstance(op, str):
        return op
    name = str(op).rpartition(".")[2].lower()  # "RedOpType.SUM", or "<RedOpType.SUM: 0>" of some versions
    name = name.partition(":")[0].strip("<>")
    return {"product": "prod", "band": "and", "bor": "or", "bxor": "xor"}.get(name, name)


def all_to_all_vdev(input: torch.Tensor, out: torch.Tensor, in_splits: torch.Tensor, out_splits_offsets: torch.Tensor, team: Team | None = None) -> None:
    """Rows to PEs, in the shapes of torch.ops.symm_mem.all_to_all_vdev. Collective over the team.

    As all_to_all_vdev_2d with one expert on each PE: in_splits has the number of rows for each PE, out receives the rows by
    the PE that they come from, and out_splits_offsets [2, n] how many came from each, and where they are.
    """
    torch.ops.weft.all_to_all_vdev(input, out, in_splits, out_splits_offsets, team_number(team))


def all_to_all_vdev_2d(input: torch.Tensor, out: torch.Tensor, in_splits: torch.Tensor, out_splits_offsets: torch.Tensor, team: Team | None = None,
                       major_align: int | None = None) -> None:
    """Rows to experts, in the shapes of torch.ops.symm_mem.all_to_all_vdev_2d. Collective over the team.

    With n PEs and e experts on each: input [rows, ...], symmetric (weft.torch.empty), rows sorted by PE and then expert.
    in_splits: n * e of int64, the rows for each (PE, expert). out [places, ...] receives the rows by expert, then by the PE
    that they come from; the first row of each expert is at a multiple of major_align.
    out_splits_offsets: [2, e * n] of int64, receives how many rows came for each (expert, PE), and where they are in out.

    When it returns, out is complete and input may be changed. If one PE's out has no room, every PE raises weft.WrongShape.
    On CUDA it copies the splits to the host, and so waits for the stream, and cannot be captured in a graph.
    """
    torch.ops.weft.all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, team_number(team), major_align)


def all_to_all_vdev_2d_offset(input: torch.Tensor, out: torch.Tensor, in_splits_offsets: torch.Tensor, out_splits_offsets: torch.Tensor, team: Team | None = None) -> None:
    """Rows back from experts, in the shapes of torch.ops.symm_mem.all_to_all_vdev_2d_offset: what all_to_all_vdev_2d did,
    backward. Collective over the team.

    input: symmetric, rows by expert and then PE, with gaps where the offsets have them. in_splits_offsets: [2, e * n] of
    int64, as out_splits_offsets of all_to_all_vdev_2d: the rows for each (expert, PE), and where they are in input.
    out receives the rows by the PE that they come from, then by its experts, without gaps. out_splits_offsets [2, n * e]
    receives how many rows came from each (PE, expert), and where they are in out. The rest as all_to_all_vdev_2d.
    """
    torch.ops.weft.all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets, team_number(team))
