"""What these tests share: weft-sim, and its rows as dictionaries."""
import csv
import pathlib
import subprocess

import pytest

TABLES = pathlib.Path(__file__).resolve().parent / "tables"


@pytest.fixture
def tables():
    return TABLES


@pytest.fixture
def weft_sim(bin_dir):
    """Runs it; returns (status, stdout, stderr)."""
    def run(*words):
        done = subprocess.run([bin_dir / "weft-sim", *map(str, words)], capture_output=True, text=True, timeout=240, check=False)
        return done.returncode, done.stdout, done.stderr
    return run


@pytest.fixture
def rows(weft_sim):
    """The rows that it prints with --csv."""
    def run(*words):
        status, text, errors = weft_sim(*words, "--csv")
        assert status == 0, errors
        return list(csv.DictReader(text.splitlines()))
    return run


@pytest.fixture
def refused(weft_sim):
    """Its one line about bad input."""
    def run(*words):
        status, text, errors = weft_sim(*words)
        assert (status, text) == (2, ""), (status, text, errors)
        assert errors.startswith("weft-sim: ") and errors.count("\n") == 1, errors
        return errors
    return run
