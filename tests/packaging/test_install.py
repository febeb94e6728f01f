"""An outside project finds the installed Weft by CMake and by pkg-config, compiles in strict C11 and
runs; the library exports its C interface and nothing else."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

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
    return names - {"WEFT_0", "WEFT_MOE_0"}


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


def test_nvidias_nvshmem_finds_wefts_transport_in_the_installation(installed):
    lines = output(installed / "bin" / "weft-nvshmem", "--plugin", LD_PRELOAD="").splitlines()
    stubs = [pathlib.Path(path) for path in lines[0].removeprefix("export LD_PRELOAD=").split(":")]
    assert [stub.name for stub in stubs] == [f"nvshmem_transport_libfabric.so.{number}" for number in range(3, 8)]
    (plugin,) = {(stub.parent / "../../../libweft_nvshmem_transport.so").resolve() for stub in stubs}  # as src/plugins/nvshmem/stub.c says
    assert plugin.is_relative_to(installed) and exported(plugin) == {"weft_nvshmemt_init"}


def files_below(folder):
    """The text of each file, by its path; not of what links lead to."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*")
            if path.is_file() and not any(parent.is_symlink() for parent in (path, *path.parents) if parent.is_relative_to(folder))}


def test_the_installed_headers_are_those_of_the_tree_and_the_profiling_names(installed, project):
    tree = files_below(project / "include") | files_below(project / "moe" / "include")
    front_door = {name.removeprefix("nvshmem/"): tree.pop(name) for name in list(tree) if name.startswith("nvshmem/")}
    found = files_below(installed / "include")
    profiling = found.pop("pshmem.h")
    assert found == tree
    assert files_below(installed / "lib" / "weft" / "nvshmem" / "include") == front_door
    functions = [line for line in found["shmem.h"].splitlines() if line.startswith("WEFT_EXPORT ") and " shmem_" in line.replace("*", " ")]
    assert [line for line in profiling.splitlines() if line.startswith("WEFT_EXPORT ")] == [
        re.sub(r"\bshmem_(?=\w+\()", "pshmem_", line) for line in functions]


def test_what_is_exported_is_what_the_headers_declare(installed, library):
    """Each way: a source that a build leaves out takes its functions along."""
    texts = files_below(installed / "include").values()
    declared = {name for text in texts for name in re.findall(r"^WEFT_EXPORT [^;(]*?(\w+)\(", text, re.MULTILINE)}
    assert len(declared) > 4000 and exported(library) | exported(library.with_name("libweft_moe.so")) == declared
    nvshmem = installed / "lib" / "weft" / "nvshmem"
    texts = [path.read_text() for path in (nvshmem / "include" / "weft_nvshmem" / "host").glob("*.h")]
    declared = {name for text in texts for name in re.findall(r"^\w.*?\b(\w+)\(.*\);$", text, re.MULTILINE)}
    others = re.compile("weft_nvshmem_module_|nvshmemid_")  # called by binaries, not by programs' source (modules.cpp)
    found = {name for name in exported(nvshmem / "lib" / "libweft_nvshmem_host.so.3") if not others.match(name)}
    assert len(declared) > 1400 and found - {"WEFT_NVSHMEM_3"} == declared


C_NAMES = ("oshcc", "shmemcc")
CXX_NAMES = ("oshc++", "oshcxx", "oshCC", "shmemc++", "shmemcxx", "shmemCC")
FORTRAN_NAMES = ("oshfort", "shmemfort")
RUN_NAMES = ("oshrun", "shmemrun")


@pytest.mark.parametrize("compiler, flags, source", [
    ("oshcc", ["-std=c99", "-Wpedantic"], "shmem_c99.c"), ("weft-cc", STRICT, "shmem_c11.c"),
    ("oshc++", ["-Wall", "-Wextra", "-Wpedantic", "-Werror"], "shmem_cxx.cpp")])
def test_an_openshmem_program_builds_with_the_compiler_wrappers(installed, library, tmp_path, compiler, flags, source):
    output(installed / "bin" / compiler, *flags, OUTSIDE / source, "-o", tmp_path / "program")
    run_shmem(tmp_path / "program", installed, library)


