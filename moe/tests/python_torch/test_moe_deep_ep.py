"""The names of DeepEP over weft.moe: shapes, types, meanings, against a model in one piece."""
import pytest

MODEL = """
    import weft.moe.deep_ep
    weft.moe.deep_ep.install()
    import deep_ep
    torch.set_num_threads(1)
    TOKENS, HIDDEN, EXPERTS, TOPK, MOST = 10, 256, 6, 3, 16

    def inputs(pe):
        random = torch.Generator().manual_seed(pe)
        x = torch.randn(TOKENS - pe, HIDDEN, generator=random).bfloat16()
        ids = torch.stack([torch.randperm(EXPERTS, generator=random)[:TOPK] for _ in range(TOKENS - pe)])
        ids[0, 1] = -1
        return x, ids, torch.rand(TOKENS - pe, TOPK, generator=random)
"""


@pytest.mark.parametrize("most", [None, 12])
def test_normal_dispatch_and_combine(programs, most):
    programs.ok(3, MODEL + f"""
    deep_ep.install(max_tokens={most})
""" + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, 1 << 20, 0)
        x, ids, weights = inputs(job.pe)
        per_rank, per_rdma, per_expert, in_rank, event = buffer.get_dispatch_layout(ids, EXPERTS)
        everyone = [inputs(pe) for pe in range(job.pe_count)]
        assert per_rank.dtype == per_expert.dtype == torch.int32 and per_rdma is None
        assert per_expert.tolist() == [(ids == e).sum() for e in range(EXPERTS)]
        assert (in_rank == torch.stack([((ids >= 2 * r) & (ids < 2 * r + 2)).any(1) for r in range(3)], 1)).all()
        for again in range(3):
            rows, recv_ids, recv_weights, counts, handle, event = buffer.dispatch(
                x, num_tokens_per_rank=per_rank, is_token_in_rank=in_rank, num_tokens_per_expert=per_expert, topk_idx=ids,
                topk_weights=weights, expert_alignment=4, config=deep_ep.Buffer.get_dispatch_config(3), async_finish=True)
            event.current_stream_wait()
            first = 2 * job.pe
            wanted = [(ex[t], torch.where((ei[t] >= first) & (ei[t] < first + 2), ei[t] - first, -1), ew[t])
                      for ex, ei, ew in everyone for t in range(len(ex)) if ((ei[t] >= first) & (ei[t] < first + 2)).any()]
            assert (rows == torch.stack([w[0] for w in wanted])).all() and (recv_ids == torch.stack([w[1] for w in wanted])).all()
            assert (recv_weights == torch.stack([torch.where(w[1] >= 0, w[2], 0) for w in wanted])).all()
            assert counts == [-(-sum(int((w[1] == e).any()) for w in wanted) // 4) * 4 for e in range(2)]
            y, back, event = buffer.combine(rows, handle, topk_weights=recv_weights)
            ranks = in_rank.sum(1, keepdim=True)
            assert torch.allclose(y.float(), x.float() * ranks, rtol=0.02) and torch.allclose(back, torch.where(ids >= 0, weights, 0))
            rows2, *nothing, event = buffer.dispatch(x * 2, handle=handle)
            assert (rows2 == 2 * rows).all() and nothing == [None] * 4
            again, _, _ = buffer.combine(rows2, handle)
            assert (again == 2 * y).all()
            biased, _, _ = buffer.combine(rows, handle, bias=torch.ones_like(y))
            assert torch.allclose(biased.float(), y.float() + 1, rtol=0.02, atol=0.02)
        codes, scales = torch.randn(len(x), HIDDEN).to(torch.float8_e4m3fn), torch.rand(len(x), 2)
        (got, got_scales), *_ = buffer.dispatch((codes, scales), topk_idx=ids, num_tokens_per_expert=per_expert)
        assert got.dtype == torch.float8_e4m3fn and got_scales.shape == (len(got), 2)
        packed = torch.randint(1, 255, (len(x), 4), dtype=torch.uint8).view(torch.int32)
        (again, got_packed), *_ = buffer.dispatch((codes, packed), topk_idx=ids, num_tokens_per_expert=per_expert)
        assert got_packed.dtype == torch.int32 and got_packed.shape == (len(got), 1)
        assert (again.view(torch.uint8) == got.view(torch.uint8)).all()
        own = in_rank[:, job.pe].nonzero()[:, 0]
        before = sum(int(((ei >= first) & (ei < first + 2)).any(1).sum()) for _, ei, _ in everyone[:job.pe])
        assert (got_packed.view(torch.uint8)[before:before + len(own), :2] == packed.view(torch.uint8)[own, :2]).all()
        if deep_ep.Buffer.max_tokens:
            times = 2 if job.pe == 0 else 1
            try:  # one rank has more
                buffer.dispatch(x.repeat(times, 1), topk_idx=ids.repeat(times, 1), num_tokens_per_expert=per_expert)
            except weft.Error as error:
                assert "x has 20 tokens, and the exchange was made for 12" in str(error), error
            else:
                assert False
        buffer.destroy()
    """)


@pytest.mark.parametrize("exact, can_be, hidden", [(False, True, 256), (True, True, 512), (True, False, 256), (False, True, 512)])
def test_low_latency_dispatch_and_combine(programs, exact, can_be, hidden):
    """It cannot be exact between nodes on GPUs. Scales of 512 values are laid out by the exchange, whether packed or not."""
    programs.ok(3, MODEL + f"""
    weft.moe.Exchange.combines_exactly, HIDDEN = {can_be}, {hidden}
    deep_ep.install(exact={exact})
    BLOCKS = HIDDEN // 128
""" + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, num_rdma_bytes=deep_ep.Buffer.get_low_latency_rdma_size_hint(MOST, HIDDEN, 3, EXPERTS), low_latency_mode=True, num_qps_per_rank=2)
        x, ids, weights = inputs(job.pe)
        stats, expected = torch.zeros(2, dtype=torch.int32), 0
        for fp8, powers, packed, hooks in ((False, False, False, False), (True, False, False, True), (True, True, False, False),
                                           (True, True, True, True), (False, False, False, True)):
            got, counts, handle, event, hook = buffer.low_latency_dispatch(
                x, ids, MOST, EXPERTS, cumulative_local_expert_recv_stats=stats, use_fp8=fp8, round_scale=powers,
                use_ue8m0=packed, return_recv_hook=hooks)
            assert (hook is None) == (not hooks)
            if hooks:
                hook()
            wide = got
            if fp8:
                codes, scales = got
                assert codes.dtype == torch.float8_e4m3fn and scales.shape == (2, 3 * MOST, 1 if packed else BLOCKS)
                assert scales.stride(1) == 1
                if packed:
                    scales = torch.exp2(scales.reshape(-1).clone().view(torch.uint8).reshape(2, 3 * MOST, 4)[..., :BLOCKS].float() - 127)
                wide = (codes.float().reshape(2, 3 * MOST, BLOCKS, 128) * scales[..., None]).reshape(2, 3 * MOST, HIDDEN).bfloat16()
            assert wide.shape == (2, 3 * MOST, HIDDEN)
            everyone = [inputs(pe) for pe in range(3)]
            for expert in range(2):
                rows = torch.cat([ex[(ei == 2 * job.pe + expert).any(1)] for ex, ei, _ in everyone])
                assert counts[expert] == len(rows)
                assert torch.allclose(wide[expert, :len(rows)].float(), rows.float(), rtol=0.08 if fp8 else 0, atol=0.02 if fp8 else 0)
            expected = expected + counts
            assert (stats == expected).all()
            y, event, hook = buffer.low_latency_combine(torch.nan_to_num(wide), ids, weights, handle, return_recv_hook=hooks)
            if hooks:
                hook()
            wanted = x.float() * torch.where(ids >= 0, weights, 0).sum(1, keepdim=True)
            assert y.dtype == torch.bfloat16 and torch.allclose(y.float(), wanted, rtol=0.1 if fp8 else 0.01, atol=0.05)
        mask = torch.ones(3, dtype=torch.int32)
        buffer.low_latency_query_mask_buffer(mask)
        assert mask.tolist() == [0, 0, 0]
        assert buffer.get_next_low_latency_combine_buffer(handle).shape == (2, 3 * MOST, HIDDEN)
    """)


def test_a_low_latency_handle_says_where_rows_came_from(programs):
    programs.ok(3, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        x, ids, weights = inputs(job.pe)
        everyone = [inputs(pe) for pe in range(3)]
        got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False, return_recv_hook=True)
        assert isinstance(handle, tuple) and len(handle) == 5
        try:
            handle[0]
            raise AssertionError("no error")
        except weft.InvalidArgument as error:
            assert "call the hook of low_latency_dispatch first" in str(error)
        hook()
        src_info, layout_range, most, hidden, experts = handle
        assert (most, hidden, experts) == (MOST, HIDDEN, EXPERTS) == handle[2:]
        assert handle[0] is src_info and src_info.dtype == torch.int32 and src_info.shape == (2, 3 * MOST)
        assert layout_range.dtype == torch.int64 and layout_range.shape == (2, 3)
        for expert in range(2):
            position = 0
            for rank in range(3):
                begin, count = divmod(layout_range[expert, rank].item(), 1 << 32)
                wanted = (everyone[rank][1] == 2 * job.pe + expert).any(1).nonzero()[:, 0]
                assert (begin, count) == (position, len(wanted))
                assert (src_info[expert, begin:begin + count] == wanted).all()
                assert (got[expert, begin:begin + count] == everyone[rank][0][wanted]).all()
                position += count
            assert position == counts[expert] and (src_info[expert, position:] == -1).all()
    """)


def test_zero_copy_combines_what_is_in_the_combine_buffer(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        x, ids, weights = inputs(job.pe)
        got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False)
        elsewhere = torch.full_like(got, 77)
        try:
            buffer.low_latency_combine(elsewhere, ids, weights, handle, zero_copy=True)
            raise AssertionError("no error")
        except weft.InvalidArgument as error:
            assert "which was not asked for; fill it first" in str(error)
        buffer.get_next_low_latency_combine_buffer(handle)[:] = torch.nan_to_num(got)
        y, event, hook = buffer.low_latency_combine(elsewhere, ids, weights, handle, zero_copy=True)
        wanted = x.float() * torch.where(ids >= 0, weights, 0).sum(1, keepdim=True)
        assert torch.allclose(y.float(), wanted, rtol=0.01, atol=0.05)
    """)


