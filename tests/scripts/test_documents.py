"""Documents that are generated from code are what the code would write now."""
import subprocess

import pytest


def test_env_md_is_what_the_configuration_table_says(project, bin_dir):
    program = bin_dir / "weft-info"
    if not program.exists():
        pytest.skip("weft-info is not built")
    written = subprocess.run([program, "--env", "--markdown"], capture_output=True, text=True, check=True).stdout
    assert (project / "docs" / "ENV.md").read_text() == written, "run scripts/generate_docs"
