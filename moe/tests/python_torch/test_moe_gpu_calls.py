"""What weft.moe passes to the engine of a GPU, and how it shows what comes back: with tensors of the CPU and an engine that
only writes down its arguments. The kernels are tested in test_moe_cuda.py."""
import pytest

# An exchange of rank 0 of 2, with 4 experts here; a name's memory begins where the engine was told.
BODY = """
    from weft.moe import gpu

    class Engine:
        def __init__(self, shape):
            self.told, self._shape = [], shape
        def shape(self):
            return self._shape
        def dispatch_on_stream(self, *told):
            self.told.append(told)
            return (base, base + 64, base + 128, base + 192, row, row, row, row)
        def combine_on_stream(self, *told):
            self.told.append(told)

    exchange = object.__new__(gpu.GpuExchange)
    exchange.payload, exchange.scales, exchange.output, exchange.layout = payload, scales, "bfloat16", layout
    exchange.max_tokens, exchange.hidden, exchange.experts, exchange.topk = 8, 256, 8, 2
    scale_bytes = {"none": 0, "float32": 8, "ue8m0": 4, "nvfp4": 20}[scales]
    row = 1024
    memory = torch.zeros(2 * 8 * row, dtype=torch.uint8)
    base = memory.data_ptr()
    real = torch.device
    torch.device = lambda *_: real("cpu")
    exchange._core = Engine({"rank": 0, "ranks": 2, "first_expert": 0, "local_experts": 4, "scale_bytes": scale_bytes,
                             "rows_max": 4 * 2 * 8, "payload_bytes": 512, "plan_bytes": 1000, "memory": base, "memory_bytes": len(memory)})
    exchange.outputs_in_place = exchange.scales_by_column = False
    exchange._sending, exchange.has_part, exchange._device = None, True, -1
    exchange._look_at_shape()
    torch.device = real
    exchange._stream = lambda: 77
    columns = 128 if payload == "nvfp4" else 256
    x = torch.zeros(3, columns, dtype=gpu._DTYPES[payload])
    given = None if not scale_bytes else torch.zeros(3, scale_bytes, dtype=torch.uint8)
    ids, weights = torch.zeros(3, 2, dtype=torch.int32), torch.ones(3, 2)
"""
SHAPES = {"expert_padded": (4, 16), "expert_compact": (64,), "rank_major": (2, 8), "rank_compact": (64,)}
KINDS = [("bfloat16", "none"), ("fp8_e4m3", "float32"), ("fp8_e4m3", "ue8m0"), ("nvfp4", "nvfp4")]


@pytest.mark.parametrize("payload, scales", KINDS)
@pytest.mark.parametrize("layout", SHAPES)
def test_the_engine_gets_the_addresses_of_what_the_result_shows(programs, layout, payload, scales):
    programs.ok(1, f"""
        with weft.init():
            payload, scales, layout, shape = {payload!r}, {scales!r}, {layout!r}, {SHAPES[layout]!r}
""" + BODY.replace("\n    ", "\n            ") + """
            result = exchange.dispatch(x, ids, weights, given)
            (phase, tokens, kind), sources, found, plan, stream = exchange._core.told[0]
            assert (phase, tokens, stream) == (0, 3, 77) and plan == result.plan.memory.data_ptr()
            assert sources[0] == x.data_ptr() and sources[1] == (0 if given is None else given.data_ptr())
            assert sources[2] == result.plan.topk_ids.data_ptr() and result.plan.topk_ids.dtype == torch.int64
            assert sources[3] == weights.data_ptr()
            in_place = layout == "rank_major"
            lanes = (2,) if layout.startswith("rank") else ()
            assert result.x.shape == (*shape, columns) and result.x.dtype == x.dtype
            assert result.x.data_ptr() == (base if in_place else found[0])
            assert result.weights.shape == (*shape, *lanes) and result.weights.dtype == torch.float32
            assert result.weights.data_ptr() == (base + 192 if in_place else found[3])
            if lanes:
                assert result.ids.shape == (*shape, 2) and result.ids.data_ptr() == (base + 128 if in_place else found[2])
            else:
                assert result.ids is None
            assert len(result.counts) == (2 if lanes else 4) and result.counts.data_ptr() == found[4]
            assert len(result.offsets) == len(result.counts) + 1 and result.offsets.data_ptr() == found[5]
            if scales == "none":
                assert result.scales is None and result.row_scales is None
            else:
                at = base + 64 if in_place else found[1]
                blocks, kind = {"float32": (2, torch.float32), "ue8m0": (4, torch.uint8), "nvfp4": (16, torch.uint8)}[scales]
                assert result.scales.shape == (*shape, blocks) and result.scales.dtype == kind and result.scales.data_ptr() == at
                if scales == "nvfp4":
                    assert result.row_scales.shape == shape and result.row_scales.data_ptr() == at + 16
            assert result.counts is result.counts  # made once
            try:
                result.colour
            except AttributeError as error:
                assert "colour" in str(error)

            out = torch.zeros(*shape, 256, dtype=torch.bfloat16)
            sums = exchange.combine(out, result.plan)
            (rows, given_weights, to, plan, stream), (phase, _, _) = exchange._core.told[1]
            assert rows == out.data_ptr() and to == sums.data_ptr() and sums.shape == (3, 256) and (phase, stream) == (0, 77)
""")


def test_the_routes_of_rows_are_those_of_the_result(programs):
    programs.ok(1, """
        with weft.init():
            payload, scales, layout = "fp8_e4m3", "float32", "rank_compact"
""" + BODY.replace("\n    ", "\n            ") + """
            exchange._core.row_routes_on_stream = lambda *told: exchange._core.told.append(told)
            result = exchange.dispatch(x, ids, weights, given)
            shown, shown_weights, counts = (torch.empty(*shape, dtype=kind) for shape, kind in (
                ((70, 2), torch.int64), ((70, 2), torch.float32), ((5,), torch.int64)))
            for of_rows in ((shown_weights, counts), (None, None)):
                exchange.show_row_routes(result, shown, *of_rows)
                rows, count, to, stream = exchange._core.told[-1]
                assert rows == (result.ids.data_ptr(), result.weights.data_ptr(), result.offsets.data_ptr())
                assert (count, stream) == (70, 77)
                assert to == (shown.data_ptr(), *(0 if each is None else each.data_ptr() for each in of_rows))
""")


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("payload, scales", KINDS)
def test_an_operator_gets_the_same_parts_in_memory_of_their_own(programs, layout, payload, scales):
    programs.ok(1, f"""
        with weft.init():
            payload, scales, layout = {payload!r}, {scales!r}, {layout!r}
""" + BODY.replace("\n    ", "\n            ") + """
            block, apart = exchange.dispatch(x, ids, weights, given), exchange.dispatch_apart(x, ids, weights, given)
            *_, found, plan, stream = exchange._core.told[1]
            names = ("x", "scales", "row_scales", "ids", "weights", "counts", "offsets")
            parts = [(getattr(block, name), getattr(apart, name)) for name in names]
            for one, other in parts:
                assert (one is None) == (other is None)
                if one is not None:
                    assert one.shape == other.shape and one.dtype == other.dtype and one.stride() == other.stride()
            own = [apart.plan.memory] + [parts[i][1] for i in range(7) if parts[i][1] is not None and
                                         not (layout == "rank_major" and names[i] not in ("counts", "offsets")) and names[i] != "row_scales"]
            assert len({each.untyped_storage().data_ptr() for each in own}) == len(own)
            assert plan == apart.plan.memory.data_ptr() and apart.counts.data_ptr() == found[4]
""")
