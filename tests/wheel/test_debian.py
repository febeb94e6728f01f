"""The Debian packages: what they ask for, and that jobs and programs work out of them, unpacked beside the system."""
import os
import shutil
import subprocess

import pytest

from test_wheel import OUTSIDE

HEAP = {"WEFT_HEAP_SIZE": "8M"}


@pytest.fixture(scope="module")
def packages(build_dir, run, tmp_path_factory):
    for program in ("dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(program):
            pytest.skip(f"{program} is missing; install dpkg-dev")
    folder = tmp_path_factory.mktemp("deb")
    run("cpack", "-G", "DEB", "--config", build_dir / "CPackConfig.cmake", "-B", folder, cwd=build_dir)
    return {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}


@pytest.fixture(scope="module")
def usr(packages, run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    for package in packages.values():
        run("dpkg-deb", "-x", package, folder)
    return folder / "usr"


def test_what_they_ask_for(packages, run):
    assert set(packages) == {"weft", "libweft-dev"}
    depends = run("dpkg-deb", "-f", packages["weft"], "Depends")
    assert "libc6 (>= " in depends and "libhwloc15" in depends
    assert run("dpkg-deb", "-f", packages["libweft-dev"], "Depends").startswith("weft (= ")


def test_they_have_no_file_of_openmpi(usr):
    assert not [path.name for path in (usr / "bin").iterdir() if path.name.startswith(("osh", "shmem"))]


def test_the_folder_beside_has_every_name_of_openmpi(usr):
    theirs = {f"{family}{kind}" for family in ("osh", "shmem") for kind in ("cc", "c++", "cxx", "CC", "fort", "run")}
    names = usr / "lib" / "weft" / "bin"
    assert theirs <= {path.name for path in names.iterdir() if path.exists()}
    done = subprocess.run([names / "oshfort", "a.f90"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("oshfort: Weft has no Fortran interface")


def test_the_tools_run(usr, run):
    assert run(usr / "bin" / "weft-info").startswith("weft ")


def test_jobs_need_no_development_package_for_nvidias_nvshmem(packages, run, tmp_path):
    run("dpkg-deb", "-x", packages["weft"], tmp_path)
    assert run(tmp_path / "usr" / "bin" / "weft-nvshmem", "--plugin").startswith("export LD_PRELOAD=")
    done = subprocess.run([tmp_path / "usr" / "bin" / "weft-nvshmem", "--env"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "libweft-dev" in done.stderr


def test_an_openshmem_program_builds_and_runs(usr, run, tmp_path):
    names = usr / "lib" / "weft" / "bin"
    run(names / "oshcc", "-std=c99", OUTSIDE / "shmem_c99.c", "-o", tmp_path / "program")
    assert run(names / "oshrun", "-np", 2, tmp_path / "program", env=os.environ | HEAP) == "PE 0 of 2 has 2\n"
