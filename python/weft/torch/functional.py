"""Functions on tensors that are not symmetric: each returns a new tensor, and has a gradient."""

import torch

from .workspace import team_number


def all_to_all(source, team=None):
    """Block k of `source` goes to PE k; block k of the result came from PE k. Collective over the team.

    source: [n * m, ...] with n PEs and blocks of m rows, the same shape on all PEs; it may require grad. Returns a new
    tensor of that shape. The gradient goes the same way back. team: a weft.Team; all PEs by default.
    """
    return torch.ops.weft.all_to_all(source, team_number(team))


def all_gather(source, team=None):
    """The rows of all PEs, in their order. Collective over the team.

    source: [m, ...], the same shape on all PEs. Returns [n * m, ...]. The gradient is the sum over the PEs of the rows'.
    """
    return torch.ops.weft.all_gather(source, team_number(team))


def all_reduce(source, operation="sum", team=None):
    """Elementwise over all PEs: sum, prod, min, max, and, or, xor. Collective over the team.

    The result is bitwise the same on all PEs and in every run. Integers, float32 and float64; complex numbers on the CPU.
    "sum" has a gradient: the sum of the PEs' gradients.
    """
    return torch.ops.weft.all_reduce(source, operation, team_number(team))


def all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, team=None, major_align=None):
    """Rows to experts, in the shapes of torch.ops.symm_mem.all_to_all_vdev_2d. Collective over the team.

    With n PEs and e experts on each: input [rows, ...], symmetric (weft.torch.empty), rows sorted by PE and then expert.
    in_splits: n * e of int64, the rows for each (PE, expert). out [places, ...] receives the rows by expert, then by the PE
    that they come from; the first row of each expert is at a multiple of major_align.
    out_splits_offsets: [2, e * n] of int64, receives how many rows came for each (expert, PE), and where they are in out.

    When it returns, out is complete and input may be changed. On CUDA it copies the splits to the host, and so waits for
    the stream, and cannot be captured in a graph.
    """
    torch.ops.weft.all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, team_number(team), major_align)
