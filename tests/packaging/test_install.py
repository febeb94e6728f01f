"""An outside project finds the installed Weft by CMake and by pkg-config, compiles in strict C11 and
runs; the library exports its C interface and nothing else."""
import os
import pathlib
import shlex
import subprocess
import sys

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


def run_shmem(program, installed, library):
    text = output(installed / "bin" / "oshrun", "-np", "2", program, LD_LIBRARY_PATH=str(library.parent),
                  SHMEM_SYMMETRIC_SIZE="1M")
    assert text == "PE 0 of 2 has 2\n"


def test_an_nvshmem_program_builds_against_the_installed_prefix(installed, library, tmp_path):
    if not (installed / "bin" / "weft-nvshmem").exists():
        pytest.skip("this build has no NVSHMEM prefix")
    prefix = pathlib.Path(output(installed / "bin" / "weft-nvshmem", "--prefix").strip())
    tour = pathlib.Path(__file__).parents[1] / "nvshmem" / "programs" / "host_tour.cpp"
    output("g++", "-std=c++17", f"-I{prefix}/include", tour, f"-L{prefix}/lib", "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-o", tmp_path / "tour")
    assert output(prefix / "bin" / "nvshmrun", "-np", "2", tmp_path / "tour", NVSHMEM_HEAP_KIND="SYSMEM", NVSHMEM_SYMMETRIC_SIZE="8M") == "all well\n"
    assert "NVSHMEM v3.6.5" in output(prefix / "bin" / "nvshmem-info")
    assert (prefix / "NVSHMEMConfig.cmake").is_symlink() and (prefix / "include" / "weft" / "weft.h").exists()
    assert not list((installed / "include").rglob("nvshmem.h"))


@pytest.mark.parametrize("compiler, flags, source", [
    ("oshcc", ["-std=c99", "-Wpedantic"], "shmem_c99.c"), ("weft-cc", STRICT, "shmem_c11.c"),
    ("oshc++", ["-Wall", "-Wextra", "-Wpedantic", "-Werror"], "shmem_cxx.cpp")])
def test_an_openshmem_program_builds_with_the_compiler_wrappers(installed, library, tmp_path, compiler, flags, source):
    output(installed / "bin" / compiler, *flags, OUTSIDE / source, "-o", tmp_path / "program")
    run_shmem(tmp_path / "program", installed, library)


def test_weft_top_runs_from_where_it_was_installed(installed, tmp_path):
    environment = {"WEFT_LAB_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    table = output(sys.executable, installed / "bin" / "weft-top", "--once", "--interval", "0.1", **environment)
    assert table.startswith("NIC ") and "\nlo " in table


def test_weft_plot_runs_from_where_it_was_installed(installed):
    assert "usage: weft-plot" in output(sys.executable, installed / "bin" / "weft-plot", "--help")


def test_a_build_without_all_tools_is_installed_and_what_it_lacks_is_named(build_dir, tmp_path):
    script = tmp_path / "install.cmake"
    rules = (build_dir / "cmake_install.cmake").read_text()
    script.write_text(rules.replace("/bin/weft-info", "/bin/weft-unbuilt"))
    done = subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}", "-P", script], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "weft-info is not built, so it is not installed; build everything" in " ".join(done.stderr.split())
    assert (tmp_path / "prefix" / "bin" / "weft-run").exists()


def test_a_compiler_wrapper_shows_its_command(installed):
    shown = output(installed / "bin" / "oshcc", "-showme", "a.c").split()
    assert shown[0] == "cc" and "a.c" in shown and shown[-1] == "-lweft"


def test_an_openshmem_program_builds_through_pkg_config(installed, library, tmp_path):
    (folder,) = {path.parent for path in installed.rglob("weft-shmem.pc")}
    flags = output("pkg-config", "--cflags", "--libs", "weft-shmem", PKG_CONFIG_PATH=str(folder)).split()
    output("cc", *STRICT, OUTSIDE / "shmem_c11.c", "-o", tmp_path / "program", *flags)
    run_shmem(tmp_path / "program", installed, library)


def test_every_function_is_there_under_its_profiling_name(library):
    names = exported(library)
    assert {f"p{name}" for name in names if name.startswith("shmem_")} == {
        name for name in names if name.startswith("pshmem_")}


def test_only_the_c_interface_is_exported(library):
    oldest = {"start_pes", "_my_pe", "_num_pes", "shmalloc", "shmemalign", "shrealloc", "shfree"}
    others = {name for name in exported(library) if not name.startswith(("weft_", "shmem_", "pshmem_"))}
    assert others <= oldest


def test_an_outside_project_builds_through_cmake(installed, library, tmp_path):
    header = installed / "include" / "weft" / "weft.hpp"
    output("cmake", "-S", OUTSIDE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}",
           f"-DWEFT_CXX_HEADER={header}", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    output("cmake", "--build", tmp_path, "--parallel", "2")
    run_outside(tmp_path / "outside", library)
    run_shmem(tmp_path / "outside_shmem", installed, library)


def test_an_outside_program_builds_through_pkg_config(installed, library, tmp_path):
    (folder,) = {path.parent for path in installed.rglob("weft.pc")}
    flags = output("pkg-config", "--cflags", "--libs", "weft", PKG_CONFIG_PATH=str(folder)).split()
    output("cc", *STRICT, OUTSIDE / "outside.c", "-o", tmp_path / "outside", *flags)
    run_outside(tmp_path / "outside", library)
