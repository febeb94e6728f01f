"""The wheel that scripts/build_wheel makes, installed in a fresh virtual environment without a network."""
import pathlib
import subprocess
import sys

import pytest


def pytest_addoption(parser):
    parser.addoption("--wheel", metavar="FILE", help="test this wheel instead of building one")
    parser.addoption("--cuda", action="store_true", help="the wheel is, or is to be, one for GPUs")


    parser.addoption("--torch", action="store_true", help="also the tests of weft.torch, with the torch of .venv-torch")


def pytest_ignore_collect(collection_path, config):
    option = {"test_cuda.py": "--cuda", "test_torch.py": "--torch"}.get(collection_path.name)
    return True if option is not None and not config.getoption(option, default=False) else None


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """run(WORD...): the output of a command that has to succeed."""
    return output


@pytest.fixture(scope="session")
def wheel(request, project, tmp_path_factory):
    if given := request.config.getoption("--wheel"):
        return pathlib.Path(given).resolve()
    folder = tmp_path_factory.mktemp("dist")
    options = ["--cuda"] if request.config.getoption("--cuda") else []
    subprocess.run([project / "scripts" / "build_wheel", *options, folder], check=True, timeout=1800)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """The bin folder of the environment."""
    folder = tmp_path_factory.mktemp("venv")
    output(sys.executable, "-m", "venv", folder)
    output(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return folder / "bin"
