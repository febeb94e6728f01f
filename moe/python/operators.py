"""torch.ops.weft_moe.*: dispatch and combine as operators with fake kernels, for torch.compile. Exchange.dispatch and
Exchange.combine call them in a graph that is being compiled, and so does weft.moe.Dispatcher.

`routes` are topk_ids and topk_weights of a dispatch; of a combine the plan, these two, and the weights that it is given.

`rows` of dispatch is for compact layouts on the CPU: the number of rows that results have, zeros (ids: -1) behind those that come.
In a graph it is as many as can come, as on GPUs. None: as many as come.

An exchange is known to a graph by a number, in which its sizes are hashed, as torch keeps what it compiled by the text of the graph;
and by `state`, a tensor that each operator writes: so a graph keeps all calls, and their order. Results are new tensors: what
dispatch copies out of memory that the exchange uses again, a graph may keep.

A plan is a tensor, too. On a GPU it is the plan's memory. On the CPU it holds the plan's number, and its storage keeps the plan
alive; a copy of it is no plan.
"""

import itertools
import weakref
import zlib

import numpy
import torch

from ..errors import InvalidArgument, WrongShape
from . import gradients
from .results import Plan, Result, routes_of

if not hasattr(torch.library, "register_fake"):
    raise ImportError(f"weft.moe.operators and weft.moe.Dispatcher need torch 2.4 or later, and this is {torch.__version__}")

_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
           "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2, "nvfp4": torch.uint8}
_PARTS = ("x", "scales", "row_scales", "ids", "weights", "counts", "offsets")
_SIZES = ("device", "layout", "payload", "scales", "output", "scales_by_column", "max_tokens", "hidden", "experts", "topk", "ranks",
          "local_experts", "_rows_max", "_plan_bytes")  # on which the shapes and types of results depend
_numbers = itertools.count(1)
_exchanges = weakref.WeakValueDictionary()
_owners = weakref.WeakValueDictionary()
library = torch.library.Library("weft_moe", "DEF")


class GraphPlan(Plan):
    """As weft.moe.Plan; its handle is a tensor."""


def _number_for(exchange):
    sizes = [str(getattr(exchange, name, None)) for name in _SIZES]
    return zlib.crc32(repr(sizes).encode()) * 2**24 + next(_numbers)


class Graph:
    """An exchange as a graph that is being compiled sees it."""

    def __init__(self, exchange):
        self.number, self._most_rows = _number_for(exchange), exchange._rows_max
        self.state = torch.zeros(1, dtype=torch.uint8, device=getattr(exchange, "device", "cpu"))
        _exchanges[self.number] = exchange

    is_compiling = staticmethod(torch.compiler.is_compiling)

    def outside(self, plan):
        """The plan as the exchange has it, also of a graph that returned it."""
        if not isinstance(plan, GraphPlan):
            return plan
        return _plan_of(_exchange_of(self.number), plan._handle, plan.topk_ids, plan.topk_weights)

    # ---- What a graph calls: made of operators alone

    def rows(self):
        """That a dispatch asks for."""
        return self._most_rows if self.is_compiling() else None

    def dispatch(self, given, plan, bound, phase, out=None):
        """As Exchange.dispatch. Result.outputs is None: what is written there would be a copy, in a graph."""
        x, topk_ids, topk_weights, scales = given
        _require_both(phase, out)
        gradients.refuse("dispatch", {"x": x, "topk_weights": topk_weights})
        topk_ids, topk_weights = routes_of(x, topk_ids, topk_weights, plan, bound)
        topk_ids = topk_ids if bound is None else bounded(topk_ids, bound)
        *parts, found = torch.ops.weft_moe.dispatch(self.state, x, scales, [topk_ids, topk_weights], self.number, self.rows())
        x, scales, row_scales, ids, weights, counts, offsets = parts
        is_by_rank = ids.dim() > 1
        return Result(x, scales if scales.dim() > 1 else None, row_scales if row_scales.dtype == torch.float32 else None, weights,
                      ids if is_by_rank else None, counts, offsets, GraphPlan(found, topk_ids, topk_weights), None)

    def combine(self, given, out, precision, weighted, phase):
        expert_out, plan, topk_weights = given
        _require_both(phase, out)
        gradients.refuse("combine", {"expert_out": expert_out, "topk_weights": topk_weights})
        if not isinstance(plan, GraphPlan):
            raise InvalidArgument("weft.moe: in a compiled graph combine needs the plan of a dispatch in a compiled graph; compile "
                                  "both or none")
        if expert_out is None:
            raise InvalidArgument("weft.moe: expert_out is missing; give rows in the shape of Result.x")
        routes = [plan._handle, plan.topk_ids, plan.topk_weights, topk_weights]
        return torch.ops.weft_moe.combine(self.state, expert_out, routes, self.number, precision, weighted)


