"""The plugin of vLLM: when it gives deep_ep, and that Buffer takes the calls that vLLM's two backends make with it. vLLM itself is
not here; the calls are those of its all2all managers and of its prepare and finalize steps."""
import pathlib
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[3]

LOADED = """
    import importlib.util
    from importlib.metadata import EntryPoint
    plugin = EntryPoint(name="weft", group="vllm.general_plugins", value={value!r})
    register = plugin.load()
    register()
    register()
    found = importlib.util.find_spec("deep_ep") is not None
    say(found)
"""


def entry_point():
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]["vllm.general_plugins"]["weft"]


def test_nothing_is_shadowed_unless_the_plugin_is_named(programs):
    body = LOADED.format(value=entry_point())
    assert programs.ok(1, body).lines() == ["False"]
    assert programs.ok(1, body, VLLM_PLUGINS="other").lines() == ["False"]
    assert programs.ok(1, body, VLLM_PLUGINS="other, weft").lines() == ["True"]


CALLS = """
    import weft.moe.vllm
    weft.moe.vllm.register()
    import deep_ep
    torch.set_num_threads(1)
    TOKENS, HIDDEN, EXPERTS, TOPK = 6, 256, 4, 2
    def inputs(pe):
        random = torch.Generator().manual_seed(pe)
        return (torch.randn(TOKENS, HIDDEN, generator=random).bfloat16(),
                torch.stack([torch.randperm(EXPERTS, generator=random)[:TOPK] for _ in range(TOKENS)]),
                torch.rand(TOKENS, TOPK, generator=random))
"""


def test_the_calls_of_the_high_throughput_backend(programs):
    programs.ok(2, CALLS + """
    with weft.init() as job:
        x, ids, weights = inputs(job.pe)
        buffer = deep_ep.Buffer(group=None, num_nvl_bytes=1 << 30, num_rdma_bytes=0, low_latency_mode=False, num_qps_per_rank=1,
                                explicitly_destroy=True)
        deep_ep.Buffer.set_num_sms(20)
        config = deep_ep.Buffer.get_dispatch_config(2)
        event = deep_ep.Buffer.capture()
        per_rank, per_rdma, per_expert, in_rank, event = buffer.get_dispatch_layout(
            topk_idx=ids, num_experts=EXPERTS, previous_event=event, async_finish=False, allocate_on_comm_stream=False)
        rows, recv_ids, recv_weights, counts, handle, event = buffer.dispatch(
            x=x, handle=None, num_tokens_per_rank=per_rank, num_tokens_per_rdma_rank=per_rdma, is_token_in_rank=in_rank,
            num_tokens_per_expert=per_expert, topk_idx=ids, topk_weights=weights, expert_alignment=1, config=config,
            previous_event=event, async_finish=True, allocate_on_comm_stream=False)
        if event.event is not None:
            event.current_stream_wait()
        assert len(counts) == 2 and sum(counts) == (recv_ids >= 0).sum()
        # Each expert multiplies by its number and 1; the backend weights and adds up before
        # combine.
        factor = torch.where(recv_ids >= 0, (recv_ids + 2 * job.pe + 1) * recv_weights, 0).sum(1, keepdim=True)
        combined, _, event = buffer.combine(x=(rows.float() * factor).bfloat16(), handle=handle, topk_weights=None,
                                            config=deep_ep.Buffer.get_combine_config(2), previous_event=None, async_finish=True,
                                            allocate_on_comm_stream=False)
        wanted = x.float() * ((ids + 1) * weights).sum(1, keepdim=True)
        assert torch.allclose(combined.float(), wanted, rtol=0.03, atol=0.03)
        buffer.destroy()
    """, VLLM_PLUGINS="weft")


def test_the_calls_of_the_low_latency_backend(programs):
    programs.ok(2, CALLS + """
    with weft.init() as job:
        x, ids, weights = inputs(job.pe)
        size = deep_ep.Buffer.get_low_latency_rdma_size_hint(num_max_dispatch_tokens_per_rank=TOKENS, hidden=HIDDEN, num_ranks=2,
                                                             num_experts=EXPERTS)
        buffer = deep_ep.Buffer(group=None, num_nvl_bytes=1 << 30, num_rdma_bytes=size, low_latency_mode=True, num_qps_per_rank=2,
                                allow_nvlink_for_low_latency_mode=True, allow_mnnvl=False, explicitly_destroy=True,
                                enable_shrink=False)
        rows, counts, handle, _, hook = buffer.low_latency_dispatch(
            x, ids, TOKENS, EXPERTS, use_fp8=False, round_scale=False, use_ue8m0=False, async_finish=False, return_recv_hook=True)
        hook()
        assert rows.shape == (2, 2 * TOKENS, HIDDEN) and counts.shape == (2,) and counts.dtype == torch.int32
        out = rows * torch.tensor([1.0, 2.0])[:, None, None].bfloat16() + 0
        combined = torch.empty_like(x)
        _, _, hook = buffer.low_latency_combine(out, ids, weights, handle, async_finish=False, zero_copy=False,
                                                return_recv_hook=True, out=combined)
        hook()
        wanted = x.float() * ((ids % 2 + 1) * weights).sum(1, keepdim=True)
        assert torch.allclose(combined.float(), wanted, rtol=0.03, atol=0.03)
        buffer.destroy()
    """, VLLM_PLUGINS="weft")
