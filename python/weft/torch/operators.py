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


def define(schema, real, fake):
    """An operator torch.ops.weft.NAME with a kernel for all devices, and one for tensors that have only a shape."""
    name = schema.partition("(")[0]
    library.define(schema)
    library.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"weft::{name}", fake, lib=library)


def nothing(*arguments):
    """The fake kernel of an operator that returns nothing."""


# ---- One-sided -----------------------------------------------------------------------------------

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


define("put(Tensor(a!) dest, Tensor source, int pe) -> ()", _put, nothing)
define("get(Tensor(a!) dest, Tensor source, int pe) -> ()", _get, nothing)
define("put_signal(Tensor(a!) dest, Tensor source, Tensor(b!) signal, int pe, int value=1, str operation='set') -> ()",
        _put_signal, nothing)
define("signal_wait_until(Tensor(a!) signal, str comparison, int value) -> ()", _wait, nothing)
define("barrier_all(Tensor(a!) tensor) -> ()", _barrier, nothing)


# ---- Collectives that return new tensors ---------------------------------------------------------

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


def exchange_blocks(source, team=0):
    _require_blocks(source, team)
    return _staged(source, source.shape, team, team_of(team).alltoall)


def gather(source, team=0):
    shape = (source.shape[0] * team_of(team).pe_count, *source.shape[1:]) if source.dim() else (team_of(team).pe_count,)
    return _staged(source, shape, team, team_of(team).fcollect)


def _all_reduce(source, operation="sum", team=0):
    return _staged(source, source.shape, team, lambda dest, own: team_of(team).reduce(dest, own, operation))


def _require_blocks(source, team):
    count = team_of(team).pe_count
    if source.dim() == 0 or source.shape[0] % count:
        raise WrongShape(f"weft.torch.all_to_all: the first dimension of {tuple(source.shape)} is not one equal block for "
                         f"each of {count} PEs")


define("all_to_all(Tensor source, int team=0) -> Tensor", exchange_blocks,
        lambda source, team=0: torch.empty_like(source, memory_format=torch.contiguous_format))
define("all_gather(Tensor source, int team=0) -> Tensor", gather,
        lambda source, team=0: source.new_empty((source.shape[0] * team_of(team).pe_count, *source.shape[1:])
                                                if source.dim() else (team_of(team).pe_count,)))
define("all_reduce(Tensor source, str operation='sum', int team=0) -> Tensor", _all_reduce,
        lambda source, operation="sum", team=0: torch.empty_like(source, memory_format=torch.contiguous_format))


# ---- Gradients -----------------------------------------------------------------------------------

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
