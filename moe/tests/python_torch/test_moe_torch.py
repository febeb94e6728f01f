"""weft.moe with tensors: the same results as with numpy, bfloat16 and fp8 types, gradients against a dense model."""
import pytest

MODEL = """
    import weft.moe as moe
    torch.set_num_threads(1)
    TOKENS, HIDDEN, EXPERTS, TOPK = 6, 8, 5, 3

    def inputs(pe, dtype):
        random = torch.Generator().manual_seed(pe)
        x = torch.randn(TOKENS + pe, HIDDEN, generator=random, dtype=torch.float64).to(dtype)
        ids = torch.randint(-1, EXPERTS, (TOKENS + pe, TOPK), generator=random)
        weights = torch.rand(TOKENS + pe, TOPK, generator=random)
        return x, ids, weights.to(torch.float64 if dtype == torch.float64 else torch.float32)

    def experts(dtype):
        return torch.randn(EXPERTS, HIDDEN, HIDDEN, generator=torch.Generator().manual_seed(99), dtype=torch.float64).to(dtype)

    def dense(x, ids, weights, matrices):
        y = torch.zeros_like(x)
        for k in range(TOPK):
            chosen = torch.tanh(torch.einsum("th,tho->to", x, matrices[ids[:, k].clamp(min=0)]))
            y = y + torch.where(ids[:, k] >= 0, weights[:, k], 0)[:, None] * chosen
        return y

    def on_rows(matrices):
        def run(rows, counts, offsets):
            if rows.dim() == 3:
                return torch.tanh(torch.bmm(torch.nan_to_num(rows), matrices))
            return torch.cat([torch.tanh(rows[offsets[e]:offsets[e + 1]] @ matrices[e]) for e in range(len(counts))])
        return run
"""


@pytest.mark.parametrize("exactly", [True, False], ids=["rows_come_back", "sums_come_back"])
@pytest.mark.parametrize("layout", ["expert_compact", "expert_padded"])
def test_gradients_equal_those_of_the_dense_model(programs, layout, exactly):
    programs.ok(3, MODEL + f"""
    moe.Exchange.combines_exactly, LAYOUT = {exactly}, "{layout}"
    """ + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=TOKENS + 2, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float64",
                                layout=LAYOUT, alignment=4 if LAYOUT == "expert_compact" else 1)
        first, count = exchange.first_expert, exchange.local_experts
        layer = moe.Dispatcher(exchange)
        for _ in range(3):  # two layers deep: plans outlive the memory of their dispatches
            x, ids, weights = inputs(job.pe, torch.float64)
            x.requires_grad_(), weights.requires_grad_()
            mine = experts(torch.float64)[first:first + count].requires_grad_()
            y = layer(layer(x, ids, weights, on_rows(mine)), ids, weights, on_rows(mine))
            (y ** 2).sum().backward()
            everything = experts(torch.float64).requires_grad_()
            total = 0
            for pe in range(job.pe_count):
                x2, ids2, weights2 = inputs(pe, torch.float64)
                x2.requires_grad_(), weights2.requires_grad_()
                y2 = dense(dense(x2, ids2, weights2, everything), ids2, weights2, everything)
                total = total + (y2 ** 2).sum()
                if pe == job.pe:
                    own = x2, weights2, y2
            total.backward()
            assert torch.allclose(y, own[2], atol=1e-6)
            assert torch.allclose(x.grad, own[0].grad, atol=1e-5)
            assert torch.allclose(weights.grad, own[1].grad, atol=1e-5)
            assert torch.allclose(mine.grad, everything.grad[first:first + count], atol=1e-5)
    """)


def test_gradients_of_weights_come_back_exactly_in_rows_of_each_type(programs):
    programs.ok(2, MODEL + """
    moe.Exchange.combines_exactly = False
    with weft.init() as job:
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            exchange = moe.Exchange(max_tokens=TOKENS + 1, hidden=16, experts=EXPERTS, topk=TOPK, payload=dtype, layout="expert_compact")
            _, ids, weights = inputs(job.pe, dtype)
            random = torch.Generator().manual_seed(job.pe)
            x = torch.randn(len(ids), 16, generator=random).to(dtype).requires_grad_()
            weights.requires_grad_()
            y = moe.Dispatcher(exchange)(x, ids, weights, lambda rows, counts, offsets: rows * 1e-3)
            y.sum().backward()
            wanted = (x.detach() * 1e-3).float().sum(1, keepdim=True).expand(ids.shape)
            assert weights.grad.dtype == torch.float32
            torch.testing.assert_close(weights.grad, torch.where(ids >= 0, wanted, 0), rtol=1e-5, atol=1e-6)
            exchange.close()
    """)


def test_gradcheck_in_float64(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=TOKENS, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float64", layout="expert_compact")
        layer, matrices = moe.Dispatcher(exchange), experts(torch.float64)
        x, ids, _ = inputs(0, torch.float64)
        weights = torch.full((TOKENS, TOPK), 0.25, dtype=torch.float64)  # held in float32 on the way: exact there
        run = lambda x, matrices: layer(x, ids, weights, on_rows(matrices))
        assert torch.autograd.gradcheck(run, (x.requires_grad_(), matrices.requires_grad_()))
    """)


