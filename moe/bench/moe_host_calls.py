"""What a call of weft.moe costs the CPU, on GPUs: microseconds from the call to its return, kernels being enqueued. Exchange.dispatch and
Exchange.combine, eager and as operators (torch.ops.weft_moe), and the same pair by weft.moe.deep_ep. The median over samples of
CALLS pairs, each after the GPU has finished; the slowest PE. Of 4,096 tokens also the layout and the dispatch of deep_ep's normal
mode, one call in each sample. JSON lines.

    weft-run -n 2 -- python moe/bench/moe_host_calls.py
"""
import json
import statistics
import time

import numpy
import torch
import weft
import weft.moe
import weft.moe.deep_ep as deep_ep

CALLS, SAMPLES, TOKENS, HIDDEN, EXPERTS, TOPK = 50, 41, 1, 7168, 256, 8


def microseconds(body, calls=CALLS):
    """Of one of `calls` runs of `body`."""
    times = []
    for _ in range(SAMPLES + 3):
        torch.cuda.synchronize()
        weft.barrier_all()
        begin = time.perf_counter()
        for _ in range(calls):
            body()
        times.append((time.perf_counter() - begin) * 1e6 / calls)
    mine = weft.zeros(2, "float64")
    numpy.asarray(mine)[0] = statistics.median(times[3:])
    weft.world.reduce(mine[1:], mine[:1], "max")
    return float(numpy.asarray(mine)[1])


def calls(x, ids, weights):
    """{name: body}."""
    sizes = {"max_tokens": 128, "hidden": HIDDEN, "experts": EXPERTS, "topk": TOPK, "payload": "fp8_e4m3", "scales": "float32"}
    exchange = weft.moe.Exchange(**sizes, device="cuda")
    buffer = deep_ep.Buffer(low_latency_mode=True)
    rows = torch.zeros(exchange._rows + (HIDDEN,), dtype=torch.bfloat16, device="cuda")
    state, number, ops = exchange._graph.state, exchange._graph.number, torch.ops.weft_moe

    def plain():
        exchange.combine(rows, exchange.dispatch(x, ids, weights).plan)

    def looked_at():
        found = exchange.dispatch(x, ids, weights)
        exchange.combine(rows, found.plan)
        return found.x, found.scales, found.counts

    def operators():
        *_, plan = ops.dispatch(state, x, None, [ids, weights], number, None)
        ops.combine(state, rows, [plan, ids, weights, None], number, "reduced", True)

    def by_deep_ep():
        _, _, handle, _, _ = buffer.low_latency_dispatch(x, ids, 128, EXPERTS)
        buffer.low_latency_combine(rows, ids, weights, handle)

    return {"pair": plain, "pair, whose x, scales and counts are looked at": looked_at, "pair, operators": operators,
            "pair, deep_ep": by_deep_ep, "dispatch": lambda: exchange.dispatch(x, ids, weights)}


def normal_mode(tokens=4096):
    """{name: body}: what DeepEP's programs call for many tokens."""
    buffer = deep_ep.Buffer()
    deep_ep.Buffer.set_num_sms(24)
    x, scales = torch.zeros(tokens, HIDDEN, dtype=torch.float8_e4m3fn, device="cuda"), torch.ones(tokens, HIDDEN // 128, device="cuda")
    ids, weights = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices, torch.rand(tokens, TOPK, device="cuda")
    per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(ids, EXPERTS)
    given = {"num_tokens_per_rank": per_rank, "is_token_in_rank": in_rank, "num_tokens_per_expert": per_expert, "topk_idx": ids,
             "topk_weights": weights, "num_worst_tokens": buffer.group_size * tokens}

    def with_most():
        deep_ep.Buffer.max_tokens = tokens
        buffer.dispatch((x, scales), **given)

    return {"deep_ep: layout of 4,096 tokens": lambda: buffer.get_dispatch_layout(ids, EXPERTS),
            "deep_ep: dispatch of 4,096 tokens": lambda: buffer.dispatch((x, scales), **given),
            "deep_ep: dispatch of 4,096 tokens, max_tokens given": with_most}


def report(job, name, tokens, us):
    if job.pe == 0:
        print(json.dumps({"what": name, "us": round(us, 2), "tokens": tokens, "pes": job.pe_count, "python": "eager",
                          "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)


with weft.init() as job:
    torch.cuda.set_device(job.pe % torch.cuda.device_count())
    random = torch.Generator().manual_seed(job.pe)
    x = torch.randn(TOKENS, HIDDEN, generator=random).bfloat16().cuda()
    ids, weights = torch.rand(TOKENS, EXPERTS, generator=random).topk(TOPK).indices.cuda(), torch.rand(TOKENS, TOPK).cuda()
    for name, body in calls(x, ids, weights).items():
        report(job, name, TOKENS, microseconds(body))
    for name, body in normal_mode().items():
        report(job, name, 4096, microseconds(body, calls=1))
