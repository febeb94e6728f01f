"""What the tests of weft-top share: the packages on the path, and a directory of labs of their own.

Invariant: a test sees no pages, devices or labs but its own.
"""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / "tools"
sys.path[:0] = [str(HERE), str(TOOLS / "top"), str(TOOLS / "lab"), str(HERE.parent / "lab")]


@pytest.fixture
def pages(tmp_path):
    """An empty directory for counter pages."""
    folder = tmp_path / "pages"
    folder.mkdir()
    return folder


@pytest.fixture
def devices(tmp_path):
    """An empty tree in place of /sys/class/infiniband."""
    folder = tmp_path / "infiniband"
    folder.mkdir()
    return folder
