"""Sources that the build makes from tables (cmake/interfaces.cmake), in a small project of their own: they are there before
what includes them is compiled, and a change of a table compiles what became different, and nothing else."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = pathlib.PurePath("scripts") / "generate_interfaces"
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES C)
include(cmake/interfaces.cmake)
weft_interface(shmem {shmem})
weft_interface(nvshmem {nvshmem})
# Includes pshmem.h, which is made at build.
add_library(profiling OBJECT profiling.c)
target_include_directories(profiling PRIVATE {include} ${{weft_generated}}/include)
add_dependencies(profiling shmem_interface)
add_library(filter OBJECT ${{weft_generated}}/src/nvshmem/filter.c)
add_dependencies(filter nvshmem_interface)
"""


def files_of(interface, folder):
    """What its table gives."""
    subprocess.run([sys.executable, PROJECT / SCRIPT, "--sources", interface, "--out", folder], check=True)
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


class Probe:
    """The small project: its tables are copies, which a test may change."""

    def __init__(self, folder):
        self.source, self.binary = folder / "source", folder / "build"
        shutil.copytree(PROJECT / "scripts" / "interfaces", self.source / "scripts" / "interfaces", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PROJECT / SCRIPT, self.source / SCRIPT)
        (self.source / "cmake").mkdir()
        shutil.copy(PROJECT / "cmake" / "interfaces.cmake", self.source / "cmake")
        (self.source / "profiling.c").write_text("#include <pshmem.h>\nint probe(void);\nint probe(void) { return pshmem_my_pe(); }\n")
        files = {name: " ".join(files_of(name, folder / name)) for name in ("shmem", "nvshmem")}
        (self.source / "CMakeLists.txt").write_text(CMAKE.format(include=PROJECT / "include", **files))
        subprocess.run(["cmake", "-S", self.source, "-B", self.binary, "-G", "Ninja"], check=True, capture_output=True)

    def table(self, interface):
        return self.source / "scripts" / "interfaces" / f"{interface}_table.py"

    def build(self, status=0):
        """What it says of its steps."""
        done = subprocess.run(["cmake", "--build", self.binary, "-j", "2"], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def project_built(tmp_path_factory):
    probe = Probe(tmp_path_factory.mktemp("probe"))
    text = probe.build()
    assert "profiling.c.o" in text and "filter.c.o" in text
    return probe


@pytest.fixture
def built(project_built):
    """As it was built first; what a test does to a table is undone."""
    tables = {path: path.read_text() for path in map(project_built.table, ("shmem", "nvshmem"))}
    project_built.build()
    yield project_built
    for path, text in tables.items():
        if path.read_text() != text:
            path.write_text(text)


def test_a_second_build_does_nothing(built):
    assert "no work to do" in built.build()


def test_a_table_that_gives_the_same_compiles_nothing(built):
    os.utime(built.table("shmem"))
    text = built.build()
    assert "Writing the functions of shmem" in text and "nvshmem" not in text and ".c.o" not in text
    assert "no work to do" in built.build()


def test_a_new_function_compiles_the_files_that_it_changes(built):
    with built.table("nvshmem").open("a") as table:
        table.write('FAMILIES[0].functions.append(function("void nvshmem_probe(void)", None, "probe()"))\n')
    text = built.build()
    assert "Writing the functions of nvshmem" in text and "filter.c.o" in text and "profiling.c.o" not in text
    assert "void nvshmem_probe(void)" in (built.binary / "generated" / "src" / "nvshmem" / "filter.c").read_text()
    assert "no work to do" in built.build()


def test_a_file_that_the_build_does_not_name_is_an_error(built):
    with built.table("nvshmem").open("a") as table:
        table.write('FAMILIES.append(Family("probes", "Probes.", "api/probes", [function("void nvshmem_probe(void)", None, "probe()")]))\n')
    text = " ".join(built.build(status=1).split())
    assert "src/nvshmem/probes.cpp" in text and "correct the list of weft_interface(nvshmem ...)" in text
