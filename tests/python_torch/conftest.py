"""The fixture of all tests here: torch_jobs.py, also for the tests in moe/."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
pytest.importorskip("torch", reason="torch is missing; ./test python-torch installs it into .venv-torch")

from torch_jobs import programs  # noqa: E402, F401: the path above comes first; pytest looks for fixtures here
