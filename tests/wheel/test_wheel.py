"""The wheel in a fresh virtual environment: jobs start, and programs build on it."""
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

OUTSIDE = pathlib.Path(__file__).resolve().parents[1] / "packaging" / "outside"
PE = pathlib.Path(__file__).parent / "pe.py"
TOUR = pathlib.Path(__file__).resolve().parents[1] / "nvshmem" / "programs" / "host_tour.cpp"
ON_HOST = {"NVSHMEM_HEAP_KIND": "SYSMEM", "NVSHMEM_SYMMETRIC_SIZE": "8M"}
MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def small_heap(monkeypatch):
    monkeypatch.setenv("WEFT_HEAP_SIZE", "8M")


def assert_ring(text, pe_count):
    expected = {f"PE {pe} of {pe_count} got {(pe - 1) % pe_count}" for pe in range(pe_count)}
    assert {line for line in text.splitlines() if line.startswith("PE ")} == expected, text


def test_its_tag(wheel):
    """auditwheel gives it only to what keeps it."""
    assert wheel.name.endswith(f"-py3-none-manylinux_2_34_{os.uname().machine}.whl")


def test_its_size(wheel, request):
    if request.config.getoption("--cuda"):
        pytest.skip("the limit is for the wheel without CUDA")
    assert wheel.stat().st_size < 10 * MEBIBYTE


