"""What the tests of weft-top share: the packages on the path, and a directory of labs of their own.

Invariant: a test sees no pages, devices or labs but its own.
"""

import os
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / "tools"
sys.path[:0] = [str(HERE), str(TOOLS / "top"), str(TOOLS / "lab"), str(HERE.parent / "lab")]

from lab_cli import Cli  # noqa: E402: the path above comes first
from small_lab import HOSTS, NICS  # noqa: E402


@pytest.fixture
def memory_folder():
    """A folder in memory: trees of thousands of small files take minutes to remove from some disks."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="weft-top-test-", dir=place) as name:
        yield Path(name)


@pytest.fixture
def pages(memory_folder):
    """An empty directory for counter pages."""
    folder = memory_folder / "pages"
    folder.mkdir()
    return folder


@pytest.fixture
def devices(memory_folder):
    """An empty tree in place of /sys/class/infiniband."""
    folder = memory_folder / "infiniband"
    folder.mkdir()
    return folder


@pytest.fixture
def lab(tmp_path):
    """A lab of this test's own, up."""
    cli = Cli(tmp_path / "labs")
    try:
        cli.start("--hosts", str(HOSTS), "--nics", str(NICS), "--rate", "40mbit")
        yield cli
    finally:
        cli.end_all()
