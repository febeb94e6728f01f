"""torch.ops.weft.*: operators with fake kernels. Each enqueues on torch's current stream, or works on the CPU.

Those that return nothing write `dest`, `out` or `signal`, also where the memory that changes is a peer's: a graph so
keeps them, and their order to everything that touches these tensors. `team` is a number: 0 all PEs, 1 those of this
node, others from weft.torch.team_number.

Tensors that a graph copies are not symmetric: pass symmetric tensors into the graph as they are, not computed in it.
"""

import torch

from ..errors import WrongDtype, WrongShape
from ..native import core
from .workspace import half_for, team_of

library = torch.library.Library("weft", "DEF")


def _define(schema, real, fake):
    name = schema.partition("(")[0]
    library.define(schema)
    library.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"weft::{name}", fake, lib=library)


def _nothing(*arguments):
    return None


# ---- One-sided ---------------------------------------------------------------------------------------------------------

def _put(dest, source, pe):
    core.put(dest, source, pe)


def _get(dest, source, pe):
    core.get(dest, source, pe)


def _put_signal(dest, source, signal, pe, value=1, operation="set"):
    core.put_signal(dest, source, signal, (value, operation), pe, (None, None))


def _wait(signal, comparison, value):
    core.signal_wait_until(signal, comparison, value)


def _barrier(tensor):
    core.barrier_all(stream=torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None)


_define("put(Tensor(a!) dest, Tensor source, int pe) -> ()", _put, _nothing)
_define("get(Tensor(a!) dest, Tensor source, int pe) -> ()", _get, _nothing)
_define("put_signal(Tensor(a!) dest, Tensor source, Tensor(b!) signal, int pe, int value=1, str operation='set') -> ()",
        _put_signal, _nothing)
_define("signal_wait_until(Tensor(a!) signal, str comparison, int value) -> ()", _wait, _nothing)
_define("barrier_all(Tensor(a!) tensor) -> ()", _barrier, _nothing)


# ---- Collectives that return new tensors ---------------------------------------------------------------------------------

def _staged(source, result_shape, team, call):
    """Runs call(dest, source) on the workspace, and returns the result as a new tensor."""
    source = source.contiguous()
    result = source.new_empty(result_shape)
    count = max(source.numel(), result.numel()) * source.element_size()
    sent, got = half_for(count, team, source.device)
    sent = sent[:source.numel() * source.element_size()].view(source.dtype)
    got = got[:result.numel() * source.element_size()].view(source.dtype)
    sent.copy_(source.reshape(-1))
    call(got, sent)
    result.view(-1).copy_(got)
    return result


def _all_to_all(source, team=0):
    _require_blocks(source, team)
    return _staged(source, source.shape, team, team_of(team).alltoall)


def _all_gather(source, team=0):
    shape = (source.shape[0] * team_of(team).pe_count, *source.shape[1:]) if source.dim() else (team_of(team).pe_count,)
    return _staged(source, shape, team, team_of(team).fcollect)


def _all_reduce(source, operation="sum", team=0):
    return _staged(source, source.shape, team, lambda dest, own: team_of(team).reduce(dest, own, operation))


def _require_blocks(source, team):
    count = team_of(team).pe_count
    if source.dim() == 0 or source.shape[0] % count:
        raise WrongShape(f"weft.torch.all_to_all: the first dimension of {tuple(source.shape)} is not one equal block for "
                         f"each of {count} PEs")


_define("all_to_all(Tensor source, int team=0) -> Tensor", _all_to_all,
        lambda source, team=0: torch.empty_like(source, memory_format=torch.contiguous_format))
_define("all_gather(Tensor source, int team=0) -> Tensor", _all_gather,
        lambda source, team=0: source.new_empty((source.shape[0] * team_of(team).pe_count, *source.shape[1:])
                                                if source.dim() else (team_of(team).pe_count,)))
