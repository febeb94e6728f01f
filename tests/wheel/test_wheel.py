"""The wheel in a fresh virtual environment: jobs start, and programs build on it."""
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

OUTSIDE = pathlib.Path(__file__).resolve().parents[1] / "packaging" / "outside"
PE = pathlib.Path(__file__).parent / "pe.py"
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
    assert libraries - backends - free_threaded == {"weft/lib/libweft.so", "weft/lib/libweft.so.0", "weft/_weft.abi3.so"}
    assert len(backends) == 5, "nanobind's backend for Python 3.11 to 3.15: scripts/nanobind_backends"


def test_no_path_of_the_machine_that_built_it_is_inside(wheel, project):
    archive = zipfile.ZipFile(wheel)
    path = str(project).encode()
    assert [name for name in archive.namelist() if path in archive.read(name)] == []


def test_weft_info(environment, run):
    assert run(environment / "weft-info").startswith("weft ")


def test_a_job_of_python_programs(environment, run):
    assert_ring(run(environment / "weft-run", "-n", 4, "--", environment / "python", PE), 4)


def test_weft_perf(environment, run):
    assert run(environment / "weft-run", "-n", 2, "--", environment / "weft-perf", "put_latency", "-b", 8, "-e", 8)


def test_weft_top_needs_no_package_for_a_table(environment, run, tmp_path):
    text = run(environment / "weft-top", "--once", "--interval", "0.1", env=os.environ | {"WEFT_LAB_DIR": str(tmp_path)})
    assert text.startswith("NIC ")


@pytest.mark.parametrize("tool, extra", [("weft-top", "weft[top]"), ("weft-plot", "weft[plot]")])
def test_a_missing_package_is_named_with_the_extra_that_has_it(environment, tool, extra, tmp_path):
    arguments = ["--once", "--prometheus", ":0"] if tool == "weft-top" else ["--help"]
    done = subprocess.run([environment / tool, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"pip install '{extra}'" in done.stderr and done.stderr.count("\n") == 1


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
