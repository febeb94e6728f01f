"""The fixture of all tests here: jobs.py, also for the tests in moe/."""
from jobs import programs  # noqa: F401: pytest looks for fixtures here
