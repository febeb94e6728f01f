"""weft.nvshmem.use_rails: an NVSHMEM that this process loads later takes Weft's transport."""
import sys

import pytest

import emulated_host
from nvshmem_runs import run, well

PLAIN = {"LD_PRELOAD": "", "NVSHMEM_REMOTE_TRANSPORT": "", "NVSHMEM_IB_ENABLE_IBGDA": ""}
LOAD = "theirs = ctypes.CDLL(sys.argv[1])\n"
USE = "weft.nvshmem.use_rails()\n"
INIT = "print(theirs.emulated_init(7), theirs.emulated_init(3))\n"


@pytest.fixture
def package(project, bin_dir, tmp_path):
    """Weft's package with an installation below it, as a wheel has it."""
    weft = tmp_path / "site" / "weft"
    weft.mkdir(parents=True)
    for entry in (project / "python" / "weft").iterdir():
        (weft / entry.name).symlink_to(entry)
    (weft / "version.py").write_text('VERSION = "0"\n')
    emulated_host.installation(weft / "prefix", bin_dir)
    (weft / "lib").symlink_to(weft / "prefix" / "lib")
    return weft


@pytest.fixture
def python(package, tmp_path):
    """python(text): a program that is given the path of an emulated host library."""
    host = emulated_host.host(tmp_path / "theirs")

    def start(text, **variables):
        return sys.executable, "-c", "import ctypes, os, sys\nimport weft.nvshmem\n" + text, host, {"PYTHONPATH": str(package.parent), **PLAIN, **variables}
    return start


def ok(command):
    *words, variables = command
    return well(*words, **variables)


def refused(command):
    """The sentence of the exception, which is a RuntimeError."""
    *words, variables = command
    words[2] = f"import traceback\ntry:\n  exec({words[2]!r})\nexcept RuntimeError as error:\n  print(error)\n"
    done = run(*words, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("order", [USE + LOAD, LOAD + USE, USE + USE + LOAD], ids=["before the host library", "after it", "twice"])
def test_nvshmem_takes_ours_when_it_is_initialized_later(python, order):
    assert ok(python(order + INIT + "print(os.environ['NVSHMEM_REMOTE_TRANSPORT'])")) == "107 103\nlibfabric\n"


def test_without_it_nvshmem_takes_its_own(python):
    assert ok(python(LOAD + INIT)) == "1007 1003\n"


def test_the_environment_of_other_programs_stays(python):
    assert ok(python(USE + "print(repr(os.environ['LD_PRELOAD']))")) == "''\n"


def test_it_is_too_late_once_a_transport_is_loaded(python):
    said = refused(python(LOAD + INIT + USE))
    assert said.startswith("weft.nvshmem.use_rails: ") and "/theirs/nvshmem_transport_libfabric.so." in said
    assert said.endswith("is loaded already; call use_rails before NVSHMEM is initialized")


def test_ibgda_is_refused(python):
    assert "NVSHMEM_IB_ENABLE_IBGDA is on" in refused(python(USE, NVSHMEM_IB_ENABLE_IBGDA="1"))


@pytest.mark.parametrize("name", ["libweft_nvshmem_transport.so", "weft/nvshmem/transport/nvshmem_transport_libfabric.so.4"])
def test_an_installation_that_lacks_a_file_is_refused(python, package, name):
    (package / "lib" / name).unlink()
    assert refused(python(USE)).endswith(f"/{name} is missing; install Weft again")
