"""The names of DeepEP and pplx_kernels with tensors on a GPU: the same rows and sums as with tensors of the CPU.

In one node the sums have the same bits. Between nodes a GPU rounds the part of each node (precision "reduced"), so they are close.
"""
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
SHARED = {"WEFT_DEVICE_SHARED": "yes", "WEFT_DEVICE_HEAP_SIZE": "64M", "WEFT_DEVICE_HEAP_MAX": "1G"}
NODES = pytest.mark.parametrize("nodes", [{}, {"WEFT_NODE_SIZE": "1", "WEFT_NICS": "127.0.0.1"}], ids=["one_node", "nodes_of_one"])
MODEL = """
    import weft.moe.deep_ep as deep_ep, weft.moe.pplx as pplx
    torch.cuda.set_device(int(os.environ.get('WEFT_PE', 0)) % torch.cuda.device_count())
    TOKENS, HIDDEN, EXPERTS, TOPK, MOST = 10, 256, 6, 3, 16

    def inputs(pe):
        random = torch.Generator().manual_seed(pe)
        ids = torch.stack([torch.randperm(EXPERTS, generator=random)[:TOPK] for _ in range(TOKENS - pe)])
        ids[0, 1] = -1
        return torch.randn(TOKENS - pe, HIDDEN, generator=random).bfloat16(), ids, torch.rand(TOKENS - pe, TOPK, generator=random)

    class Sums:
        def __init__(self, tensor):
            self.tensor = tensor

    def same(a, b):
        is_near = isinstance(a, Sums) and os.environ.get("WEFT_NODE_SIZE") == "1"
        a, b = (getattr(each, "tensor", each).cpu().contiguous() for each in (a, b))
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        if is_near:
            torch.testing.assert_close(b, a, rtol=0.02, atol=0.02 * a.abs().max().item())
        else:
            assert torch.equal(a.view(torch.uint8), b.view(torch.uint8))
"""


@NODES
def test_deep_ep_in_normal_mode(programs, nodes):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        buffer, given = deep_ep.Buffer(None), inputs(job.pe)
        found = []
        for device in ("cpu", "cuda"):
            x, ids, weights = (tensor.to(device) for tensor in given)
            per_rank, _, per_expert, in_rank, event = buffer.get_dispatch_layout(ids, EXPERTS)
            rows, got_ids, got_weights, counts, handle, event = buffer.dispatch(
                x, num_tokens_per_expert=per_expert, topk_idx=ids, topk_weights=weights, expert_alignment=4, previous_event=event)
            y, back, event = buffer.combine(rows, handle, topk_weights=got_weights, bias=x)
            again, *_ = buffer.dispatch(2 * x, handle=handle)
            event.current_stream_wait()
            worst = buffer.dispatch(x, num_tokens_per_expert=per_expert, topk_idx=ids, topk_weights=weights, num_worst_tokens=40)
            assert worst[3] == [] and (worst[1][len(rows):] == -1).all() and len(worst[0]) == len(worst[2]) == 40
            found.append((per_rank, per_expert, in_rank, rows, got_ids, got_weights, torch.tensor(counts), Sums(y), back, again,
                          worst[0][:len(rows)], worst[1], worst[2]))
        for a, b in zip(*found):
            same(a, b)
        buffer.destroy()
    """, **SHARED, **nodes)


@NODES
def test_deep_ep_with_low_latency(programs, nodes):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        buffer, given = deep_ep.Buffer(None, low_latency_mode=True), inputs(job.pe)
        for fp8, powers, packed, hooks in ((False, False, False, False), (True, False, False, True), (True, True, False, False),
                                           (True, True, True, True)):
            found = []
            for device in ("cpu", "cuda"):
                x, ids, weights = (tensor.to(device) for tensor in given)
                got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=fp8, round_scale=powers,
                                                                               use_ue8m0=packed, return_recv_hook=hooks)
                if hooks:
                    hook()
                torch.cuda.synchronize()  # the host's reads below do not wait for a kernel
                codes, scales = got if fp8 else (got, None)
                rows = [codes[e, :n] for e, n in enumerate(counts.tolist())]
                scales = [scales[e, :n] for e, n in enumerate(counts.tolist())] if fp8 else rows
                y = buffer.get_next_low_latency_combine_buffer(handle)
                for e in range(len(y)):
                    y[e] = (torch.arange(y.shape[1], device=device)[:, None] + e + 0.5).bfloat16()
                combined, event, hook = buffer.low_latency_combine(y, ids, weights, handle, zero_copy=packed, return_recv_hook=hooks)
                if hooks:
                    hook()
                found.append((counts, torch.cat(rows), torch.cat(scales), Sums(combined), *handle[:2]))
            for a, b in zip(*found):
                same(a, b)
        mask = torch.ones(2, dtype=torch.int32, device="cuda")
        buffer.low_latency_query_mask_buffer(mask)
        assert mask.tolist() == [0, 0]
        buffer.destroy()
    """, **SHARED, **nodes)