def test_tensors_of_each_type_come_back_as_tensors(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16), ("float32", torch.float32)):
            for layout in ("expert_padded", "expert_compact", "rank_major", "rank_compact"):
                exchange = moe.Exchange(max_tokens=TOKENS + 1, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload=dtype, layout=layout)
                x, ids, weights = inputs(job.pe, dtype)
                by_rank = layout.startswith("rank")
                got = exchange.dispatch(x, ids, None if by_rank else weights)
                assert got.x.dtype == dtype and got.counts.dtype == torch.int32 and got.weights.dtype == torch.float32
                y = exchange.combine(got.x.clone(), got.plan, precision="reduced" if by_rank else "exact")
                if not by_rank:
                    wanted = (x.double() * torch.where(ids >= 0, weights, 0).sum(1, keepdim=True).double())
                    assert y.dtype == dtype and torch.allclose(y.double(), wanted, rtol=2**-7, atol=1e-2)
                del got
                exchange.close()
    """)


def test_fp8_payload_takes_bfloat16_and_gives_fp8_with_scales(programs):
    programs.ok(2, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=4, hidden=256, experts=4, topk=2, payload=torch.float8_e4m3fn, scales="float32",
                                layout="expert_compact")
        x = torch.randn(4, 256, dtype=torch.bfloat16)
        got = exchange.dispatch(x, torch.full((4, 2), 2 * job.pe), torch.ones(4, 2))
        assert got.x.dtype == torch.float8_e4m3fn and got.scales.shape == (len(got.x), 2)
        wide = (got.x.to(torch.float32).reshape(-1, 2, 128) * got.scales[..., None]).reshape(-1, 256)
        y = exchange.combine(wide.to(torch.bfloat16), got.plan)
        assert y.dtype == torch.bfloat16 and torch.allclose(y.float(), 2 * x.float(), rtol=0.08, atol=0.02)
    """)


def test_tensors_that_do_not_fit_are_named(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=4, hidden=8, experts=4, topk=2, payload="float32", layout="rank_major")
        for call, text in ((lambda: exchange.dispatch(torch.zeros(8, 4).T, torch.zeros(4, 2)), "x is a view with gaps; copy it first (Tensor.contiguous)"),
                           (lambda: exchange.dispatch(torch.zeros(4, 8).bfloat16(), torch.zeros(4, 2, dtype=int)), "x is of bfloat16, and the exchange moves float32"),
                           (lambda: exchange.dispatch(torch.zeros(4, 8, device="meta"), torch.zeros(4, 2, dtype=int)), "x is on meta; the exchange is on the CPU: x.cpu()"),
                           (lambda: moe.Dispatcher(exchange), "it needs an expert layout, and one type for both")):
            try:
                call()
                raise AssertionError(text)
            except weft.Error as error:
                assert text in str(error), error
    """)


@pytest.mark.parametrize("tensor", ["x", "topk_weights", "expert_out"])
def test_a_gradient_that_would_be_dropped_is_a_warning_once(programs, tensor):
    programs.ok(2, MODEL + f"""
    import warnings
    NAME = "{tensor}"
    """ + """
    with weft.init() as job:
        def make():
            return moe.Exchange(max_tokens=TOKENS + 2, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float32", layout="expert_compact")
        def step(exchange, wants):
            x, ids, weights = inputs(job.pe, torch.float32)
            x.requires_grad_(wants and NAME == "x"), weights.requires_grad_(wants and NAME == "topk_weights")
            d = exchange.dispatch(x, ids, weights)
            exchange.combine((d.x * 2).requires_grad_(wants and NAME == "expert_out"), d.plan)
        exchange = make()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            step(exchange, False)
            with torch.no_grad():
                step(exchange, True)
            layer = moe.Dispatcher(exchange)
            x, ids, weights = inputs(job.pe, torch.float32)
            layer(x.requires_grad_(), ids, weights.requires_grad_(), lambda rows, counts, offsets: rows * 2).sum().backward()
            assert not said, said[0].message
            step(exchange, True), step(exchange, True)
        assert len(said) == 1 and said[0].category is UserWarning, said
        text = str(said[0].message)
        call = "combine" if NAME == "expert_out" else "dispatch"
        assert text.startswith(f"weft.moe.Exchange.{call}: {NAME} requires a gradient") and "weft.moe.Dispatcher" in text, text
        assert said[0].filename == __file__, said[0].filename
    """)


def test_a_gradient_that_would_be_dropped_in_a_graph_is_an_error(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=TOKENS, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float32", layout="expert_padded")
        x, ids, weights = inputs(0, torch.float32)
        layer = torch.compile(lambda x: exchange.dispatch(x, ids, weights).x, fullgraph=True, backend="eager")
        try:
            layer(x.requires_grad_())
        except Exception as error:
            assert "weft.moe.Dispatcher" in str(error), str(error)
        else:
            raise AssertionError("no error")
    """)