def test_it_brings_no_library_but_its_own(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {name for name in names if ".so" in pathlib.PurePath(name).name}
    backends = {name for name in libraries if name.startswith("weft/_nb_backend_v1.")}
    free_threaded = {name for name in libraries if name.startswith("weft/_weft.cpython-")}
    nvshmem = {f"weft/lib/weft/nvshmem/lib/{name}" for name in (
        "libnvshmem_host.so", "libnvshmem_host.so.3", "libweft_nvshmem_host.so.3",
        "nvshmem_bootstrap_uid.so", "nvshmem_bootstrap_uid.so.3", "weft_nvshmem_bootstrap_uid.so.3")}
    nvshmem |= {f"weft/lib/weft/nvshmem/transport/nvshmem_transport_libfabric.so.{number}" for number in range(3, 8)}
    nvshmem |= {"weft/lib/libweft_nvshmem_transport.so"}
    assert libraries - backends - free_threaded == {"weft/lib/libweft.so", "weft/lib/libweft.so.0", "weft/lib/libweft_moe.so", "weft/lib/libweft_moe.so.0",
                                                            "weft/_weft.abi3.so"} | nvshmem
    assert len(backends) == 5, "nanobind's backend for Python 3.11 to 3.15: scripts/nanobind_backends"


def test_no_path_of_the_machine_that_built_it_is_inside(wheel, project):
    archive = zipfile.ZipFile(wheel)
    path = str(project).encode()
    assert [name for name in archive.namelist() if path in archive.read(name)] == []


def test_weft_info(environment, run):
    assert run(environment / "weft-info").startswith("weft ")


def test_nvidias_nvshmem_gets_wefts_transport(environment, run):
    """The lines, and the files that they name; use_rails finds the same ones."""
    lines = run(environment / "weft-nvshmem", "--plugin", env=os.environ | {"LD_PRELOAD": ""}).splitlines()
    assert lines[1:] == ["export NVSHMEM_REMOTE_TRANSPORT=libfabric"]
    files = lines[0].removeprefix("export LD_PRELOAD=").split(":")
    text = "import weft.nvshmem; weft.nvshmem.use_rails(); print(open('/proc/self/maps').read())"
    maps = run(environment / "python", "-c", text)
    assert len(files) == 5 and all(f" {os.path.realpath(file)}\n" in maps for file in files)


def test_a_job_of_python_programs(environment, run):
    assert_ring(run(environment / "weft-run", "-n", 4, "--", environment / "python", PE), 4)


def test_weft_perf(environment, run):
    assert run(environment / "weft-run", "-n", 2, "--", environment / "weft-perf", "put_latency", "-b", 8, "-e", 8)


def test_weft_top_needs_no_package_for_a_table(environment, run, tmp_path):
    text = run(environment / "weft-top", "--once", "--interval", "0.1", env=os.environ | {"WEFT_LAB_DIR": str(tmp_path)})
    assert text.startswith("NIC ")


@pytest.mark.parametrize("tool, extra", [("weft-top", "weft[top]"), ("weft-plot", "weft[plot]")])
def test_a_missing_package_is_named_with_the_extra_that_has_it(environment, run, tool, extra, tmp_path):
    arguments = ["--once", "--prometheus", ":0"]
    if tool == "weft-plot":  # only drawing needs a package
        rows = tmp_path / "results.jsonl"
        rows.write_text(run(environment / "weft-run", "-n", 2, "--", environment / "weft-perf", "put_latency", "-b", 8, "-e", 8, "--json"))
        arguments = [rows, "-o", tmp_path / "figures"]
    done = subprocess.run([environment / tool, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"pip install '{extra}'" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_oshcc_and_oshrun(environment, run, tmp_path):
    run(environment / "oshcc", "-std=c99", OUTSIDE / "shmem_c99.c", "-o", tmp_path / "program")
    assert run(environment / "oshrun", "-np", 2, tmp_path / "program") == "PE 0 of 2 has 2\n"


def test_find_package(environment, run, tmp_path):
    cmake_dir = run(environment / "python", "-m", "weft", "--cmake-dir").strip()
    run("cmake", "-S", OUTSIDE, "-B", tmp_path, "-G", "Ninja", f"-Dweft_DIR={cmake_dir}", "-DWEFT_CXX_HEADER=")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "outside") == "PE 0 of 1 has 42\n"


def test_pkg_config(environment, run, tmp_path):
    folder, lib = run(environment / "python", "-m", "weft", "--pkg-config-dir", "--lib-dir").split()
    flags = run("pkg-config", "--cflags", "--libs", "weft", env=os.environ | {"PKG_CONFIG_PATH": folder}).split()
    run("cc", "-std=c11", OUTSIDE / "outside.c", "-o", tmp_path / "outside", *flags, f"-Wl,-rpath,{lib}")
    assert run(tmp_path / "outside") == "PE 0 of 1 has 42\n"


@pytest.fixture(scope="module")
def nvshmem(environment, run):
    """The prefix for NVSHMEM programs."""
    return pathlib.Path(run(environment / "weft-nvshmem", "--prefix").strip())


def test_an_nvshmem_program_builds_on_its_prefix_alone(environment, nvshmem, run, tmp_path):
    run("g++", "-std=c++17", f"-I{nvshmem}/include", TOUR, f"-L{nvshmem}/lib", "-l:libnvshmem_host.so", "-lnvshmem_device", f"-Wl,-rpath,{nvshmem}/lib",
        "-o", tmp_path / "tour")
    assert run(nvshmem / "bin" / "nvshmrun", "-np", 2, tmp_path / "tour", env=os.environ | ON_HOST) == "all well\n"
    for library in ("libnvshmem_host.so", "libnvshmem.a"):
        run("g++", "-std=c++17", f"-I{nvshmem}/include", TOUR, nvshmem / "lib" / library, "-o", tmp_path / "by_path")
    assert "[libweft_nvshmem_host.so.3]" in run("readelf", "-d", tmp_path / "tour")
    assert "NVSHMEM v3.6.5" in run(nvshmem / "bin" / "nvshmem-info")
    assert run(nvshmem / "bin" / "nvshmrun.hydra", "-n", 1, tmp_path / "tour", env=os.environ | ON_HOST) == "all well\n"


def test_who_opens_nvshmems_name_gets_the_library_that_programs_link(environment, nvshmem, run):
    text = """
import ctypes
name, linked = (ctypes.CDLL(file) for file in ("libnvshmem_host.so.3", "libweft_nvshmem_host.so.3"))
name.nvshmem_init()
print(linked.nvshmemx_init_status() == name.nvshmemx_init_status() != 0)
name.nvshmem_finalize()
"""
    assert run(environment / "python", "-c", text, env=os.environ | ON_HOST | {"LD_LIBRARY_PATH": f"{nvshmem}/lib"}) == "True\n"


@pytest.mark.parametrize("variable", ["NVSHMEM_DIR", "NVSHMEM_ROOT", "CMAKE_PREFIX_PATH"])
@pytest.mark.parametrize("is_link", [False, True], ids=["itself", "by_a_link"])
def test_cmake_finds_its_prefix_for_nvshmem_programs(environment, nvshmem, run, tmp_path, variable, is_link):
    if is_link:
        assert run(environment / "weft-nvshmem", "--prefix", tmp_path / "nvshmem").strip() == str(tmp_path / "nvshmem")
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.18)
        project(tour CXX)
        find_package(NVSHMEM 3.6 REQUIRED)
        add_executable(tour {TOUR})
        target_link_libraries(tour PRIVATE nvshmem::nvshmem nvshmem::nvshmem_bootstrap_uid)
        if(NOT EXISTS "${{NVSHMEM_INCLUDE_DIR}}/nvshmem.h")
          message(FATAL_ERROR "no NVSHMEM_INCLUDE_DIR")
        endif()
        """)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-D{variable}={tmp_path / 'nvshmem' if is_link else nvshmem}")
    run("cmake", "--build", tmp_path / "build")
    assert run(environment / "weft-run", "-n", 2, "--", tmp_path / "build" / "tour", env=os.environ | ON_HOST) == "all well\n"


def test_python_knows_the_prefix_for_nvshmem_programs_too(environment, nvshmem, run):
    assert run(environment / "python", "-m", "weft.nvshmem", "--prefix").strip() == str(nvshmem)


def test_a_link_to_the_prefix_replaces_nothing_but_a_link(environment, tmp_path):
    (tmp_path / "mine").mkdir()
    done = subprocess.run([environment / "weft-nvshmem", "--prefix", tmp_path / "mine"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "exists and is no link" in done.stderr and list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_without_cuda_it_says_in_one_line_what_is_missing(environment, nvshmem, request):
    done = subprocess.run([environment / "weft-nvshmem", "--prefix"], capture_output=True, text=True, timeout=60)
    if request.config.getoption("--cuda"):
        assert done.stderr == "" and (nvshmem / "lib" / "libnvshmem_device.ltoir").exists()
    else:
        assert "built without CUDA" in done.stderr and done.stderr.count("\n") == 1 and done.stdout == f"{nvshmem}\n"


def test_its_version_is_the_one_of_pip(environment, run):
    listed = run(environment / "python", "-m", "pip", "show", "weft")
    version = run(environment / "python", "-c", "import weft; print(weft.__version__)").strip()
    assert f"\nVersion: {version}\n" in listed


def test_a_question_that_it_does_not_know_is_one_clear_line(environment):
    done = subprocess.run([environment / "python", "-m", "weft"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "nothing asked; give one of --version" in done.stderr


def test_srun_with_pmi2(environment, tmp_path_factory):
    """In a lab with a Slurm: the wheel alone, found by its path, joins the job."""
    tests = pathlib.Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(tests / "slurm"), str(tests / "lab"), str(tests.parent / "tools" / "lab")]
    from lab_cli import Cli
    from slurm_cluster import Cluster, skip_without_slurm

    skip_without_slurm()
    folder = tmp_path_factory.mktemp("slurm")
    cli = Cli(folder / "labs")
    try:
        cli.start("--hosts", "2", "--nics", "2", "--slurm")
        cluster = Cluster(cli, folder)
        step = ["srun", "--mpi=pmi2", "-N", 2, "--ntasks-per-node=2"]
        assert_ring(cluster.ok(*step, environment / "python", PE), 4)
        assert_ring(cluster.ok(*step, environment / "python", PE.with_name("ring.py")), 4)
    finally:
        cli.end_all()
