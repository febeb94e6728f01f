"""weft.moe on GPUs, beside the same exchange on the CPU: rows and sums have the same bits. Needs what test_cuda.py needs."""
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
SHARED = {"WEFT_DEVICE_SHARED": "yes", "WEFT_DEVICE_HEAP_SIZE": "64M", "WEFT_DEVICE_HEAP_MAX": "1G"}
START = """
import warnings
warnings.filterwarnings("error", message=".*custom operator")  # of torch.compile: results that share memory
import weft.moe as moe
torch.cuda.set_device(int(os.environ.get('WEFT_PE', 0)) % torch.cuda.device_count())
torch.manual_seed(int(os.environ.get('WEFT_PE', 0)))
TOKENS, HIDDEN, EXPERTS, TOPK = 24, 256, 6, 3
def given(tokens=TOKENS, dtype=torch.bfloat16):
    ids = torch.stack([torch.randperm(EXPERTS)[:TOPK] for _ in range(tokens)]) if tokens else torch.zeros(0, TOPK, dtype=torch.int64)
    ids[torch.rand(ids.shape) < 0.1] = -1
    return torch.randn(tokens, HIDDEN).to(dtype), ids, torch.rand(tokens, TOPK)
def both(**named):
    sizes = dict(max_tokens=TOKENS, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, **named)
    return moe.Exchange(**sizes), moe.Exchange(**sizes, device="cuda")
"""


def gpus(programs, count, body, **environment):
    return programs.ok(count, START + body, **SHARED, **environment)


@pytest.mark.parametrize("layout", ["expert_padded", "expert_compact", "rank_major", "rank_compact"])
@pytest.mark.parametrize("payload", ["bfloat16", "fp8_e4m3"])
def test_same_bits_as_on_the_cpu(programs, layout, payload):
    gpus(programs, 2, f"""
with weft.init():
    layout, payload = {layout!r}, {payload!r}
    by_rank = layout.startswith("rank")
    on_cpu, on_gpu = both(layout=layout, payload=payload, scales="float32" if payload != "bfloat16" else None,
                          outputs_in_place=by_rank, **(dict(alignment=4) if layout == "expert_compact" else dict()))
    for tokens in (TOKENS, 5, 0, TOKENS):
        x, ids, weights = given(tokens)
        a = on_cpu.dispatch(x, ids, weights)
        b = on_gpu.dispatch(x.cuda(), ids.cuda(), weights.cuda())
        on_gpu.check()
        assert torch.equal(a.counts, b.counts.cpu()) and torch.equal(a.offsets, b.offsets.cpu())
        for part, count in enumerate(a.counts.tolist()):
            if not count:
                continue
            first = a.offsets[part].item()
            rows = slice(first, first + count)
            flat = lambda t: t.cpu().contiguous().view(-1, t.shape[-1])[rows]
            assert torch.equal(flat(a.x).view(torch.uint8), flat(b.x).view(torch.uint8))
            if a.scales is not None:
                assert torch.equal(flat(a.scales), flat(b.scales))
            if a.ids is not None:
                assert torch.equal(flat(a.ids), flat(b.ids)) and torch.equal(flat(a.weights), flat(b.weights))
        rows_of = lambda result: torch.zeros(*result.x.shape[:-1], HIDDEN, dtype=torch.bfloat16)
        out = torch.randn(rows_of(a).shape).to(torch.bfloat16)
        wide = rows_of(b)
        wide.view(-1, HIDDEN)[:out.numel() // HIDDEN] = out.view(-1, HIDDEN)
        for precision in ("reduced", "fp8") if layout.startswith("rank") else ("reduced", "exact", "lanes", "fp8"):
            y, z = on_cpu.combine(out, a.plan, precision=precision), on_gpu.combine(wide.cuda(), b.plan, precision=precision)
            on_gpu.check()
            assert torch.equal(y, z.cpu()), (tokens, precision)
        if by_rank:
            assert b.outputs.shape == wide.shape and b.outputs.dtype == wide.dtype
            y = on_cpu.combine(out, a.plan)
            b.outputs.copy_(wide)
            assert torch.equal(y, on_gpu.combine(b.outputs, b.plan).cpu()), tokens
            on_gpu.check()
        else:
            assert b.outputs is None
        del a
    on_gpu.close()
    on_cpu.close()
""")


def test_phases_and_graphs(programs):
    gpus(programs, 2, """
with weft.init():
    on_cpu, on_gpu = both()
    x, ids, weights = (tensor.cuda() for tensor in given())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert on_gpu.dispatch(x, ids, weights, phase="send") is None
        result = on_gpu.dispatch(phase="recv")
        on_gpu.combine(result.x, result.plan, phase="send")
        sums = on_gpu.combine(phase="recv")
        on_gpu.check()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = on_gpu.dispatch(x, ids, weights)
        y = on_gpu.combine(result.x, result.plan)
    for _ in range(20):
        new = given()
        for old, its in zip((x, ids, weights), new):
            old.copy_(its)
        graph.replay()
        on_gpu.check()
        a = on_cpu.dispatch(*new)
        expected = on_cpu.combine(a.x.clone(), a.plan)
        assert torch.equal(expected, y.cpu())
        del a
""")


def test_a_bound_on_the_gpu_is_read_by_each_replay(programs):
    gpus(programs, 2, """
with weft.init():
    on_cpu, on_gpu = both()
    x, ids, weights = given()
    bound, on_this = torch.tensor([2], device="cuda"), [tensor.cuda() for tensor in (x, ids, weights)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = on_gpu.dispatch(*on_this, bound=bound)
        y = on_gpu.combine(result.x, result.plan)
    for count in (0, 1, len(x), 3, 100):
        bound.fill_(count)
        graph.replay()
        on_gpu.check()
        a = on_cpu.dispatch(x, ids, weights, bound=count)
        assert torch.equal(on_cpu.combine(a.x.clone(), a.plan), y.cpu()) and torch.equal(a.counts, result.counts.cpu())
        del a
""")