def test_deep_ep_with_a_rank_that_is_masked_and_comes_back(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        buffer, given = deep_ep.Buffer(None, low_latency_mode=True, enable_shrink=True), inputs(job.pe)
        x, ids, weights = (tensor.cuda() for tensor in given)
        def pair(alone):
            got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False)
            y = buffer.low_latency_combine(torch.nan_to_num(got), ids, weights, handle)[0]
            here = (ids >= 0) & ((ids // 3 == job.pe) if alone else ids >= 0)
            wanted = x.float() * torch.where(here, weights, 0).sum(1, keepdim=True)
            assert torch.allclose(y.float(), wanted, rtol=0.01, atol=0.05)
        pair(False)
        for calls in (1, 2, 3):
            if job.pe == 0:
                buffer.low_latency_update_mask_buffer(1, True)
                for _ in range(calls):
                    pair(True)
            buffer.low_latency_clean_mask_buffer()
            for _ in range(3):
                pair(False)
        buffer.destroy()
    """, **SHARED)


@pytest.mark.parametrize("dp_size", [1, 2])
@pytest.mark.parametrize("scale_bytes", [0, 16])
@NODES
def test_pplx(programs, dp_size, scale_bytes, nodes):
    programs.ok(2, MODEL + f"""
    DP, SCALE_BYTES = {dp_size}, {scale_bytes}
    with weft.init() as job:
        given, element, found = inputs(job.pe // DP), 1 if SCALE_BYTES else 2, []
        for device in ("cpu", "cuda"):
            x, ids, weights = (tensor.to(device) for tensor in given)
            x, scales = (x.to(torch.float8_e4m3fn), weights.repeat(1, 2)[:, :4].contiguous()) if SCALE_BYTES else (x, None)
            ata = pplx.AllToAll.intranode(max_num_tokens=MOST, num_experts=EXPERTS, experts_per_token=TOPK, rank=job.pe, world_size=2,
                                          dp_size=DP, hidden_dim=HIDDEN, hidden_dim_bytes=HIDDEN * element,
                                          hidden_dim_scale_bytes=SCALE_BYTES)
            for bound in (None, torch.tensor([3], device=device)):
                counts = torch.empty(3, dtype=torch.int32, device=device)
                rows = torch.zeros(3, MOST * 2 // DP, HIDDEN, device=device).to(x.dtype)
                row_scales = torch.zeros(3, MOST * 2 // DP, 4, device=device) if SCALE_BYTES else None
                ata.dispatch(counts, rows, row_scales, x, scales, ids, bound)
                torch.cuda.synchronize()
                for e, n in enumerate(counts.tolist()):
                    found.append(rows[e, :n])
                    found.append(row_scales[e, :n] if SCALE_BYTES else counts)
                sums = torch.zeros(len(x), HIDDEN, dtype=torch.bfloat16, device=device)
                y = (torch.arange(rows[..., :1].numel(), device=device).view(3, -1, 1) / 8).expand(-1, -1, HIDDEN).bfloat16()
                ata.combine(sums, ids, weights, y, bound)
                found.append(Sums(sums))
            ata.destroy()
        half = len(found) // 2
        for a, b in zip(found[:half], found[half:]):
            same(a, b)
    """, **SHARED, **nodes)
