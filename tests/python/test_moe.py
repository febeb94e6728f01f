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


def test_random_cases_on_nodes_of_two_equal_the_reference(programs):
    run_cases(programs, 4, 30000, 25, WEFT_NODE_SIZE="2")


@pytest.mark.parametrize("node_size", ["0", "1"])
def test_repetitions_with_random_delays_give_the_same_bits(programs, node_size):
    run_cases(programs, 3, 40000, 8, repeats=20, WEFT_NODE_SIZE=node_size)
