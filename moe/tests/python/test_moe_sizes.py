"""How much memory an exchange takes, said before anything is allocated, and how long its calls wait."""
import pathlib
import re

import pytest

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "MOE.md"

SHAPES = """
    from weft import moe
    import itertools
    def shapes():
        for layout, payload, row_per in itertools.product(("rank_major", "rank_compact", "expert_padded", "expert_compact"),
                                                          ("float32", "fp8_e4m3", "nvfp4"), ("auto", "rank")):
            yield dict(max_tokens=5, hidden=64, experts=9, topk=3, payload=payload, layout=layout, row_per=row_per,
                       scales="float32" if payload == "fp8_e4m3" else None)
"""


@pytest.mark.parametrize("pes, node_size", [(1, 1), (4, 4), (4, 2), (3, 2), (4, 1)])
def test_the_answer_is_what_an_exchange_takes(programs, pes, node_size):
    """Asked in the job, and of a job that is not there."""
    programs.ok(pes, SHAPES + f"""
    beforehand = [moe.exchange_bytes(ranks={pes}, node_size={node_size}, **shape) for shape in shapes()]
    with weft.init(heap_size="32M") as job:
        here = [moe.exchange_bytes(**shape) for shape in shapes()]
        assert here == beforehand, (here, beforehand)
        for shape, said in zip(shapes(), here):
            exchange = moe.Exchange(**shape)
            taken = exchange._core.shape()["memory_bytes"]
            if {node_size} == {pes} or shape["row_per"] == "rank":
                assert said == taken, (shape, said, taken)
            assert said >= taken
            exchange.close()
    """, WEFT_NODE_SIZE=str(node_size))


def test_it_needs_neither_a_job_nor_a_gpu(programs):
    programs.ok(1, SHAPES + """
    many = dict(max_tokens=4096, hidden=7168, experts=256, topk=8)
    inside, between = (moe.exchange_bytes(ranks=64, node_size=size, device="cuda", **many) for size in (64, 8))
    assert 2 * 2**30 < inside < between, (inside, between)
    assert moe.exchange_bytes(ranks=64, device="cuda", **many) == inside
    assert not weft.initialized()
    more = moe.exchange_bytes(ranks=8, device="cuda", outputs_in_place=True, layout="rank_major", **many)
    assert more > moe.exchange_bytes(ranks=8, device="cuda", layout="rank_major", **many)
    """)


WRONG = [("ranks=0", "ranks is 0; give 1 or more"), ("ranks=2, node_size=0", "node_size is 0; give 1 or more"),
         ("node_size=2", "node_size is given without ranks"), ("ranks=5000", "give 1 to 4096 ranks"),
         ("ranks=2, experts=1", "experts is 1; give at least one for each of the 2 ranks"),
         ("ranks=2, layout='sideways'", "layout is 'sideways'"), ("ranks=2, hidden=3", "give a hidden that makes it a multiple of 16"),
         ("ranks=2, timeout=0", "timeout is 0 s; give more than 0, or None for the default"),
         ("ranks=2, timeout='soon'", "timeout is 'soon'; give seconds"),
         ("ranks=65, device='cuda', experts=65", "the team has 65 ranks, and an exchange on GPUs has at most 64"),
         ("ranks=2, outputs_in_place=True", "outputs_in_place is given, and the layout is expert_padded")]


def test_what_an_exchange_would_refuse_is_refused(programs):
    programs.ok(1, f"""
    from weft import moe
    def ask(**given):
        return moe.exchange_bytes(**(dict(max_tokens=4, hidden=64, experts=8, topk=2) | given))
    for given, text in {WRONG!r}:
        try:
            eval(f"ask({{given}})")
        except weft.InvalidArgument as error:
            assert text in str(error), (given, str(error))
        else:
            raise AssertionError(given)
    try:
        ask()
    except weft.NotInitialized as error:
        assert "weft.moe.exchange_bytes" in str(error)
    else:
        raise AssertionError("without a job")
    """)


