"""What a step through Megatron-Core's token dispatchers costs, forward and backward: `alltoall`, which is NCCL's all-to-all and
torch's permutations, and `flex` with the backend deepep, over weft.moe.deep_ep. The experts only scale their rows, so that little but
the dispatcher is timed. One JSON line: milliseconds for each dispatcher and round, the slowest rank, and how far outputs and
gradients of the two are apart.

    weft-run -n 2 -- python moe/bench/megatron_dispatchers.py [tokens [rounds]]
"""
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import weft
import weft.moe.deep_ep

weft.moe.deep_ep.install()
from megatron.core.process_groups_config import ProcessGroupCollection  # noqa: E402: looks for deep_ep when it is imported
from megatron.core.transformer.moe import token_dispatcher  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

TOKENS = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
HIDDEN, EXPERTS, TOPK, STEPS = 7168, 256, 8, 10


def groups():
    everyone = list(range(dist.get_world_size()))
    alone = [dist.new_group([rank]) for rank in everyone][dist.get_rank()]
    return ProcessGroupCollection(ep=dist.group.WORLD, expt_tp=alone, tp_ep=dist.group.WORLD, tp=alone)


def dispatcher(kind, pgs):
    config = TransformerConfig(
        num_layers=1, hidden_size=HIDDEN, num_attention_heads=8, num_moe_experts=EXPERTS, moe_router_topk=TOPK,
        expert_model_parallel_size=dist.get_world_size(), moe_token_dispatcher_type=kind, moe_router_dtype="fp32",
        add_bias_linear=False, bf16=True, params_dtype=torch.bfloat16, moe_router_load_balancing_type="none",
        **({"moe_flex_dispatcher_backend": "deepep"} if kind == "flex" else {}))
    local = EXPERTS // dist.get_world_size()
    ours = list(range(dist.get_rank() * local, (dist.get_rank() + 1) * local))
    classes = {"flex": token_dispatcher.MoEFlexTokenDispatcher, "alltoall": token_dispatcher.MoEAlltoAllTokenDispatcher}
    return classes[kind](local, ours, config, pgs)


def step(moe, x, probs, routing_map):
    x.grad = probs.grad = None
    hidden, chosen = moe.dispatch_preprocess(x, routing_map, probs)
    hidden, chosen = moe.token_dispatch(hidden, chosen)
    rows, _, chosen = moe.dispatch_postprocess(hidden, chosen)
    out = moe.combine_preprocess(rows * chosen[:, None].to(x.dtype))
    y = moe.combine_postprocess(moe.token_combine(out))
    y.backward(torch.ones_like(y))
    return y


def milliseconds(moe, inputs):
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step(moe, *inputs)
    torch.cuda.synchronize()
    times = [None] * dist.get_world_size()
    dist.all_gather_object(times, (time.perf_counter() - begin) * 1000 / STEPS)
    return round(max(times), 3)


with weft.init() as job:
    torch.cuda.set_device(job.pe % torch.cuda.device_count())
    store = os.path.join(tempfile.gettempdir(), f"megatron_dispatchers.{os.getppid()}")
    dist.init_process_group("cpu:gloo,cuda:nccl", store=dist.FileStore(store, job.pe_count), rank=job.pe, world_size=job.pe_count)
    random = torch.Generator("cuda").manual_seed(job.pe)
    x = torch.randn(TOKENS, 1, HIDDEN, generator=random, device="cuda").bfloat16().requires_grad_()
    scores, ids = torch.randn(TOKENS, EXPERTS, generator=random, device="cuda").softmax(-1).topk(TOPK, -1)
    empty = torch.zeros(TOKENS, EXPERTS, device="cuda")
    probs, routing_map = empty.scatter(1, ids, scores).requires_grad_(), empty.bool().scatter(1, ids, True)
    moes = {kind: dispatcher(kind, groups()) for kind in ("alltoall", "flex")}
    found = {}
    for kind, moe in moes.items():
        for _ in range(3):
            y = step(moe, x, probs, routing_map)
        found[kind] = y.detach().float(), x.grad.float(), probs.grad
    apart = [((one - other).norm() / one.norm()).item() for one, other in zip(*found.values())]
    times = {kind: [] for kind in moes}
    for _ in range(ROUNDS):
        for kind, moe in moes.items():
            times[kind].append(milliseconds(moe, (x, probs, routing_map)))
    if job.pe == 0:
        print(json.dumps({"tokens": TOKENS, "ranks": job.pe_count, "hidden": HIDDEN, "experts": EXPERTS, "topk": TOPK, "ms": times,
                          "apart": {name: round(value, 5) for name, value in zip(("y", "x", "probs"), apart)},
                          "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    dist.barrier()
    dist.destroy_process_group()
