"""Dispatcher: dispatch and combine with autograd, for training. The only file here that imports torch by itself."""

import torch

from ..errors import InvalidArgument


class _Dispatch(torch.autograd.Function):
    """Forward: dispatch. Backward: the gradients of a token's rows are summed, unweighted, on the way back."""

    @staticmethod
    def forward(context, x, exchange, topk_ids, carrier):
        result = exchange.dispatch(x.detach().contiguous(), topk_ids, carrier.weights)
        carrier.take(result)
        context.exchange, context.plan = exchange, result.plan
        return result.x.clone()  # that of the exchange is used again by the next dispatch but one

    @staticmethod
    def backward(context, gradient):
        return context.exchange.combine(gradient.contiguous(), context.plan, weighted=False), None, None, None


class _Combine(torch.autograd.Function):
    """Forward: the experts' rows come back one by one, and are weighted and summed here, in the order of lanes. Backward: the
    gradient of a token goes to its experts by the same plan, times the weight of each row; the weights' is found here."""

    @staticmethod
    def forward(context, expert_out, topk_weights, exchange, carrier):
        lanes = exchange.combine(expert_out.detach().contiguous(), carrier.plan, precision="lanes")
        context.exchange, context.carrier = exchange, carrier
        context.save_for_backward(lanes, topk_weights)
        wide = torch.float64 if lanes.dtype == torch.float64 else torch.float32
        return (lanes.to(wide) * topk_weights.to(wide)[..., None]).sum(1).to(lanes.dtype)

    @staticmethod
    def backward(context, gradient):
        lanes, weights = context.saved_tensors
        exchange, carrier = context.exchange, context.carrier
        result = exchange.dispatch(gradient.contiguous(), plan=carrier.plan, topk_weights=weights.detach().float())
        of_rows = _weighted(exchange, result)
        of_weights = (lanes.to(weights.dtype) * gradient.to(weights.dtype)[:, None, :]).sum(-1)
        return of_rows, of_weights, None, None


class _CombineSums(torch.autograd.Function):
    """As _Combine, for an exchange that cannot bring the rows back one by one (Exchange.combines_exactly). Forward: weighted sums.
    Backward: the experts' ranks find the gradients of the weights and send them back."""

    @staticmethod
    def forward(context, expert_out, topk_weights, exchange, carrier):
        out = expert_out.detach().contiguous()
        context.exchange, context.carrier = exchange, carrier
        context.save_for_backward(out, topk_weights)
        return exchange.combine(out, carrier.plan, topk_weights.detach().float().contiguous())

    @staticmethod
    def backward(context, gradient):
        out, weights = context.saved_tensors
        exchange, carrier = context.exchange, context.carrier
        result = exchange.dispatch(gradient.contiguous(), plan=carrier.plan, topk_weights=weights.detach().float())
        wide = torch.float64 if out.dtype == torch.float64 else torch.float32
        of_rows = _weighted(exchange, result)
        products = (out.to(wide) * result.x.to(wide)).sum(-1)
        expert_of_row = exchange.first_expert + _places_of(exchange, result)[0]
        return of_rows, _numbers_back(exchange, carrier, products, expert_of_row, out).to(weights.dtype), None, None


def _numbers_back(exchange, carrier, numbers, expert_of_row, like):
    """One number for each row goes to the row's token, exactly: [tokens, topk]. Combine sums over the experts of a token, so
    each expert has columns of its own, and as these hold any number of its type, one column for each byte of the number."""
    width = numbers.element_size()
    experts_at_once = exchange.hidden // width
    digits = numbers.contiguous().view(torch.uint8).reshape(*numbers.shape, width).to(like.dtype)
    ids = carrier.ids.long()
    found = torch.zeros(ids.shape, dtype=numbers.dtype, device=numbers.device)
    for first in range(0, exchange.experts, experts_at_once):
        count = min(experts_at_once, exchange.experts - first)
        column = (expert_of_row - first)[..., None] == torch.arange(count, device=numbers.device)
        rows = torch.zeros_like(like)
        rows[..., :count * width] = torch.where(column[..., None], digits[..., None, :], 0).flatten(-2)
        sums = exchange.combine(rows, carrier.plan, weighted=False)[:, :count * width]
        values = sums.to(torch.uint8).contiguous().view(numbers.dtype)
        here = (ids >= first) & (ids < first + count)
        found += torch.where(here, values.gather(1, (ids - first).clamp(0, count - 1)), 0)
    return found


def _places_of(exchange, result):
    """Of each row: the number of its expert on this PE, and whether it belongs to a token; other rows hold anything."""
    counts, offsets = result.counts, result.offsets
    index = torch.arange(result.weights.shape[-1], device=counts.device)
    if result.weights.dim() == 2:  # expert_padded
        local = torch.arange(exchange.local_experts, device=counts.device)[:, None].expand(result.weights.shape)
        return local, index < counts[:, None]
    local = torch.bucketize(index, offsets[1:], right=True).clamp(max=exchange.local_experts - 1)
    return local, index - offsets[local] < counts[local]


def _weighted(exchange, result):
    """The gradients of the experts' rows: what came, times the rows' weights."""
    _, is_row = _places_of(exchange, result)
    return torch.where(is_row[..., None], result.x * result.weights.to(result.x.dtype)[..., None], 0)


class _Carrier:
    """What a dispatch gives besides its rows: plan, counts, offsets; and what it takes that has no gradient there."""

    def __init__(self, ids, weights):
        self.ids, self.weights = ids, weights

    def take(self, result):
        self.plan, self.counts, self.offsets = result.plan, result.counts, result.offsets


class Dispatcher(torch.nn.Module):
    """Expert parallelism around any experts, with gradients for tokens, experts and weights.

        dispatcher = weft.moe.Dispatcher(exchange)
        y = dispatcher(x, topk_ids, topk_weights, experts)

    exchange: an Exchange with the layout expert_compact or expert_padded whose payload and output are one type of numbers
    (float64, float32, bfloat16, float16). experts(rows, counts, offsets) returns rows of the same shape; counts and offsets
    are those of Result. Rows that belong to no token (Result) get the gradient 0.

    Every PE runs the same forward and backward passes in the same order; x has requires_grad on all PEs, or on none.

    Sums are of precision "exact" where the exchange has it (Exchange.combines_exactly), else "reduced".
    """

    def __init__(self, exchange):
        super().__init__()
        if exchange.layout.startswith("rank") or exchange.payload != exchange.output:
            raise InvalidArgument(
                f"weft.moe.Dispatcher: the exchange has the layout {exchange.layout}, payload {exchange.payload} and output "
                f"{exchange.output}; it needs an expert layout, and one type for both")
        self.exchange = exchange

    def forward(self, x, topk_ids, topk_weights, experts):
        carrier = _Carrier(topk_ids, topk_weights.detach().float())
        rows = _Dispatch.apply(x, self.exchange, topk_ids, carrier)
        out = experts(rows, carrier.counts, carrier.offsets)
        combine = _Combine if self.exchange.combines_exactly else _CombineSums
        return combine.apply(out, topk_weights, self.exchange, carrier)
