"""The fixtures and options that all Python tests share: project_fixtures.py, also for the tests in moe/."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
pytest_plugins = ["project_fixtures"]
