"""Documents that are generated from code are what the code would write now."""
import json
import subprocess
import sys

import pytest


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
