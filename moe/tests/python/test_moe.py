"""weft.moe against a naive reference: 1,000 random cases on 1 to 8 PEs, and on PEs that are nodes of their own."""
import pathlib

import pytest

CASES = pathlib.Path(__file__).with_name("moe_cases.py")


def run_cases(programs, pes, first, count, repeats=1, **variables):
    process = programs.start(programs.weft_run, "-n", pes, "--", programs.python, CASES, first, count, repeats,
                             **{"WEFT_HEAP_SIZE": "2G", "OPENBLAS_NUM_THREADS": "1"} | variables)
    done = programs.finish(process, 240)
    assert done.status == 0, done.out + done.err
    assert sorted(done.out.split("PE ")[1:])[0].strip() == f"0: {count} cases"


@pytest.mark.parametrize("pes", range(1, 9))
def test_random_cases_equal_the_reference(programs, pes):
    run_cases(programs, pes, 1000 * pes, 125)


@pytest.mark.parametrize("pes", [2, 3, 5])
def test_random_cases_between_nodes_equal_the_reference(programs, pes):
    run_cases(programs, pes, 20000 + 1000 * pes, 25, WEFT_NODE_SIZE="1")


@pytest.mark.parametrize("pes, node_size", [(4, 2), (8, 4), (6, 2), (5, 2), (4, 3), (5, 4)])
def test_random_cases_on_nodes_of_several_pes_equal_the_reference(programs, pes, node_size):
    """Rows travel once to each node; the last shapes have nodes of different sizes."""
    run_cases(programs, pes, 30000 + 1000 * pes + 100 * node_size, 25, WEFT_NODE_SIZE=str(node_size))


@pytest.mark.parametrize("pes, node_size", [(4, 2), (5, 3)])
def test_rows_that_travel_by_node_are_those_that_travel_by_rank(programs, pes, node_size):
    """Bit by bit, rows and partial sums; sums within the rounding of their type, because they are added in another order."""
    process = programs.start(programs.weft_run, "-n", pes, "--", programs.python, CASES.with_name("moe_row_per.py"), 60000, 20,
                             WEFT_HEAP_SIZE="2G", OPENBLAS_NUM_THREADS="1", WEFT_NODE_SIZE=str(node_size))
    done = programs.finish(process, 240)
    assert done.status == 0, done.out + done.err
    assert all(f"PE {pe}: 20 cases" in done.out for pe in range(pes))


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_repetitions_with_random_delays_give_the_same_bits(programs, node_size):
    run_cases(programs, 3, 40000, 8, repeats=20, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("layout", ["expert_padded", "expert_compact", "rank_major", "rank_compact"])
def test_tokens_from_a_bound_on_go_nowhere(programs, layout):
    done = programs.ok(2, f"""
    import numpy
    import weft.moe as moe
    with weft.init() as job:
        exchange = moe.Exchange(max_tokens=8, hidden=16, experts=5, topk=2, payload="float32", layout={layout!r})
        random = numpy.random.default_rng(job.pe)
        x = random.standard_normal((6, 16), "float32")
        ids, weights = random.integers(-1, 5, (6, 2)), random.random((6, 2), "float32")
        for bound in (0, 2, numpy.int64(3), numpy.array([4]), 6, 100, None):
            sums = []
            count = 6 if bound is None else min(6, int(numpy.sum(bound)))
            fewer = ids.copy()
            fewer[count:] = -1
            for of_ids, of_bound in ((fewer, None), (ids, bound)):
                got = exchange.dispatch(x, of_ids, weights, bound=of_bound)
                out = numpy.nan_to_num(got.x.copy())
                sums.append((got.counts.copy(), got.offsets.copy(), exchange.combine(out, got.plan)))
                plan = got.plan
                del got
            for one, other in zip(*sums):
                assert numpy.array_equal(one, other), bound
            assert not sums[1][2][count:].any() and plan.tokens == 6
            again = exchange.dispatch(x, plan=plan)                    # along the same routes
            assert numpy.array_equal(again.counts, sums[0][0])
            exchange.combine(numpy.nan_to_num(again.x.copy()), again.plan)
            del again
        exchange.close()
        say("done")
    """)
    assert done.lines() == ["done"] * 2
