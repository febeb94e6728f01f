"""Dispatcher: dispatch and combine with autograd, for training. In a graph what it does is made of operators (weft.moe.operators), so
that torch.compile(fullgraph=True) takes it, forward and backward."""

from typing import NamedTuple

import torch

from ..errors import InvalidArgument
from . import operators as ops


class _Exchange(NamedTuple):
    """What the operators need of an exchange, and its sizes."""
    state: torch.Tensor
    number: int
    hidden: int
    experts: int
    first_expert: int
    local_experts: int


class _Dispatch(torch.autograd.Function):
    """Forward: dispatch. Backward: the gradients of a token's rows are summed, unweighted, on the way back."""

    @staticmethod
    def forward(context, x, topk_ids, weights, exchange, most_rows):
        rows, _, _, _, _, counts, offsets, plan = ops.dispatch(exchange.state, x, None, [topk_ids, weights], exchange.number, most_rows)
        context.save_for_backward(topk_ids, weights, plan)
        context.exchange = exchange
        context.mark_non_differentiable(counts, offsets, plan)
        return rows, counts, offsets, plan

    @staticmethod
    def backward(context, gradient, *_):
        topk_ids, weights, plan = context.saved_tensors
        exchange = context.exchange
        of_x = ops.combine(exchange.state, gradient, [plan, topk_ids, weights, None], exchange.number, "reduced", False)
        return of_x, None, None, None, None


class _Combine(torch.autograd.Function):
    """Forward: the experts' rows come back one by one, and are weighted and summed here, in the order of lanes. Backward: the
    gradient of a token goes to its experts by the same routes, times the weight of each row; the weights' is found here."""

    @staticmethod
    def forward(context, expert_out, topk_weights, topk_ids, plan, exchange):
        routes = [plan, topk_ids, topk_weights.float(), None]
        lanes = ops.combine(exchange.state, expert_out, routes, exchange.number, "lanes", True)
        context.exchange = exchange
        context.save_for_backward(lanes, topk_weights, topk_ids, _marker(expert_out))
        wide = torch.float64 if lanes.dtype == torch.float64 else torch.float32
        sums = (lanes.to(wide) * topk_weights.to(wide)[..., None]).sum(1)
        # Not sums.to where that is sums itself: graphs of torch 2.11 then give the gradient to the
        # one name and zeros to the other.
        return sums if lanes.dtype == wide else sums.to(lanes.dtype)

    @staticmethod
    def backward(context, gradient):
        lanes, weights, topk_ids, marker = context.saved_tensors
        of_rows, _, _ = _gradients_of_rows(context.exchange, gradient, (topk_ids, weights), marker.shape[0])
        of_weights = (lanes.to(weights.dtype) * gradient.to(weights.dtype)[:, None, :]).sum(-1)
        return of_rows, of_weights, None, None, None


class _CombineSums(torch.autograd.Function):
    """As _Combine, for an exchange that cannot bring the rows back one by one (Exchange.combines_exactly). Forward: weighted sums.
    Backward: the experts' ranks find the gradients of the weights and send them back."""

    @staticmethod
    def forward(context, expert_out, topk_weights, topk_ids, plan, exchange):
        weights = topk_weights.float()
        context.exchange = exchange
        context.save_for_backward(expert_out, topk_weights, topk_ids, plan)
        return ops.combine(exchange.state, expert_out, [plan, topk_ids, weights, weights], exchange.number, "reduced", True)

    @staticmethod
    def backward(context, gradient):
        out, weights, topk_ids, plan = context.saved_tensors
        of_rows, x, local = _gradients_of_rows(context.exchange, gradient, (topk_ids, weights), out.shape[0])
        wide = torch.float64 if out.dtype == torch.float64 else torch.float32
        products = (out.to(wide) * x.to(wide)).sum(-1)
        of_weights = _numbers_back(context.exchange, (topk_ids, weights.float(), plan), products, local, out)
        return of_rows, of_weights.to(weights.dtype), None, None, None


def _marker(rows):
    """Has as many rows, and no bytes: in a compiled backward pass, numbers are known by tensors that are kept, alone."""
    return rows.new_empty((rows.shape[0], 0))


