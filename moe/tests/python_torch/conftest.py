"""The fixture of all tests here: tests/python_torch/torch_jobs.py."""
import pytest

pytest.importorskip("torch", reason="torch is missing; ./test python-torch installs it into .venv-torch")

from jobs import programs_of  # noqa: E402: skipped before
from torch_jobs import TorchPrograms  # noqa: E402


@pytest.fixture
def programs(request, tmp_path):
    return programs_of(TorchPrograms, request, tmp_path)
