"""Expert parallelism: dispatch brings each token to the PEs that own its experts, combine brings the sums back.

    import numpy, weft, weft.moe as moe

    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=128, hidden=256, experts=8, topk=2, payload="float32",
                                layout="expert_compact")
        d = exchange.dispatch(x, topk_ids, topk_weights)   # d.x: rows by expert; d.counts, d.offsets
        out = my_experts(d.x, d.offsets)                   # the same shape as d.x
        y = exchange.combine(out, d.plan)                  # one row for each token of this PE

Arrays are numpy arrays or CPU tensors of torch; results are of the kind that was given. torch is imported only if a tensor
is given. Dispatcher is the same with autograd, as a torch.nn.Module. exchange_bytes says how much memory an Exchange takes. weft.moe.deep_ep has the names of DeepEP,
weft.moe.pplx those of pplx_kernels. moe/docs/MOE.md is the guide.
"""

from .arguments import exchange_bytes
from .exchange import Exchange
from .results import Plan, Result


def _class_on_gpus():
    from .gpu import GpuExchange
    return GpuExchange


Exchange._on_gpu = staticmethod(_class_on_gpus)

__all__ = ["Dispatcher", "Exchange", "Plan", "Result", "deep_ep", "exchange_bytes", "pplx"]


def __getattr__(name):
    from importlib import import_module
    if name == "Dispatcher":
        return import_module(".dispatcher", __name__).Dispatcher
    if name in ("deep_ep", "pplx"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'weft.moe' has no attribute '{name}'")
