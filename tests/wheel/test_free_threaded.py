"""The wheel with a module for a Python without a GIL: FREE_THREADED_PYTHON names one, or it is on PATH (python3.13t, python3.14t).
It has nanobind, with which the module is built, and numpy: PYTHON -m pip install nanobind numpy."""
import os
import subprocess
import sys

import pytest

from test_wheel import assert_ring

PROGRAM = """
import sys
assert not sys._is_gil_enabled()
import weft
with weft.init() as job:
    array = weft.zeros(4, "int64")
    weft.put(array, array, 0)
    weft.barrier_all()
    print("with" if sys._is_gil_enabled() else "without", "a GIL")
"""


@pytest.fixture(scope="module")
def python(wheel, free_threaded_python, tmp_path_factory, run):
    """Of an environment that has the wheel, and numpy of the interpreter."""
    folder = tmp_path_factory.mktemp("free-threaded")
    run(free_threaded_python, "-m", "venv", "--system-site-packages", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return folder / "bin" / "python"


def test_the_import_does_not_bring_the_gil_back(python, run):
    """Without -X gil=0: a module that does not say that it can do without would bring it back, with a warning."""
    assert run(python, "-W", "error", "-c", PROGRAM, env=os.environ | {"WEFT_HEAP_SIZE": "8M"}) == "without a GIL\n"


def test_the_doctor_says_so(python, run):
    assert " without a GIL, " in run(python, "-m", "weft.doctor", env=os.environ | {"WEFT_HEAP_SIZE": "8M"}).splitlines()[0]


def test_a_job(python, run, project):
    ring = project / "tests" / "wheel" / "ring.py"
    assert_ring(run(python.parent / "weft-run", "-n", 4, "--", python, ring, env=os.environ | {"WEFT_HEAP_SIZE": "8M"}), 4)


def test_what_the_build_passes_it_passes(python, project, tmp_path):
    variables = os.environ | {"PYTHON_WITH_WEFT": str(python), "PYTHON_GIL": "0"}
    done = subprocess.run([sys.executable, "-m", "pytest", project / "tests" / "python", "--quiet", "-p", "no:cacheprovider",
                           "--basetemp", tmp_path / "pytest"], env=variables, capture_output=True,
                          text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