def bounded(ids, bound):
    """ids [tokens, topk], with -1 for tokens from number `bound` on: an integer, or a tensor with one on the same device."""
    return torch.where(torch.arange(len(ids), device=ids.device)[:, None] < bound, ids, -1)


def _require_both(phase, out):
    if phase != "both" or out is not None:
        raise InvalidArgument(f"weft.moe: phase is {phase!r} and out is {'given' if out is not None else None}; in a compiled graph "
                              "a call has the phase 'both' and makes its own tensors")


def _exchange_of(number):
    exchange = _exchanges.get(number)
    if exchange is None:
        raise InvalidArgument("weft.moe: the exchange of a compiled graph is gone; keep it as long as the graph")
    return exchange


# ---- Plans as tensors ----------------------------------------------------------------------------

class _Owner:
    """What the storage of a plan's tensor refers to, on the CPU."""

    def __init__(self, plan):
        self.number, self.plan = next(_numbers), plan
        self._bytes = numpy.array([self.number], "int64")
        self.__array_interface__ = self._bytes.__array_interface__


def _tensor_of(exchange, plan):
    if hasattr(plan, "memory"):
        return plan.memory[:exchange._plan_bytes]
    owner = _Owner(plan)
    _owners[owner.number] = owner
    return torch.from_numpy(numpy.asarray(owner))  # whose base is the owner


def _plan_of(exchange, tensor, topk_ids, topk_weights):
    """The plan behind a tensor, as the exchange has it."""
    if tensor.is_cuda:
        return exchange._plan_over(tensor, topk_ids, topk_weights)
    owner = _owners.get(int(tensor))
    if owner is None:
        raise InvalidArgument("weft.moe: plan is no plan of a live dispatch, or a copy of its tensor; give the tensor that "
                              "weft_moe::dispatch returned")
    return owner.plan


# ---- The operators -------------------------------------------------------------------------------

def dispatch(*arguments):
    """torch.ops.weft_moe.dispatch. Outside of a graph without torch's way to an operator, which takes the CPU longer than the call; what
    is missing is None then."""
    return torch.ops.weft_moe.dispatch(*arguments) if torch.compiler.is_compiling() else _parts_here(*arguments)


def combine(*arguments):
    """torch.ops.weft_moe.combine, the same way."""
    return torch.ops.weft_moe.combine(*arguments) if torch.compiler.is_compiling() else _combine(*arguments)


def _dispatch(*arguments):
    return tuple(arguments[0].new_empty(0) if part is None else part for part in _parts_here(*arguments, apart=True))


def _parts_here(state, x, scales, routes, number, rows, apart=False):
    """apart: those on a GPU share no memory."""
    topk_ids, topk_weights = routes
    exchange = _exchange_of(number)
    weights = None if topk_weights is None else topk_weights.detach().contiguous()
    call = exchange.dispatch_apart if apart and state.is_cuda else exchange.dispatch
    result = call(x.detach().contiguous(), topk_ids.contiguous(), weights, scales)
    stays = state.is_cuda and not exchange._is_in_place
    parts = [_own(getattr(result, name), stays) for name in _PARTS]
    if exchange._rows is None and rows is not None:
        parts[:5] = [_lengthened(part, rows, -1 if name == "ids" else 0) for name, part in zip(_PARTS, parts[:5])]
    return (*parts, _tensor_of(exchange, result.plan))