def test_arguments_of_forks_are_refused_once_they_ask_for_something(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        x, ids, weights = inputs(0)
        got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False, use_nvfp4=False)
        for call, name in ((lambda: buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_nvfp4=True), "use_nvfp4"),
                           (lambda: buffer.low_latency_combine(got, ids, weights, handle, overlap=True, packed_recv_count=counts),
                            "overlap")):
            try:
                call()
                raise AssertionError("no error")
            except weft.InvalidArgument as error:
                assert f"{name} is not there, which only forks of DeepEP have" in str(error), error
    """)


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_rank_that_was_masked_comes_back_with_right_sums(programs, node_size):
    """Rank 1 is masked by the others, which go on; it makes no calls meanwhile. Then all unmask it."""
    programs.ok(3, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True, enable_shrink=True)
        x, ids, weights = inputs(job.pe)
        def pair(use_fp8=False):
            got, counts, handle, event, hook = buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=use_fp8)
            return counts, buffer.low_latency_combine(torch.nan_to_num(got), ids, weights, handle)[0]
        def check(gone):
            mask = torch.full((3,), 7, dtype=torch.int32)
            buffer.low_latency_query_mask_buffer(mask)
            assert mask.tolist() == [int(rank == gone) for rank in range(3)], mask
            counts, y = pair()
            of_gone = (ids // 2 == gone) if gone is not None else ids < -1
            wanted = x.float() * torch.where((ids >= 0) & ~of_gone, weights, 0).sum(1, keepdim=True)
            assert torch.allclose(y.float(), wanted, rtol=0.01, atol=0.05)
            sources = [inputs(pe)[1] for pe in range(3) if pe != gone]
            assert counts.tolist() == [sum(int((i == 2 * job.pe + e).any(1).sum()) for i in sources) for e in range(2)]
        check(None)
        for calls in (1, 2, 5):
            if job.pe != 1:
                buffer.low_latency_update_mask_buffer(1, True)
                for _ in range(calls):
                    check(1)
            if calls == 2:
                buffer.low_latency_update_mask_buffer(1, False)
            else:
                buffer.low_latency_clean_mask_buffer()
            for _ in range(4):
                check(None)
    """, WEFT_NODE_SIZE=node_size)


