"""The examples on <shmem.h>: each prints what its first lines promise, with any number of PEs; lines with a
time, a rate or a share of the work are its own."""
import pytest

EXAMPLES = ["04_jacobi", "05_integer_sort", "06_random_access", "07_work_stealing", "08_transpose"]
OWN_LINES = ("time:", "rate:", "by PE:")
JOBS = [*[("node", count) for count in (1, 2, 3, 4, 5, 7, 8)], ("rails", 3), ("pairs", 4), ("faults", 2), ("cma", 3)]


def promised(text):
    """The lines after the `$ weft-run` in the comment at the top."""
    lines = [line.strip(" *") for line in text.partition("*/")[0].splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("$ weft-run"))
    last = next(number for number in range(first, len(lines)) if not lines[number])
    return lines[first + 1:last]


@pytest.mark.parametrize(("place", "count"), JOBS, ids=lambda value: str(value))
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_it_promises(project, start_at, example, place, count):
    status, output, errors = start_at(place, example, count)
    assert status == 0, output + errors
    printed = [line for line in output.splitlines() if not line.startswith(OWN_LINES)]
    assert printed == promised((project / "examples" / f"{example}.c").read_text())
