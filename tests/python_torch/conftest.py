"""The fixture of all tests here: torch_jobs.py."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
pytest.importorskip("torch", reason="torch is missing; ./test python-torch installs it into .venv-torch")

from jobs import programs_of  # noqa: E402: the path above comes first
from torch_jobs import TorchPrograms  # noqa: E402


@pytest.fixture
def programs(request, tmp_path):
    return programs_of(TorchPrograms, request, tmp_path)