def test_masking_is_refused_without_enable_shrink(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        x, ids, weights = inputs(job.pe)
        buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False)
        try:
            buffer.low_latency_update_mask_buffer(1 - job.pe, True)
            raise AssertionError("no error")
        except weft.InvalidArgument as error:
            assert "was made to end when a rank is missing" in str(error)
    """)


def test_nothing_is_shadowed_without_install(programs):
    programs.ok(1, """
    import weft.moe.deep_ep
    try:
        import deep_ep
        raise AssertionError("deep_ep was found")
    except ModuleNotFoundError:
        pass
    """)


def test_what_the_second_interface_has_is_refused_with_what_to_use(programs):
    programs.ok(1, MODEL + """
    for name in ("ElasticBuffer", "EPHandle"):
        assert not hasattr(deep_ep, name)
        for line in (f"from deep_ep import {name}", f"import deep_ep; deep_ep.{name}"):
            try:
                exec(line)
            except (ImportError, AttributeError) as error:
                assert isinstance(error, ImportError) == line.startswith("from")
                assert f"deep_ep.{name}" in str(error) and "use Buffer, or weft.moe.Exchange" in str(error), str(error)
            else:
                raise AssertionError(line)
    assert not hasattr(deep_ep, "Nonsense")
    assert deep_ep.Buffer.is_sm90_compiled() is True
    try:
        stream = deep_ep.Buffer.get_comm_stream()
        assert stream == torch.cuda.current_stream()
    except weft.NoCuda as error:
        assert not torch.cuda.is_available() and "get_comm_stream: torch sees no GPU" in str(error)
    """)


def test_two_batches_are_under_way_at_once(programs):
    """With hooks, as DeepEP's two buffers allow: the second dispatch is sent before the first one's rows are here."""
    programs.ok(3, MODEL + """
    with weft.init(heap_size="64M") as job:
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        x, ids, weights = inputs(job.pe)
        wanted = x.float() * torch.where(ids >= 0, weights, 0).sum(1, keepdim=True)
        def send(scale):
            got, counts, handle, _, hook = buffer.low_latency_dispatch(x * scale, ids, MOST, EXPERTS, use_fp8=False, return_recv_hook=True)
            return scale, got, handle, hook
        def answer(batch):
            scale, got, handle, _ = batch
            y, _, hook = buffer.low_latency_combine(torch.nan_to_num(got), ids, weights, handle, return_recv_hook=True)
            return scale, y, hook
        def end(answered):
            scale, y, hook = answered
            hook()
            assert torch.allclose(y.float(), scale * wanted, rtol=0.02, atol=0.1 * scale)
        for _ in range(3):
            first, second = send(1), send(2)
            try:
                send(4)
            except weft.InvalidArgument as error:
                assert "two calls were sent whose hooks were not called" in str(error) and "recv" not in str(error), str(error)
            else:
                raise AssertionError("a third one")
            first[3](), second[3]()
            one = answer(first)
            two = answer(second)
            end(one), end(two)
        for _ in range(3):  # the second is sent between the hook and the combine of the first
            first = send(1)
            first[3]()
            second = send(2)
            one = answer(first)
            second[3]()
            end(one)
            end(answer(second))
        assert len(buffer._exchanges) == 2
        late = send(1)
        late[3]()
        end(answer(late))
        buffer.destroy()
    """)


def test_its_timeout_is_that_of_install(programs):
    programs.ok(2, MODEL + """
    deep_ep.install(timeout=1.5)
    EXPERTS = 4
    with weft.init() as job:
        x, ids, weights = inputs(job.pe)
        ids %= EXPERTS
        buffer = deep_ep.Buffer(None, low_latency_mode=True)
        if job.pe == 1:  # makes the exchange, and does not come
            buffer._exchange(max_tokens=MOST, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="bfloat16", scales=None,
                             layout="expert_padded", device="cpu", scales_by_column=False)
        else:
            try:
                buffer.low_latency_dispatch(x, ids, MOST, EXPERTS, use_fp8=False)
            except weft.Timeout as error:
                assert "nothing came from PE 1 of 2 within 1.5 s" in str(error), str(error)
            else:
                raise AssertionError("PE 1 came")
        weft.barrier_all()
    """)


def test_arguments_of_a_buffer_are_deepeps_in_its_order_and_none_is_dropped(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        buffer = deep_ep.Buffer(None, 1 << 20, 1 << 20, True, 24, True, False)  # the fifth: queue pairs
        assert buffer._limits["on_timeout"] == "error"
        assert deep_ep.Buffer(enable_shrink=True)._limits["on_timeout"] == "mask"
        deep_ep.Buffer(None, num_qps_per_rank=8, use_default_stream_as_comm_stream=False)
        try:
            deep_ep.Buffer(None, timeuot=5)
        except weft.InvalidArgument as error:
            assert "timeuot" in str(error)
        else:
            raise AssertionError("no error")
    """)