def test_an_exchange_that_does_not_fit_names_the_argument(programs):
    programs.ok(2, """
    from weft import moe
    with weft.init(heap_size=4 << 20) as job:
        needs = moe.exchange_bytes(max_tokens=1024, hidden=1024, experts=2, topk=2)
        try:
            moe.Exchange(max_tokens=1024, hidden=1024, experts=2, topk=2)
        except weft.OutOfMemory as error:
            assert "raise heap_size of weft.init, or WEFT_HEAP_SIZE" in str(error), str(error)
        else:
            raise AssertionError("it fits")
    with weft.init(heap_size=needs + (4 << 20)):
        moe.Exchange(max_tokens=1024, hidden=1024, experts=2, topk=2).close()
    """)


@pytest.mark.parametrize("variable, argument, seconds", [("1", "None", 1), ("1", "2.0", 2), (None, "1", 1)])
def test_the_timeout_of_an_exchange_is_the_variable_unless_one_is_given(programs, variable, argument, seconds):
    programs.ok(2, f"""
    from weft import moe
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=4, hidden=8, experts=4, topk=1, payload="float32", timeout={argument})
        x, ids = numpy.ones((4, 8), "float32"), numpy.zeros((4, 1), int)
        if job.pe == 0:
            try:
                exchange.dispatch(x, ids)
            except weft.Timeout as error:
                assert "nothing came from PE 1 of 2 within {seconds} s" in str(error), str(error)
            else:
                raise AssertionError("PE 1 came")
        weft.barrier_all()
    """, **({} if variable is None else {"WEFT_MOE_TIMEOUT": variable}))


def test_the_table_of_the_documentation_is_what_the_functions_say(programs):
    """Of moe/docs/MOE.md: in GiB, on GPUs by node and by rank, and on CPUs."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d,]+) \| (\w+) \| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(rows) >= 8
    programs.ok(1, f"""
    from weft import moe
    for ranks, node_size, tokens, payload, layout, *said in {rows!r}:
        shape = dict(ranks=int(ranks), node_size=int(node_size), max_tokens=int(tokens.replace(",", "")), hidden=7168, experts=256, topk=8,
                     payload=payload, layout=layout, scales="float32" if payload == "fp8_e4m3" else None)
        found = [moe.exchange_bytes(**shape, device=device, row_per=row_per) / 2**30
                 for device, row_per in (("cuda", "node"), ("cuda", "rank"), ("cpu", "node"))]
        assert [f"{{one:.2f}}" for one in found] == said, (shape, found, said)
    """)


@pytest.mark.parametrize("layout", ["rank_compact", "expert_compact"])
def test_a_trimmed_result_has_the_rows_that_came(programs, layout):
    """In memory of their own, so that later dispatches may come, and combine takes them."""
    programs.ok(2, f"""
    from weft import moe
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=4, hidden=8, experts=4, topk=2, payload="float32", layout="{layout}")
        x, ids, weights = numpy.arange(32, dtype="float32").reshape(4, 8) + job.pe, numpy.array([[0, 2], [1, -1], [3, 0], [-1, -1]]), numpy.ones((4, 2), "float32")
        kept = []
        for _ in range(4):
            d = exchange.dispatch(x, ids, weights)
            kept.append(d.trimmed())
            assert (kept[-1].x == d.x).all() and kept[-1].x.shape[0] == d.offsets[-1] == kept[-1].offsets[-1]
            assert (kept[-1].weights == d.weights).all() and (d.ids is None or (kept[-1].ids == d.ids).all())
            del d
        sums = exchange.combine(kept[0].x, kept[0].plan)
        lanes = 2 if "{layout}" == "expert_compact" else 1
        assert (sums[1] == x[1]).all() and (sums[3] == 0).all() and (sums[0] == 2 * x[0]).all(), sums
        padded = moe.Exchange(max_tokens=4, hidden=8, experts=4, topk=2, payload="float32")
        try:
            padded.dispatch(x, ids, weights).trimmed()
        except weft.InvalidArgument as error:
            assert "it is for rank_compact and expert_compact" in str(error)
        else:
            raise AssertionError("padded")
    """)
