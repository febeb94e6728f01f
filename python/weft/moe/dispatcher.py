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
    def forward(context, expert_out, topk_weights, exchange, plan):
        lanes = exchange.combine(expert_out.detach().contiguous(), plan, precision="lanes")
        context.exchange, context.plan = exchange, plan
        context.save_for_backward(lanes, topk_weights)
        wide = torch.float64 if lanes.dtype == torch.float64 else torch.float32
        return (lanes.to(wide) * topk_weights.to(wide)[..., None]).sum(1).to(lanes.dtype)

    @staticmethod
    def backward(context, gradient):
        lanes, weights = context.saved_tensors
        result = context.exchange.dispatch(gradient.contiguous(), plan=context.plan, topk_weights=weights.detach().float())
        of_rows = (result.x * result.weights.to(result.x.dtype)[..., None]).clone()
        of_weights = (lanes.to(weights.dtype) * gradient.to(weights.dtype)[:, None, :]).sum(-1)
        return of_rows, of_weights, None, None


class _Carrier:
    """What a dispatch gives besides its rows: plan, counts, offsets; and what it takes that has no gradient there."""

    def __init__(self, weights):
        self.weights = weights

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
    """

    def __init__(self, exchange):
        super().__init__()
        if exchange.layout.startswith("rank") or exchange.payload != exchange.output:
            raise InvalidArgument(
                f"weft.moe.Dispatcher: the exchange has the layout {exchange.layout}, payload {exchange.payload} and output "
                f"{exchange.output}; it needs an expert layout, and one type for both")
        self.exchange = exchange

    def forward(self, x, topk_ids, topk_weights, experts):
        carrier = _Carrier(topk_weights.detach().float())
        rows = _Dispatch.apply(x, self.exchange, topk_ids, carrier)
        out = experts(rows, carrier.counts, carrier.offsets)
        return _Combine.apply(out, topk_weights, self.exchange, carrier.plan)
