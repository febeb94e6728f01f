"""The fixtures of all tests here: loom_jobs.py, also for the tests in moe/."""
from loom_jobs import environment, loom, namespaces, start  # noqa: F401: pytest looks for fixtures here
