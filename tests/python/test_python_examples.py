"""The examples in Python print what they promise at their top; so does the program of docs/PYTHON.md."""
import pathlib
import re

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


def test_the_first_program_of_the_documentation(programs):
    text = (PROJECT / "docs" / "PYTHON.md").read_text()
    program = programs.write("")
    program.write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1))
    expected = re.search(r"```text\n\$ weft-run -n (\d+) [^\n]*\n(.*?)```", text, re.DOTALL)
    done = programs.run(programs.weft_run, "-n", expected.group(1), "--", programs.python, program)
    assert done.status == 0, done.err
    assert done.lines() == sorted(expected.group(2).splitlines())
