"""Documents that are generated from code are what the code would write now."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))

from checks.documents import LINK  # noqa: E402: the path above comes first

STEP = re.compile(r"^(\d+)\. \*\*")
STEPS_MAX = 9


def test_env_md_is_what_the_configuration_table_says(project, bin_dir):
    program = bin_dir / "weft-info"
    if not program.exists():
        pytest.skip("weft-info is not built")
    written = subprocess.run([program, "--env", "--markdown"], capture_output=True, text=True, check=True).stdout
    assert (project / "docs" / "ENV.md").read_text() == written, "run scripts/generate_docs"


def test_weft_top_knows_the_rail_policies_that_the_library_has(project, bin_dir, monkeypatch):
    program = bin_dir / "weft-info"
    if not program.exists():
        pytest.skip("weft-info is not built")
    written = subprocess.run([program, "--env", "--json"], capture_output=True, text=True, check=True).stdout
    setting = next(row for row in json.loads(written) if row["name"] == "WEFT_RAIL_POLICY")
    monkeypatch.setattr(sys, "path", [str(project / "tools" / "top"), *sys.path])
    from weft_top import rail_policies

    assert setting["explained"] == rail_policies.TEXTS, "run scripts/generate_docs"
    assert setting["default"] == rail_policies.DEFAULT
    assert setting["choices"].split("|") == list(rail_policies.TEXTS)


def steps_of_a_put(project):
    """The page's first walk, there and back: for each numbered paragraph its number and its links."""
    page = (project / "docs" / "LIFE_OF_A_PUT.md").read_text()
    walk = page[page.index("\n## There\n"):page.index("\n## put_signal: one trip\n")]
    paragraphs = [" ".join(paragraph.split()) for paragraph in walk.split("\n\n") if STEP.match(paragraph)]
    return [(int(STEP.match(paragraph)[1]), LINK.findall(paragraph)) for paragraph in paragraphs]


def defines(text, symbol):
    """A function with this name begins on a line of its own, or a member of the class inside it, or a type, or a table."""
    scope, _, name = symbol.rpartition("::")
    member = rf"{re.escape(scope)}::{re.escape(name)}\(" if scope else rf"{re.escape(name)}\("
    outside = rf"^(?!\s)(?!//)[^;]*?\b{member}[^;]*?\{{"
    inside = rf"\b(?:class|struct) {re.escape(scope)}\b.*?^  (?!\s)(?!//)[^;\n]*?\b{re.escape(name)}\([^;]*?\{{"
    named = rf"^(?:class|struct) {re.escape(name)}\b[^;]*?\{{|^(?!\s)[^;\n]*\b{re.escape(name)}(?:\[\])? ?(?:=|\{{)"
    patterns = [outside] + ([inside] if scope else [named, inside.replace(r"\b(?:class|struct) \b.*?", "")])
    return any(re.search(pattern, text, re.M | re.S) for pattern in patterns)


def test_a_put_takes_at_most_nine_steps(project):
    """Each step names code that its file defines, so that the page walks through what runs."""
    steps = steps_of_a_put(project)
    assert [number for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 1 < len(steps) <= STEPS_MAX
    for number, links in steps:
        assert links, f"step {number} names no file"
        for target, symbol in links:
            text = (project / "docs" / target).resolve().read_text()
            assert symbol, f"step {number}: {target} without a symbol"
            assert defines(text, symbol), f"step {number}: {target} does not define `{symbol}`"


@pytest.mark.parametrize("text, symbol, is_defined", [
    ("int weft_put(void* dest, int pe) {\n}\n", "weft_put", True),
    ("// weft_put(dest) {\nint x = 0;\n", "weft_put", False),
    ("int weft_put(void* dest, int pe);\n", "weft_put", False),
    ("  return weft_put(dest, 1);\nvoid f() {\n", "weft_put", False),
    ("Status Rma::put(Context& context,\n                int pe) {\n", "Rma::put", True),
    ("class Rma {\n  int put(int pe) { return pe; }\n};\n", "Rma::put", True),
    ("class Rma {\n  int put(int pe);\n};\n", "Rma::put", False),
    ("struct Place {\n};\n", "Place", True),
    ("const Policy kPolicies[] = {\n};\n", "kPolicies", True),
    ("void f() {\n  Place place;\n}\n", "Place", False),
])
def test_a_definition_is_told_from_a_mention(text, symbol, is_defined):
    assert defines(text, symbol) == is_defined
