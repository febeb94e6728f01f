"""weft.moe in graphs of torch.compile: the same results and gradients as without, and no break of the graph."""
import pytest
from test_moe_torch import MODEL


@pytest.mark.parametrize("exactly", [True, False], ids=["rows_come_back", "sums_come_back"])
@pytest.mark.parametrize("layout", ["expert_padded", "expert_compact"])
def test_a_compiled_layer_has_the_gradients_of_the_plain_one(programs, layout, exactly):
    programs.ok(2, MODEL + f"""
    moe.Exchange.combines_exactly, LAYOUT = {exactly}, "{layout}"
    """ + """
    def on_compiled_rows(matrices):
        def run(rows, counts, offsets):
            if rows.dim() == 3:
                return torch.tanh(torch.bmm(torch.nan_to_num(rows), matrices))
            which = torch.bucketize(torch.arange(rows.shape[0]), offsets[1:], right=True).clamp(max=len(matrices) - 1)
            return torch.tanh(torch.einsum("rh,rho->ro", rows, matrices[which]))
        return run

    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=TOKENS + 2, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float64", layout=LAYOUT)
        dispatcher = moe.Dispatcher(exchange)
        mine = experts(torch.float64)[exchange.first_expert:exchange.first_expert + exchange.local_experts]

        def layer(x, ids, weights, matrices):
            y = dispatcher(x * 2, ids, weights, on_compiled_rows(matrices))
            return dispatcher(torch.sin(y), ids, weights, on_compiled_rows(matrices))

        def run(function):
            x, ids, weights = inputs(job.pe, torch.float64)
            x.requires_grad_(), weights.requires_grad_()
            matrices = mine.clone().requires_grad_()
            y = function(x, ids, weights, matrices)
            (y ** 2).sum().backward()
            return y, x.grad, weights.grad, matrices.grad

        plain = run(layer)
        compiled = torch.compile(layer, fullgraph=True)
        for _ in range(3):
            for one, other in zip(plain, run(compiled)):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    """)


