"""The fixture of all tests here: tests/python_torch/torch_jobs.py."""
import pytest

pytest.importorskip("torch", reason="torch is missing; ./test python-torch installs it into .venv-torch")

from torch_jobs import programs  # noqa: E402, F401: skipped before; pytest looks for fixtures here