def test_every_name_that_openmpi_has_for_openshmem_is_here_as_well(installed, project):
    theirs = {f"{family}{kind}" for family in ("osh", "shmem") for kind in ("cc", "c++", "cxx", "CC", "fort", "run")}
    assert theirs == {*C_NAMES, *CXX_NAMES, *FORTRAN_NAMES, *RUN_NAMES}
    scripts = tomllib.loads((project / "pyproject.toml").read_text())["project"]["scripts"]
    assert theirs <= set(scripts) and theirs <= {path.name for path in (installed / "bin").iterdir()}
    for name in theirs - set(FORTRAN_NAMES) - set(RUN_NAMES):
        assert output(installed / "bin" / name, "-showme:link").endswith("-lweft\n")
    for name in RUN_NAMES:
        assert output(installed / "bin" / name, "--version").startswith("weft-run ")


@pytest.mark.parametrize("name", FORTRAN_NAMES)
@pytest.mark.parametrize("words", [[], ["-showme"], ["-c", "program.f90"]])
def test_the_wrapper_for_fortran_refuses_and_says_what_to_do(installed, name, words):
    done = subprocess.run([installed / "bin" / name, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"{name}: Weft has no Fortran interface") and "iso_c_binding" in done.stderr


def test_the_fortran_program_of_the_documentation_builds_and_runs(installed, library, project, tmp_path):
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    text = (project / "docs" / "OPENSHMEM.md").read_text()
    (tmp_path / "hello.f90").write_text(text.split("```fortran\n")[1].split("```")[0])
    flags = output(installed / "bin" / "oshcc", "-showme:link").split()
    output("gfortran", "-J", tmp_path, tmp_path / "hello.f90", *flags, "-o", tmp_path / "hello")
    lines = output(installed / "bin" / "oshrun", "-np", "2", tmp_path / "hello", LD_LIBRARY_PATH=str(library.parent),
                   SHMEM_SYMMETRIC_SIZE="1M").splitlines()
    assert sorted(" ".join(line.split()) for line in lines) == ["PE 0 has 1", "PE 1 has 0"]


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


def test_experts_are_in_a_library_of_their_own(installed, library):
    (experts,) = installed.rglob("libweft_moe.so")
    names = exported(experts)
    assert "weft_moe_create" in names and all(name.startswith("weft_moe_") for name in names)
    assert not [name for name in exported(library) if name.startswith("weft_moe_")]
    needed = output("readelf", "--dynamic", experts)
    assert "[libweft.so.0]" in needed


def run_experts(program, library):
    lines = output(program, LD_LIBRARY_PATH=str(library.parent)).splitlines()
    assert lines[0] == "-1" and lines[1].startswith("weft_moe_memory_bytes: "), lines


@pytest.mark.parametrize("tool", ["pkg-config", "weft-cc"])
def test_an_outside_program_of_experts_builds(installed, library, tmp_path, tool):
    if tool == "pkg-config":
        (folder,) = {path.parent for path in installed.rglob("weft-moe.pc")}
        command = ["cc", *STRICT, OUTSIDE / "moe.c", *output(tool, "--cflags", "--libs", "weft-moe", PKG_CONFIG_PATH=str(folder)).split()]
    else:
        command = [installed / "bin" / tool, *STRICT, OUTSIDE / "moe.c"]
    output(*command, "-o", tmp_path / "experts")
    run_experts(tmp_path / "experts", library)


def test_an_outside_project_builds_through_cmake(installed, library, tmp_path):
    header = installed / "include" / "weft" / "weft.hpp"
    output("cmake", "-S", OUTSIDE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}",
           f"-DWEFT_CXX_HEADER={header}", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    output("cmake", "--build", tmp_path, "--parallel", "2")
    run_outside(tmp_path / "outside", library)
    run_shmem(tmp_path / "outside_shmem", installed, library)
    run_experts(tmp_path / "outside_moe", library)
    assert "libweft_moe" not in output("readelf", "--dynamic", tmp_path / "outside")


def test_an_outside_program_builds_through_pkg_config(installed, library, tmp_path):
    (folder,) = {path.parent for path in installed.rglob("weft.pc")}
    flags = output("pkg-config", "--cflags", "--libs", "weft", PKG_CONFIG_PATH=str(folder)).split()
    output("cc", *STRICT, OUTSIDE / "outside.c", "-o", tmp_path / "outside", *flags)
    run_outside(tmp_path / "outside", library)
