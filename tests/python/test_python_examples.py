"""The examples in Python print what they promise at their top; so does the program of docs/PYTHON.md."""
import pathlib
import re
import textwrap

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.name for path in (PROJECT / "examples").glob("*.py") if "torch" not in path.name)


def promised(text):
    """The number of PEs, and the lines that the example prints, sorted."""
    head = text.split('"""')[1]
    count = int(re.search(r"\$ weft-run -n (\d+) ", head).group(1))
    lines = head.split("$ weft-run")[1].splitlines()[1:]
    return count, sorted(line.strip() for line in lines if line.strip())


def check(programs, path):
    count, lines = promised(path.read_text())
    done = programs.run(programs.weft_run, "-n", count, "--", programs.python, path)
    assert done.status == 0, done.err
    assert done.lines() == lines


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_promises(programs, name):
    check(programs, PROJECT / "examples" / name)


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


def blocks_of_documentation():
    return re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "PYTHON.md").read_text(), re.DOTALL)


def test_the_first_program_of_the_documentation(programs):
    text = (PROJECT / "docs" / "PYTHON.md").read_text()
    program = programs.write("")
    program.write_text(blocks_of_documentation()[0])
    expected = re.search(r"```text\n\$ weft-run -n (\d+) [^\n]*\n(.*?)```", text, re.DOTALL)
    done = programs.run(programs.weft_run, "-n", expected.group(1), "--", programs.python, program)
    assert done.status == 0, done.err
    assert done.lines() == sorted(expected.group(2).splitlines())


def test_the_operations_of_the_documentation(programs):
    """The lines stand there without their arrays."""
    (block,) = [block for block in blocks_of_documentation() if "weft.iput" in block]
    programs.ok(2, """
with weft.init() as job:
    pe = (job.pe + 1) % job.pe_count
    dest, source, signals, counter = weft.zeros((4, 4), "int32"), weft.zeros((4, 4), "int32"), weft.zeros(3, "uint64"), weft.zeros(1, "int64")
    cache, mine = weft.zeros((8, 4), "int32"), numpy.full((2, 4), 7 + job.pe, "int32")
    numpy.asarray(source)[:] = 7 + job.pe
    weft.barrier_all()
""" + textwrap.indent(block, "    ") + """
    assert (numpy.asarray(dest) == 7 + pe).all() and numpy.asarray(counter)[0] == 1
    assert (numpy.asarray(cache)[[2, 7]] == 7 + pe).all()
""")
