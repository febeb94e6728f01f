"""The wheel that scripts/build_wheel --aarch64 makes on another machine, unpacked, and qemu-user to run what is in it."""
import os
import pathlib
import shutil
import subprocess
import zipfile

import pytest


def pytest_addoption(parser):
    parser.addoption("--aarch64-wheel", metavar="FILE", help="test this wheel instead of building one")


@pytest.fixture(scope="session")
def sysroot(project):
    return pathlib.Path(os.environ.get("WEFT_SYSROOT", project / "build" / "sysroot-aarch64"))


@pytest.fixture(scope="session")
def wheel(request, project, tmp_path_factory):
    if given := request.config.getoption("--aarch64-wheel"):
        return pathlib.Path(given).resolve()
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([project / "scripts" / "build_wheel", "--aarch64", folder], check=True, timeout=1800)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def package(wheel, tmp_path_factory):
    """A folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = pathlib.Path(archive.extract(entry, folder))
            path.chmod(entry.external_attr >> 16 or 0o644)
    return folder


@pytest.fixture(scope="session")
def emulated(sysroot):
    """emulated(PROGRAM, WORD...): the words that start a program of an aarch64 machine here."""
    qemu = shutil.which("qemu-aarch64-static") or pytest.fail("qemu-aarch64-static is missing; run scripts/setup --aarch64")
    return lambda *words: [qemu, "-L", str(sysroot), *map(str, words)]
