"""The fixture of all tests here: tests/python/jobs.py."""
from jobs import programs  # noqa: F401: pytest looks for fixtures here
