"""A lab with a Slurm, one for all tests of this folder."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lab"), str(HERE.parents[1] / "tools" / "lab")]

from slurm_cluster import running_cluster  # noqa: E402: the path above comes first
from weft_lab import state  # noqa: E402


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    yield from running_cluster(tmp_path_factory.mktemp("slurm"))


@pytest.fixture
def state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_LAB_DIR", str(tmp_path / "labs"))
    return Path(state.state_directory())