_define("all_reduce(Tensor source, str operation='sum', int team=0) -> Tensor", _all_reduce,
        lambda source, operation="sum", team=0: torch.empty_like(source, memory_format=torch.contiguous_format))


# ---- Gradients -------------------------------------------------------------------------------------------------------------

def _keep(ctx, inputs, output):  # torch gives these by name
    ctx.inputs = inputs[1:]
    ctx.rows = inputs[0].shape[0] if inputs[0].dim() else None


def _all_to_all_backward(context, gradient):
    return torch.ops.weft.all_to_all(gradient, *context.inputs), None


def _all_gather_backward(context, gradient):
    team = context.inputs[0] if context.inputs else 0
    rows = 1 if context.rows is None else context.rows
    whole = torch.ops.weft.all_reduce(gradient, "sum", team)
    mine = whole.narrow(0, team_of(team).pe * rows, rows)
    return (mine.reshape(()) if context.rows is None else mine), None


def _all_reduce_backward(context, gradient):
    operation, team = (*context.inputs, *("sum", 0)[len(context.inputs):])
    if operation != "sum":
        raise WrongDtype(f"weft.torch.all_reduce: the reduction '{operation}' has no gradient; use 'sum', or a tensor that "
                         "requires none")
    return torch.ops.weft.all_reduce(gradient, "sum", team), None, None


for _name, _backward in (("all_to_all", _all_to_all_backward), ("all_gather", _all_gather_backward),
                         ("all_reduce", _all_reduce_backward)):
    torch.library.register_autograd(f"weft::{_name}", _backward, setup_context=_keep, lib=library)


# ---- Splits that only the device knows -----------------------------------------------------------------------------------

def _output_places(counts, major_align):
    """Where each of [PE, expert] rows go: by expert, then by PE; an expert's first row is at a multiple of the alignment."""
    by_expert = counts.t().contiguous()
    offsets, at = torch.zeros_like(by_expert), 0
    for expert in range(by_expert.shape[0]):
        at = -(-at // major_align) * major_align
        for pe in range(by_expert.shape[1]):
            offsets[expert, pe] = at
            at += int(by_expert[expert, pe])
    return by_expert, offsets, at


def _vdev_2d(source, out, in_splits, out_splits_offsets, team, major_align):
    team_object = team_of(team)
    pes = team_object.pe_count
    splits = in_splits.cpu().reshape(pes, -1)
    starts = (splits.reshape(-1).cumsum(0) - splits.reshape(-1)).reshape(splits.shape)
    # Each PE learns how many rows it gets of every expert, and where they start at their source.
    got = _all_to_all(torch.stack((splits, starts), 1).to(source.device), team).cpu()
    by_expert, offsets, rows = _output_places(got[:, 0], 1 if major_align is None else major_align)
    if rows > out.shape[0]:
        raise WrongShape(f"weft.torch.all_to_all_vdev_2d: {rows} rows arrive, and out has {out.shape[0]}; make it larger")
    for pe in range(pes):
        world_pe = team_object.translate(pe, core.world)
        for expert in range(by_expert.shape[0]):
            count, start, to = int(by_expert[expert, pe]), int(got[pe, 1, expert]), int(offsets[expert, pe])
            if count:
                place = torch.as_strided(source, (count, *source.shape[1:]), source.stride(),
                                         source.storage_offset() + start * source.stride(0))
                core.get(out[to:to + count], place, world_pe)
    out_splits_offsets.copy_(torch.stack((by_expert.reshape(-1), offsets.reshape(-1))))
    team_object.sync(**({"stream": torch.cuda.current_stream(out.device)} if out.is_cuda else {}))


_define("all_to_all_vdev_2d(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(b!) out_splits_offsets, int team=0, "
        "int? major_align=None) -> ()",
        lambda source, out, in_splits, out_splits_offsets, team=0, major_align=None: _vdev_2d(
            source, out, in_splits, out_splits_offsets, team, major_align), _nothing)
