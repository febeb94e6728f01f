"""The wheel for aarch64, built on another machine: what it is made of, and that it runs under qemu-user."""
import os
import pathlib
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

RING = pathlib.Path(__file__).resolve().parents[1] / "wheel" / "ring.py"
ELF = b"\x7fELF"
# manylinux_2_34 promises no more.
GLIBC = (2, 34)


def output(command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env=os.environ | {"WEFT_HEAP_SIZE": "8M", **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def binaries(package):
    """Programs and libraries; links among them once."""
    files = [path for path in package.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.read_bytes()[:4] == ELF]


def test_its_tag(wheel):
    """auditwheel gives it only to what keeps it."""
    assert wheel.name.endswith("-py3-none-manylinux_2_34_aarch64.whl")


def test_all_that_is_compiled_is_for_aarch64(package):
    found = binaries(package)
    assert {"weft-run", "weft-info", "weft-perf", "_weft.abi3.so"} <= {path.name for path in found}
    for path in found:
        assert re.search(r"Machine: +AArch64", output(["readelf", "--file-header", path])), path


def test_it_has_the_backends_of_nanobind_for_aarch64(package):
    names = sorted(path.name for path in (package / "weft").glob("_nb_backend_v1.*"))
    assert len(names) == 5 and all("aarch64" in name for name in names), names


def test_nothing_is_linked_to_libfabric_or_libpmix(package):
    for path in binaries(package):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output(["readelf", "--dynamic", path]))
        assert not [name for name in needed if name.startswith(("libfabric", "libpmix", "libfmt", "libhwloc", "libsodium"))], path


def test_symbols_are_of_versions_that_the_tag_allows(package):
    versions = set()
    for path in binaries(package):
        text = output(["readelf", "--version-info", path])
        versions |= {tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([\d.]+)", text)}
    assert versions and max(versions) <= GLIBC, max(versions)


def test_weft_info(package, emulated):
    assert output(emulated(package / "weft" / "bin" / "weft-info")).startswith("weft ")


def free_port():
    """The port behind is the one that PE 0 takes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1] - 1


def job_of_two(command, **variables):
    """As torchrun starts its workers. weft-run needs PR_SET_CHILD_SUBREAPER, which qemu-user 7.2 refuses."""
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
              "TORCHELASTIC_RUN_ID": "test", "WEFT_JOB_SECRET": "of this test", **variables}
    with ThreadPoolExecutor() as pool:
        pes = [pool.submit(output, command, RANK=str(rank), LOCAL_RANK=str(rank), **common) for rank in range(2)]
    return "".join(pe.result() for pe in pes)


def test_weft_run_says_how_it_is_used(package, emulated):
    assert "weft-run" in output(emulated(package / "weft" / "bin" / "weft-run", "--help"))


def test_a_job_of_two_pes(package, emulated):
    perf = emulated(package / "weft" / "bin" / "weft-perf", "put_latency", "-b", 8, "-e", 8)
    assert re.search(r"^ *8\b", job_of_two(perf), re.MULTILINE)


def test_a_job_of_python_programs(package, emulated, sysroot):
    python = sysroot / "usr" / "bin" / "python3.11"
    if not python.exists():
        pytest.skip(f"{python} is missing: a sysroot of your own")
    text = job_of_two(emulated(python, RING), PYTHONPATH=str(package), PYTHONHOME=str(sysroot / "usr"))
    assert sorted(text.splitlines()) == ["PE 0 of 2 got 1", "PE 1 of 2 got 0"]