def test_a_graph_keeps_the_order_of_calls_that_do_not_need_each_other(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=16, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float32")

        @torch.compile(fullgraph=True)
        def step(first, second, ids, weights, bound):
            one = exchange.dispatch(first, ids, weights)
            two = exchange.dispatch(second, plan=one.plan)
            exchange.dispatch(first + second, ids)                    # whose result nobody needs
            big = exchange.combine(two.x * 3, two.plan)
            small = exchange.combine(one.x, one.plan, weights, precision="exact")
            lanes = exchange.combine(one.x, one.plan, precision="lanes")
            few = exchange.dispatch(first, ids, weights, bound=bound)
            bounded_sums = exchange.combine(few.x, few.plan)
            return big, small, lanes, one.counts, one.offsets, one.weights, bounded_sums

        for tokens in (4, 4, 7):  # the last compiles anew, on both PEs
            random = torch.Generator().manual_seed(10 * tokens + job.pe)
            first, second = torch.randn(2, tokens, HIDDEN, generator=random)
            ids = torch.rand(tokens, EXPERTS, generator=random).topk(TOPK).indices
            weights = torch.rand(tokens, TOPK, generator=random)
            big, small, lanes, counts, offsets, row_weights, bounded_sums = step(first, second, ids, weights, torch.tensor([2]))
            sums = weights.sum(1, keepdim=True)
            torch.testing.assert_close(big, 3 * second * sums)
            torch.testing.assert_close(small, first * sums)
            assert torch.equal(lanes, first[:, None].expand(-1, TOPK, -1))
            assert not bounded_sums[2:].any() and torch.allclose(bounded_sums[:2], first[:2] * sums[:2])
            plain = exchange.dispatch(first, ids, weights)
            assert torch.equal(counts, plain.counts) and torch.equal(offsets, plain.offsets)
            for expert, count in enumerate(counts.tolist()):
                assert torch.equal(row_weights[expert, :count], plain.weights[expert, :count])
            exchange.combine(plain.x.clone(), plain.plan)
            del plain
    """)


@pytest.mark.parametrize("layout", ["expert_padded", "expert_compact", "rank_major", "rank_compact"])
def test_each_part_of_a_result_in_a_graph_is_that_of_a_plain_call(programs, layout):
    programs.ok(2, MODEL + f"""
    LAYOUT = "{layout}"
    """ + """
    kinds = [("bfloat16", None), ("float8_e4m3fn", "float32"), ("float8_e4m3fn", "ue8m0"), ("nvfp4", None), ("float8_e5m2", None)]
    with weft.init() as job:
        for payload, scales in kinds:
            exchange = moe.Exchange(max_tokens=8, hidden=256, experts=EXPERTS, topk=TOPK, layout=LAYOUT, scales=scales,
                                    payload=payload if payload == "nvfp4" else getattr(torch, payload))

            @torch.compile(fullgraph=True)
            def rows_of(x, ids, weights):
                found = exchange.dispatch(x, ids, weights)
                none = (found.scales is None, found.row_scales is None, found.ids is None, found.outputs is None)
                return (found.x, found.weights, found.counts, found.offsets, found.scales, found.row_scales, found.ids), none, found.plan

            random = torch.Generator().manual_seed(job.pe)
            x = torch.randn(6, 256, generator=random, dtype=torch.bfloat16)
            ids, weights = torch.rand(6, EXPERTS, generator=random).topk(TOPK).indices, torch.rand(6, TOPK, generator=random)
            parts, none, plan = rows_of(x, ids, weights)
            plain = exchange.dispatch(x, ids, weights)
            assert none == (plain.scales is None, plain.row_scales is None, plain.ids is None, True)
            valid = torch.zeros(plain.x.shape[:-1], dtype=torch.bool)
            for part, count in enumerate(plain.counts.tolist()):
                if LAYOUT in ("expert_padded", "rank_major"):
                    valid[part, :count] = True
                else:
                    valid[int(plain.offsets[part]):int(plain.offsets[part]) + count] = True
            wanted = plain.x, plain.weights, plain.counts, plain.offsets, plain.scales, plain.row_scales, plain.ids
            for name, one, other in zip(("x", "weights", "counts", "offsets", "scales", "row_scales", "ids"), parts, wanted):
                assert (one is None) == (other is None), name
                if one is not None:
                    if LAYOUT.endswith("compact") and name not in ("counts", "offsets"):  # room for all that could come
                        assert one.shape[0] == 2 * 8 * (min(TOPK, exchange.local_experts) if LAYOUT[0] == "e" else 1)
                        assert (one[len(other):].float() == (-1 if name == "ids" else 0)).all()
                        one = one[:len(other)]
                    assert one.shape == other.shape and one.dtype == other.dtype, (name, one.shape, other.shape)
                    at = valid if name not in ("counts", "offsets") else slice(None)
                    assert torch.equal(one.view(torch.uint8)[at] if one.itemsize == 1 else one[at],
                                       other.view(torch.uint8)[at] if other.itemsize == 1 else other[at]), name
            # the plan of a graph serves outside of it
            y = exchange.combine(torch.ones(*valid.shape, 256, dtype=torch.bfloat16), plan, weighted=False)
            owners = (ids >= (EXPERTS + 1) // 2).long()  # of the first PE are the first three of five
            rows = TOPK if LAYOUT.startswith("expert") else owners.amin(1) != owners.amax(1)
            assert torch.equal(y.float(), (rows + (0 if LAYOUT.startswith("expert") else 1) + torch.zeros(6))[:, None].expand(6, 256))
            del plain, wanted, one, other
            exchange.close()
    """)


def test_what_a_graph_cannot_do_is_named(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=4, hidden=8, experts=4, topk=2, payload="float32")
        x, ids, weights = torch.zeros(4, 8), torch.zeros(4, 2, dtype=torch.int64), torch.ones(4, 2)
        outside = exchange.dispatch(x, ids, weights).plan
        for call, text in ((lambda x: exchange.dispatch(x, ids, weights, phase="send"), "in a compiled graph a call has the phase 'both'"),
                           (lambda x: exchange.dispatch(x), "topk_ids is missing"),
                           (lambda x: exchange.combine(x, outside), "needs the plan of a dispatch in a compiled graph"),
                           (lambda x: exchange.dispatch(x[:, :3], ids, weights).x, "[tokens, 8] of float32 is needed")):
            try:
                torch.compile(call, fullgraph=True)(x)
                raise AssertionError(text)
            except Exception as error:
                assert text in str(error), (text, str(error))

        state, number = exchange._graph.state, exchange._graph.number
        *_, plan = torch.ops.weft_moe.dispatch(state, x, None, [ids, weights], number, None)
        copied = plan.clone()
        del plan, _
        try:
            torch.ops.weft_moe.combine(state, torch.zeros(4, 4, 8), [copied, ids, weights, None], number, "reduced", True)
            raise AssertionError
        except weft.Error as error:
            assert "or a copy of its tensor" in str(error), error
        exchange.close()
        del exchange, call
        try:
            torch.ops.weft_moe.dispatch(state, x, None, [ids, weights], number, None)
            raise AssertionError
        except weft.Error as error:
            assert "is gone" in str(error) or "closed" in str(error), error
    """)
