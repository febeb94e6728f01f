"""What the lab's tests share: the package on the path, a state directory of their own, labs that end.

Invariant: a test's labs end with it, whatever happens, and it never sees labs that are not its own.
"""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "lab")]

from lab_cli import Cli  # noqa: E402: the path above comes first


@pytest.fixture
def state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_LAB_DIR", str(tmp_path / "labs"))
    return tmp_path / "labs"


@pytest.fixture
def cli(state_directory):
    """weft-lab as the present user."""
    made = Cli(state_directory)
    yield made
    made.end_all()
