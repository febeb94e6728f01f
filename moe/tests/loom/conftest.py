"""The fixtures of all tests here: tests/loom/loom_jobs.py."""
from loom_jobs import environment, loom, start  # noqa: F401: pytest looks for fixtures here