def _gradients_of_rows(exchange, gradient, routes, count):
    """The gradients of the experts' rows, `count` in the first axis: what comes along the routes, times the rows' weights. Also what
    came, and for which expert of this rank."""
    topk_ids, weights = routes
    x, _, _, _, row_weights, counts, offsets, _ = ops.dispatch(exchange.state, gradient, None, [topk_ids, weights.float()],
                                                               exchange.number, count)
    local, is_row = _places_of(exchange, row_weights, counts, offsets)
    return torch.where(is_row[..., None], x * row_weights.to(x.dtype)[..., None], 0), x, local


def _places_of(exchange, row_weights, counts, offsets):
    """Of each row: the number of its expert on this PE, and whether it belongs to a token; other rows hold anything."""
    index = torch.arange(row_weights.shape[-1], device=counts.device)
    if row_weights.dim() == 2:  # expert_padded
        local = torch.arange(exchange.local_experts, device=counts.device)[:, None].expand(row_weights.shape)
        return local, index < counts[:, None]
    local = torch.bucketize(index, offsets[1:], right=True).clamp(max=exchange.local_experts - 1)
    return local, index - offsets[local] < counts[local]


def _numbers_back(exchange, routes, numbers, local, like):
    """One number for each row goes to the row's token, exactly: [tokens, topk]. Combine sums over the experts of a token, so
    each expert has columns of its own, and as these hold any number of its type, one column for each byte of the number."""
    topk_ids, weights, plan = routes
    width = numbers.element_size()
    experts_at_once = exchange.hidden // width
    digits = numbers.contiguous().view(torch.uint8).reshape(*numbers.shape, width).to(like.dtype)
    ids = topk_ids.long()
    found = torch.zeros(ids.shape, dtype=numbers.dtype, device=numbers.device)
    for first in range(0, exchange.experts, experts_at_once):
        count = min(experts_at_once, exchange.experts - first)
        column = (exchange.first_expert + local - first)[..., None] == torch.arange(count, device=numbers.device)
        rows = torch.zeros_like(like)
        rows[..., :count * width] = torch.where(column[..., None], digits[..., None, :], 0).flatten(-2)
        sums = ops.combine(exchange.state, rows, [plan, topk_ids, weights, None], exchange.number, "reduced", False)[:, :count * width]
        values = sums.to(torch.uint8).contiguous().view(numbers.dtype)
        here = (ids >= first) & (ids < first + count)
        found += torch.where(here, values.gather(1, (ids - first).clamp(0, count - 1)), 0)
    return found


class Dispatcher(torch.nn.Module):
    """Expert parallelism around any experts, with gradients for tokens, experts and weights.

        dispatcher = weft.moe.Dispatcher(exchange)
        y = dispatcher(x, topk_ids, topk_weights, experts)

    exchange: an Exchange with the layout expert_compact or expert_padded whose payload and output are one type of numbers
    (float64, float32, bfloat16, float16). experts(rows, counts, offsets) returns rows of the same shape; counts and offsets
    are those of Result. Rows that belong to no token (Result) get the gradient 0.

    Every PE runs the same forward and backward passes in the same order; x has requires_grad on all PEs, or on none.

    Sums are of precision "exact" where the exchange has it (Exchange.combines_exactly), else "reduced".
    torch.compile(fullgraph=True) takes a model with it.
    """

    def __init__(self, exchange):
        super().__init__()
        if exchange._is_by_rank or exchange.payload != exchange.output:
            raise InvalidArgument(
                f"weft.moe.Dispatcher: the exchange has the layout {exchange.layout}, payload {exchange.payload} and output "
                f"{exchange.output}; it needs an expert layout, and one type for both")
        if not exchange.has_part:
            raise InvalidArgument("weft.moe.Dispatcher: this PE is in no team of the exchange")
        exchange._use_torch()
        self.exchange = exchange
        graph = exchange._graph
        self._seen = _Exchange(graph.state, graph.number, exchange.hidden, exchange.experts, exchange.first_expert,
                               exchange.local_experts)
        self._rows = graph.rows
        self._combine = _Combine if exchange.combines_exactly else _CombineSums

    def forward(self, x, topk_ids, topk_weights, experts):
        rows, counts, offsets, plan = _Dispatch.apply(x, topk_ids, topk_weights.detach().float(), self._seen, self._rows())
        out = experts(rows, counts, offsets)
        return self._combine.apply(out, topk_weights, topk_ids, plan, self._seen)
