"""The wheel that scripts/build_wheel makes, installed in a fresh virtual environment without a network."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

LIMIT_S = 5400
"""For a wheel with CUDA: kernels for several GPUs take half an hour on two cores without a compiler cache."""


def pytest_addoption(parser):
    parser.addoption("--wheel", metavar="FILE", help="test this wheel instead of building one")
    parser.addoption("--cuda", action="store_true", help="the wheel is, or is to be, one for GPUs")
    parser.addoption("--torch", action="store_true", help="also the tests of weft.torch, with the torch of .venv-torch")


def pytest_ignore_collect(collection_path, config):
    """test_*_cuda.py and test_*_torch.py are read only with the option of that name."""
    option = collection_path.stem.rpartition("_")[2]
    return True if option in {"cuda", "torch"} and not config.getoption(f"--{option}", default=False) else None


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """run(WORD...): the output of a command that has to succeed."""
    return output


def free_threaded():
    """A Python without a GIL, or None; one that cannot build and test the module is None too, with the reason."""
    found = os.environ.get("FREE_THREADED_PYTHON") or shutil.which("python3.14t") or shutil.which("python3.13t")
    if found is None:
        return None, "no free-threaded Python is on PATH; FREE_THREADED_PYTHON names one elsewhere"
    asked = subprocess.run([found, "-c", "import sys, nanobind, numpy; sys.exit(sys._is_gil_enabled())"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        return None, f"{found} has a GIL, or no nanobind and numpy ({found} -m pip install nanobind numpy): {asked.stderr[-200:]}"
    return found, ""


@pytest.fixture(scope="session")
def free_threaded_python():
    found, why = free_threaded()
    return found or pytest.skip(why)


@pytest.fixture(scope="session")
def wheel(request, project, tmp_path_factory):
    if given := request.config.getoption("--wheel"):
        return pathlib.Path(given).resolve()
    folder = tmp_path_factory.mktemp("dist")
    options = ["--cuda"] if request.config.getoption("--cuda") else []
    if python := free_threaded()[0]:
        options += ["--free-threaded", python]
    subprocess.run([project / "scripts" / "build_wheel", *options, folder], check=True, timeout=LIMIT_S)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """The bin folder of the environment."""
    folder = tmp_path_factory.mktemp("venv")
    output(sys.executable, "-m", "venv", folder)
    output(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return folder / "bin"
