"""The fixtures and options of the project's Python tests (tests/project_fixtures.py), and the modules that start jobs."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS), *(str(TESTS / folder) for folder in ("python", "python_torch", "loom"))]
pytest_plugins = ["project_fixtures"]
