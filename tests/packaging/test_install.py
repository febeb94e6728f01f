"""An outside project finds the installed Weft by CMake and by pkg-config, compiles in strict C11 and
runs; the library exports its C interface and nothing else."""
import os
import pathlib
import shlex
import subprocess

import pytest

OUTSIDE = pathlib.Path(__file__).parent / "outside"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def output(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | environment)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def exported(library):
    lines = output("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    names = {line.split()[0].split("@")[0] for line in lines}
    return names - {"WEFT_0"}


@pytest.fixture(scope="module")
def installed(build_dir, tmp_path_factory):
    """The prefix of a fresh installation, moved once: nothing in it may remember where it was."""
    before = tmp_path_factory.mktemp("install") / "before"
    output("cmake", "--install", build_dir, "--prefix", before)
    return before.rename(before.parent / "after")


@pytest.fixture(scope="module")
def library(installed):
    (found,) = installed.rglob("libweft.so")
    if "weft_init" not in exported(found):
        pytest.skip("libweft has no weft_init yet")
    return found


def run_outside(program, library):
    text = output(program, LD_LIBRARY_PATH=str(library.parent), WEFT_HEAP_SIZE="1M")
    assert text == "PE 0 of 1 has 42\n"


def test_only_the_c_interface_is_exported(library):
    assert [name for name in exported(library) if not name.startswith("weft_")] == []


def test_an_outside_project_builds_through_cmake(installed, library, tmp_path):
    header = installed / "include" / "weft" / "weft.hpp"
    output("cmake", "-S", OUTSIDE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}",
           f"-DWEFT_CXX_HEADER={header}", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    output("cmake", "--build", tmp_path, "--parallel", "2")
    run_outside(tmp_path / "outside", library)


def test_an_outside_program_builds_through_pkg_config(installed, library, tmp_path):
    (folder,) = {path.parent for path in installed.rglob("weft.pc")}
    flags = output("pkg-config", "--cflags", "--libs", "weft", PKG_CONFIG_PATH=str(folder)).split()
    output("cc", *STRICT, OUTSIDE / "outside.c", "-o", tmp_path / "outside", *flags)
    run_outside(tmp_path / "outside", library)