def _lengthened(part, rows, value):
    if part is None:
        return None
    count = part.shape[0]
    if rows < count:
        raise WrongShape(f"weft.moe: {count} rows came, and rows={rows} were asked for")
    longer = torch.full((rows, *part.shape[1:]), value, dtype=torch.int32 if value else torch.uint8).to(part.dtype)
    longer[:count] = part
    return longer


def _own(tensor, stays):
    """A part of a Result; one that the exchange uses again is copied."""
    if tensor is None:
        return None
    is_dense = tensor.is_contiguous() or tensor.dim() == 3 and tensor.transpose(1, 2).is_contiguous()  # scales_by_column
    return tensor if stays and is_dense else tensor.clone()


def _fake_dispatch(state, x, scales, routes, number, rows):
    exchange = _exchange_of(number)
    if exchange._rows is not None:
        rows = exchange._rows
    else:  # compact, on the CPU: as many as come
        rows = (torch.library.get_ctx().new_dynamic_size() if rows is None else rows,)
    parts = [x.new_empty(shape, dtype=dtype) for dtype, shape in _parts_of(exchange, rows, x.is_cuda)]
    if exchange.scales_by_column:
        kind = torch.float32 if exchange.scales == "float32" else torch.int32
        parts[1] = x.new_empty((rows[0], exchange._scale_bytes // 4, rows[1]), dtype=kind).transpose(1, 2)
    return tuple(parts)


def _parts_of(exchange, rows, on_gpu):
    nothing, by_rank = (torch.uint8, (0,)), exchange._is_by_rank
    columns = exchange.hidden // 2 if exchange.payload == "nvfp4" else exchange.hidden
    blocks = {"none": nothing, "nvfp4": (torch.uint8, (*rows, exchange.hidden // 16)),
              "float32": (torch.float32, (*rows, exchange._scale_bytes // 4)),
              "ue8m0": (torch.uint8, (*rows, exchange._scale_bytes))}
    lanes = (exchange.topk,) if by_rank else ()
    parts = exchange.ranks if by_rank else exchange.local_experts
    return ((_DTYPES[exchange.payload], (*rows, columns)), blocks[exchange.scales],
            (torch.float32, rows) if exchange.scales == "nvfp4" else nothing,
            (torch.int32, (*rows, *lanes)) if by_rank else nothing, (torch.float32, (*rows, *lanes)),
            (torch.int32, (parts,)), (torch.int64, (parts + 1,)),
            (torch.uint8, (exchange._plan_bytes,)) if on_gpu else (torch.int64, (1,)))


def _combine(state, expert_out, routes, number, precision, weighted):
    plan, topk_ids, topk_weights, given_weights = routes
    exchange = _exchange_of(number)
    weights = None if given_weights is None else given_weights.detach().contiguous()
    plan, out = _plan_of(exchange, plan, topk_ids, topk_weights), expert_out.detach().contiguous()
    if exchange._rows is None and out.shape[0] > plan._rows_shape[0]:
        out = out[:plan._rows_shape[0]]
    return exchange.combine(out, plan, weights, precision=precision, weighted=weighted)


def _fake_combine(state, expert_out, routes, number, precision, weighted):
    exchange = _exchange_of(number)
    lanes = (exchange.topk,) if precision == "lanes" else ()
    return expert_out.new_empty((routes[1].shape[0], *lanes, exchange.hidden), dtype=_DTYPES[exchange.output])


def _define(schema, real, fake):
    name = schema.partition("(")[0]
    library.define(schema)
    library.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"weft_moe::{name}", fake, lib=library)


_define("dispatch(Tensor(a!) state, Tensor x, Tensor? scales, Tensor?[] routes, int exchange, SymInt? rows) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", _dispatch, _fake_dispatch)
_define("combine(Tensor(a!) state, Tensor expert_out, Tensor?[] routes, int exchange, str precision, bool weighted) -> Tensor",
        _combine, _fake_combine)
