"""The plugin of SGLang: when it gives deep_ep and pplx_kernels, and that Buffer takes the calls that SGLang's two DeepEP
dispatchers make. SGLang itself is not here; the calls are those of its token dispatcher, each in two stages."""
import pathlib
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[3]

LOADED = """
    import importlib.util
    from importlib.metadata import EntryPoint
    register = EntryPoint(name="weft", group="sglang.srt.plugins", value={value!r}).load()
    register()
    register()
    say(*[importlib.util.find_spec(name) is not None for name in ("deep_ep", "pplx_kernels")])
"""


def entry_point():
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]["sglang.srt.plugins"]["weft"]


def test_nothing_is_shadowed_unless_the_plugin_is_named(programs):
    body = LOADED.format(value=entry_point())
    assert programs.ok(1, body).lines() == ["False False"]
    assert programs.ok(1, body, SGLANG_PLUGINS="other").lines() == ["False False"]
    assert programs.ok(1, body, SGLANG_PLUGINS="other, weft").lines() == ["True True"]


def test_dispatchers_that_were_loaded_before_are_an_error(programs):
    programs.ok(1, """
    import types
    sys.modules["sglang.srt.layers.moe.token_dispatcher"] = types.ModuleType("token_dispatcher")
    import weft.moe.sglang
    try:
        weft.moe.sglang.register()
        raise AssertionError("no error")
    except weft.Error as error:
        assert "is loaded already, and did not find deep_ep; load SGLang's plugins before it" in str(error), error
    """, SGLANG_PLUGINS="weft")


DISPATCHER = """
    import weft.moe.sglang
    weft.moe.sglang.register()
    from deep_ep import Buffer, Config
    torch.set_num_threads(1)
    TOKENS, HIDDEN, EXPERTS, TOPK = 6, 256, 4, 2

    def inputs(pe):
        random = torch.Generator().manual_seed(pe)
        return (torch.randn(TOKENS, HIDDEN, generator=random).bfloat16(),
                torch.stack([torch.randperm(EXPERTS, generator=random)[:TOPK] for _ in range(TOKENS)]).int(),
                torch.rand(TOKENS, TOPK, generator=random))

    def get_buffer(group_size, low_latency_mode):
        nvl = rdma = 0
        for config in (Config(num_sms=24), Buffer.get_combine_config(group_size)):
            nvl = max(config.get_nvl_buffer_size_hint(HIDDEN * 2, group_size), nvl)
            rdma = max(config.get_rdma_buffer_size_hint(HIDDEN * 2, group_size), rdma)
        rdma = max(Buffer.get_low_latency_rdma_size_hint(TOKENS, HIDDEN, group_size, EXPERTS), rdma)
        return Buffer(None, nvl, rdma, low_latency_mode=low_latency_mode, num_qps_per_rank=max(Buffer.num_sms, 2),
                      allow_mnnvl=True)
"""


def test_the_calls_of_the_normal_dispatcher(programs):
    programs.ok(2, DISPATCHER + """
    with weft.init() as job:
        buffer = get_buffer(2, False)
        assert not buffer.low_latency_mode and buffer.group_size == 2
        x, ids, weights = inputs(job.pe)
        for async_finish in (False, True):
            # dispatch_a
            topk_ids = ids.to(torch.int64)
            previous_event = Buffer.capture() if async_finish else None
            # dispatch_b
            per_rank, per_rdma, per_expert, in_rank, previous_event = buffer.get_dispatch_layout(
                topk_ids, EXPERTS, previous_event=previous_event, async_finish=async_finish,
                allocate_on_comm_stream=previous_event is not None)
            rows, recv_ids, recv_weights, counts, handle, event = buffer.dispatch(
                x, topk_idx=topk_ids, topk_weights=weights, num_tokens_per_rank=per_rank, num_tokens_per_rdma_rank=per_rdma,
                is_token_in_rank=in_rank, num_tokens_per_expert=per_expert, previous_event=previous_event,
                async_finish=async_finish, allocate_on_comm_stream=(previous_event is not None) and async_finish,
                expert_alignment=128, config=None)
            event.current_stream_wait() if async_finish else ()
            assert [count % 128 for count in counts] == [0, 0] and isinstance(counts, list)
            factor = torch.where(recv_ids >= 0, (recv_ids + 2 * job.pe + 1) * recv_weights, 0).sum(1, keepdim=True)
            # combine_a, combine_b
            previous_event = Buffer.capture() if async_finish else None
            combined, _, event = buffer.combine((rows.float() * factor).bfloat16(), handle, async_finish=async_finish,
                                                previous_event=previous_event,
                                                allocate_on_comm_stream=previous_event is not None, config=None)
            event.current_stream_wait() if async_finish else ()
            wanted = x.float() * ((ids + 1) * weights).sum(1, keepdim=True)
            assert torch.allclose(combined.float(), wanted, rtol=0.03, atol=0.03)
    """, SGLANG_PLUGINS="weft")


def test_the_calls_of_the_low_latency_dispatcher(programs):
    programs.ok(2, DISPATCHER + """
    with weft.init() as job:
        buffer = get_buffer(2, True)
        x, ids, weights = inputs(job.pe)
        buffer.clean_low_latency_buffer(TOKENS, HIDDEN, EXPERTS)  # after a normal dispatch
        for hooks, scale_options in ((True, dict(round_scale=False, use_ue8m0=False)), (False, dict(round_scale=True, use_ue8m0=True)),
                                     (True, None)):
            # dispatch_a
            topk_ids, use_fp8 = ids.to(torch.int64), scale_options is not None
            assert (len(x) * buffer.group_size * topk_ids.shape[1] + EXPERTS) // EXPERTS == 7  # expected_m
            hidden, masked_m, handle, event, hook = buffer.low_latency_dispatch(
                x, topk_ids, TOKENS, EXPERTS, use_fp8=use_fp8, async_finish=not hooks, return_recv_hook=hooks,
                **(scale_options or {}))
            # dispatch_b
            hook() if hooks else event.current_stream_wait()
            scale = None
            if isinstance(hidden, tuple):
                hidden, scale = hidden
            assert hidden.shape == (2, 2 * TOKENS, HIDDEN) and masked_m.dtype == torch.int32 and masked_m.shape == (2,)
            if use_fp8:
                assert hidden.dtype == torch.float8_e4m3fn
                assert scale.dtype == (torch.int32 if scale_options["use_ue8m0"] else torch.float32)
            # the experts: each gives its number and 1, times the token's first value
            everyone = [inputs(pe) for pe in range(2)]
            out = torch.zeros(2, 2 * TOKENS, HIDDEN, dtype=torch.bfloat16)
            for expert in range(2):
                rows = torch.cat([ex[(ei == 2 * job.pe + expert).any(1)] for ex, ei, _ in everyone])
                assert masked_m[expert] == len(rows)
                out[expert, :len(rows)] = (2 * job.pe + expert + 1) * rows[:, :1]
            # combine_a, combine_b
            combined, event, hook = buffer.low_latency_combine(
                x=out, topk_idx=topk_ids, topk_weights=weights, handle=handle, async_finish=not hooks, return_recv_hook=hooks)
            hook() if hooks else event.current_stream_wait()
            wanted = x[:, :1].float() * ((ids + 1) * weights).sum(1, keepdim=True)
            assert torch.allclose(combined.float(), wanted.expand(-1, HIDDEN), rtol=0.03, atol=0.03)
    """, SGLANG_PLUGINS="weft")