@pytest.mark.parametrize("nodes", [{}, {"WEFT_NODE_SIZE": "1", "WEFT_NICS": "127.0.0.1"}], ids=["one_node", "nodes_of_one"])
def test_training_has_the_gradients_of_the_cpu(programs, nodes):
    gpus(programs, 2, """
with weft.init():
    grown = []
    for exchange, device in zip(both(layout="expert_compact", payload="float32"), ("cpu", "cuda")):
        torch.manual_seed(weft.world.pe if hasattr(weft.world, "pe") else 0)
        x, ids, weights = given(dtype=torch.float32)
        x, weights = x.to(device).requires_grad_(), weights.to(device).requires_grad_()
        y = moe.Dispatcher(exchange)(x, ids.to(device), weights, lambda rows, counts, offsets: rows * 3)
        (y * y).sum().backward()
        exchange.check()
        grown.append([tensor.detach().cpu() for tensor in (y, x.grad, weights.grad)])
    for a, b in zip(*grown):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
""", **nodes)


@pytest.mark.parametrize("layout", ["expert_compact", "expert_padded"])
def test_a_compiled_layer_has_the_gradients_of_the_cpu(programs, layout):
    gpus(programs, 2, f"""
LAYOUT = "{layout}"
""" + """
with weft.init():
    on_cpu, on_gpu = both(layout=LAYOUT, payload="float32")
    drawn, found = given(dtype=torch.float32), []
    for exchange, device in ((on_cpu, "cpu"), (on_gpu, "cuda")):
        dispatcher = moe.Dispatcher(exchange)
        layer = lambda x, ids, weights: dispatcher(x * 2, ids, weights, lambda rows, counts, offsets: rows.nan_to_num() * 3)
        x, ids, weights = (tensor.detach().to(device) for tensor in drawn)
        x.requires_grad_(), weights.requires_grad_()
        run = torch.compile(layer, fullgraph=True) if device == "cuda" else layer
        for _ in range(2):
            x.grad = weights.grad = None
            y = run(x, ids, weights)
            (y * y).sum().backward()
        exchange.check()
        found.append([tensor.detach().cpu() for tensor in (y, x.grad, weights.grad)])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
""")


def test_calls_in_a_compiled_graph_have_the_bits_of_plain_ones(programs):
    gpus(programs, 2, """
with weft.init():
    for layout in ("expert_padded", "rank_major"):
        _, exchange = both(layout=layout, payload="fp8_e4m3", scales="float32")

        @torch.compile(fullgraph=True)
        def step(x, ids, weights):
            found = exchange.dispatch(x, ids, weights)
            out = found.x.to(torch.bfloat16)
            return found.x, found.scales, found.counts, exchange.combine(out, found.plan)

        for tokens in (TOKENS, TOKENS, 7):
            x, ids, weights = (tensor.cuda() for tensor in given(tokens))
            parts = step(x, ids, weights)
            plain = exchange.dispatch(x, ids, weights)
            y = exchange.combine(plain.x.to(torch.bfloat16), plain.plan)
            exchange.check()
            assert torch.equal(parts[2], plain.counts)
            for part, count in enumerate(plain.counts.tolist()):
                assert torch.equal(parts[0][part, :count].view(torch.uint8), plain.x[part, :count].view(torch.uint8))
                assert torch.equal(parts[1][part, :count], plain.scales[part, :count])
            assert torch.equal(parts[3], y)
        exchange.close()
""")


def test_wrong_arguments_name_what_is_wrong(programs):
    gpus(programs, 1, """
with weft.init():
    _, on_gpu = both()
    x, ids, weights = given()
    for bad, text in ((lambda: on_gpu.dispatch(x, ids.cuda()), "x is on cpu"),
                      (lambda: on_gpu.dispatch(x.cuda(), ids), "topk_ids is on cpu"),
                      (lambda: on_gpu.dispatch(x.cuda().T, ids.cuda()), "view with gaps"),
                      (lambda: on_gpu.dispatch(x.cuda()[:, :8].contiguous(), ids.cuda()), "[tokens, 256]"),
                      (lambda: on_gpu.dispatch(x.cuda().double(), ids.cuda()), "float64"),
                      (lambda: on_gpu.dispatch(x.cuda(), ids.cuda().float()), "torch.int64"),
                      (lambda: on_gpu.dispatch(x.cuda(), ids.cuda(), bound=-1), "bound is -1"),
                      (lambda: on_gpu.dispatch(x.cuda(), ids.cuda(), bound=torch.tensor([2])), "on cpu; give an integer"),
                      (lambda: on_gpu.dispatch(x.cuda(), ids.cuda(), bound=torch.ones(2).cuda()), "bound is (2,) of torch.float32")):
        try:
            bad()
            raise SystemExit(f"no error with {text}")
        except weft.Error as error:
            assert text in str(error), error
    result = on_gpu.dispatch(x.cuda(), ids.cuda())
    on_gpu.check()
    try:
        on_gpu.combine(result.x, result.plan)
        raise SystemExit("no error without weights")
    except weft.InvalidArgument as error:
        assert "topk_weights are missing" in str(error)
    ids[2, 1] = EXPERTS
    on_gpu.dispatch(x.cuda(), ids.cuda())
    try:
        on_gpu.check()
        raise SystemExit("no error for an id that is no expert's")
    except weft.InvalidArgument as error:
        assert "topk_ids[2, 1] is 6" in str(error), error
""")
