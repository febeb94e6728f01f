"""What the tests of weft-info share: running it, and a lab as the lab's own tests have it.

Invariant: the program sees no WEFT_ variable but those that a test gives it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from lab_cli import Cli  # noqa: E402: the path above comes first

LIMIT_S = 120


def clean_environment(variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PMI", "SLURM_"))}
    return {**kept, **variables}


@pytest.fixture
def info(bin_dir):
    """info("--doctor", WEFT_NICS="lo") runs weft-info; `prefix` comes before it, `prepare` runs in the child."""

    def run(*arguments, prefix=(), prepare=None, **variables):
        return subprocess.run(
            [*prefix, str(bin_dir / "weft-info"), *arguments], env=clean_environment(variables), text=True,
            capture_output=True, timeout=LIMIT_S, check=False, preexec_fn=prepare,  # noqa: PLW1509 - no threads here
        )

    return run


@pytest.fixture
def lab(tmp_path, bin_dir, monkeypatch):
    """weft-lab as the present user, with weft-run on the path; its labs end with the test."""
    monkeypatch.setenv("WEFT_LAB_DIR", str(tmp_path / "labs"))
    made = Cli(tmp_path / "labs", environment={"PATH": f"{bin_dir}:{os.environ['PATH']}"})
    yield made
    made.end_all()
