"""An OpenSHMEM program built with the build tree's oshcc passes with several PEs, under oshrun and under mpirun,
and what it does wrong ends it with one sentence that names the function."""
import pathlib
import shutil
import subprocess

import pytest

TOUR = pathlib.Path(__file__).parent / "shmem_tour.c"


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def build(bin_dir, tmp_path_factory):
    def compiled(name, *flags):
        program = tmp_path_factory.mktemp(name) / name
        done = run(bin_dir / "oshcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, TOUR, "-o", program)
        assert done.returncode == 0, done.stderr
        return program
    return compiled


@pytest.mark.parametrize("pes", [1, 2, 3, 5])
def test_the_tour_passes(build, bin_dir, pes):
    done = run(bin_dir / "oshrun", "-np", pes, build("tour"))
    assert (done.returncode, done.stdout) == (0, "Weft 0.1\n"), done.stderr


@pytest.mark.parametrize("words, sentence", [
    (["-np"], "--pe-count: 1 required UINT missing"), (["--no-such-option"], "no option --no-such-option"), ([], "no command")])
def test_oshrun_without_a_value_or_a_program_says_so(bin_dir, words, sentence):
    done = run(bin_dir / "oshrun", *words)
    assert done.returncode == 2 and done.stderr.startswith("weft-run: ") and sentence in done.stderr


def test_a_collective_that_returns_an_error_is_named_once(build, bin_dir):
    done = run(bin_dir / "oshrun", "-np", 1, build("collective", "-DWRONG_COLLECTIVE"))
    assert "shmem_long_sum_reduce: address 0x" in done.stdout and "weft_" not in done.stdout


def test_an_error_that_is_returned_is_said_once_for_each_call(build, bin_dir):
    done = run(bin_dir / "oshrun", "-np", 2, build("twice", "-DWRONG_TWICE"))
    for pe in (0, 1):
        lines = [line for line in done.stderr.splitlines() if f"PE {pe}:" in line]
        assert sum("shmem_long_sum_inscan: not a team" in line and "use SHMEM_TEAM_WORLD" in line for line in lines) == 1
        assert sum("shmem_long_broadcast: there is no PE 2 in the team; its PEs are 0 to 1" in line for line in lines) == 1
        assert sum("shmem_long_broadcast: there is no PE -1" in line for line in lines) == 1
    assert "error: shmem_team_split_strided" not in done.stderr and "weft_" not in done.stderr


def test_the_tour_passes_between_nodes(build, bin_dir):
    done = run(bin_dir / "weft-run", "-n", 4, "--node-size", 2, "--env", "WEFT_PROVIDER=tcp", "--", build("tour"))
    assert (done.returncode, done.stdout) == (0, "Weft 0.1\n"), done.stderr


@pytest.mark.parametrize("setting, text", [
    ("SHMEM_VERSION=1", "OpenSHMEM 1.6 on Weft"), ("SHMEM_INFO=1", "SHMEM_SYMMETRIC_SIZE  bytes")])
def test_switches_of_the_environment_say_something_once(build, bin_dir, setting, text):
    tour = build("switches")
    silent = run(bin_dir / "weft-run", "-n", 2, "--", tour)
    loud = run(bin_dir / "weft-run", "-n", 2, "--env", setting, "--", tour)
    assert (loud.returncode, loud.stdout) == (0, "Weft 0.1\n") and text not in silent.stderr
    assert loud.stderr.count(text) == 1


def test_a_symmetric_size_that_is_none_is_refused_by_name(build, bin_dir):
    tour = build("sizes")
    assert run(bin_dir / "weft-run", "-n", 1, "--env", "SHMEM_SYMMETRIC_SIZE=1.5M", "--", tour).returncode == 0
    done = run(bin_dir / "weft-run", "-n", 1, "--env", "SHMEM_SYMMETRIC_SIZE=plenty", "--", tour)
    assert done.returncode == 1
    assert "shmem_init_thread: SHMEM_SYMMETRIC_SIZE=plenty: 'plenty' is not a size; write for example" in done.stderr
    assert done.stderr.count("is not a size") == 1


def test_a_program_that_only_returns_is_finalized(build, bin_dir):
    assert run(bin_dir / "oshrun", "-np", 2, build("returns", "-DRETURNS")).returncode == 0


@pytest.mark.parametrize("mistake, sentence", [
    ("-DWRONG_ADDRESS", "shmem_int_p: address 0x"),
    ("-DWRONG_ADDRESS", "use memory from shmem_malloc, or a global or static variable\n"),
    ("-DWRONG_SET", "shmem_barrier: the active set (start 0, log stride 0, size 1) does not hold PE 1, which calls it; only the PEs of"),
    ("-DWRONG_COLLECTIVE", " shmem_broadcast64: address 0x"), ("-DWRONG_PE", "shmem_int_p: there is no PE 2; PEs are 0 to 1")])
def test_a_mistake_is_named_as_the_user_called_it(build, bin_dir, mistake, sentence):
    done = run(bin_dir / "oshrun", "-np", 2, build("wrong", mistake))
    assert done.returncode == 1 and sentence in done.stderr and "weft_" not in done.stderr


@pytest.mark.parametrize("variable, named", [("SHMEM_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"), ("WEFT_HEAP_SIZE", "WEFT_HEAP_SIZE")])
def test_an_allocation_that_does_not_fit_says_once_what_to_raise(build, bin_dir, variable, named):
    done = run(bin_dir / "weft-run", "-n", 2, "--env", f"{variable}=4M", "--", build("large", "-DTOO_LARGE"))
    assert done.returncode == 0, done.stderr
    for pe in (0, 1):
        (line,) = [line for line in done.stderr.splitlines() if f"PE {pe}:" in line]
        assert "shmem_malloc: 1 TiB do not fit into the heap of 4 MiB" in line and f"raise {named};" in line
        assert line.endswith("which is printed only once")


def test_a_program_with_address_sanitizer_shares_its_globals(build, bin_dir):
    program = shutil.which("gcc") and subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True)
    if not program or "/" not in program.stdout:
        pytest.skip("this compiler has no AddressSanitizer")
    for pes in (1, 2):
        done = run(bin_dir / "oshrun", "-np", pes, build("sanitized", "-g", "-fsanitize=address"))
        assert (done.returncode, done.stdout) == (0, "Weft 0.1\n"), done.stderr


STRANGER = """
#include <stdio.h>
const char* other(void);
int main(void) { return puts(other()) < 0; }
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A program that asks for another OpenSHMEM's library, and is no PE of a job."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "other.c").write_text('const char* other(void) { return "PE 0 of 1"; }')
    (folder / "main.c").write_text(STRANGER)
    for words in (["-shared", "-fPIC", "other.c", "-Wl,-soname,liboshmem.so.40", "-o", "liboshmem.so.40"],
                  ["main.c", "./liboshmem.so.40", f"-Wl,-rpath,{folder}", "-o", "stranger"]):
        subprocess.run(["cc", *words], cwd=folder, check=True, timeout=60)
    return folder / "stranger"


@pytest.mark.parametrize("launcher", ["weft-run", "oshrun"])
def test_a_program_of_another_openshmem_gets_one_warning(stranger, bin_dir, launcher):
    done = run(bin_dir / launcher, "-n", 3, "--", stranger)
    assert (done.returncode, done.stdout) == (0, 3 * "PE 0 of 1\n")
    assert done.stderr.startswith(f"weft-run: none of the 3 PEs of {stranger} joined the job: it asks for liboshmem.so, which is not")
    assert done.stderr.count("\n") == 1


def test_a_command_that_is_no_program_of_openshmem_is_suspect_under_oshrun_alone(bin_dir):
    assert run(bin_dir / "weft-run", "-n", 2, "--", "true").stderr == ""
    assert "none of the 2 PEs of true joined the job: it was built with another" in run(bin_dir / "oshrun", "-np", 2, "true").stderr
    assert run(bin_dir / "oshrun", "-np", 1, "true").stderr == ""
    failed = run(bin_dir / "oshrun", "-np", 2, "/no/such/program")
    assert "none of" not in failed.stderr and failed.returncode == 127


@pytest.fixture(scope="module")
def end(bin_dir, tmp_path_factory):
    program = tmp_path_factory.mktemp("end") / "end"
    done = run(bin_dir / "oshcc", "-std=c11", "-Wall", "-Wextra", "-Werror", TOUR.with_name("shmem_end.c"), "-o", program)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("others", ["barrier", "wait", "compute", "finalize"])
@pytest.mark.parametrize("status", [0, 5])
@pytest.mark.parametrize("nodes", [1, 2])
def test_one_pe_ends_the_job_with_its_status(end, bin_dir, others, status, nodes):
    node_options = ["--node-size", 2, "--env", "WEFT_PROVIDER=tcp"] if nodes == 2 else []
    done = run(bin_dir / "weft-run", "-n", 2 * nodes, *node_options, "--", end, status, others)
    assert (done.returncode, done.stdout) == (status, "written before the end")
    assert "lost" not in done.stderr and "weft-run:" not in done.stderr and "error" not in done.stderr
    assert (f"shmem_global_exit({status}): this PE ends the job" in done.stderr) == (status != 0)


def test_one_pe_ends_the_job_under_mpirun(end):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    done = run("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 3, end, 5, "compute")
    assert done.returncode == 5 and "lost" not in done.stderr and "went on" not in done.stdout


def test_the_tour_passes_under_mpirun(build):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    done = run("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 3, build("tour"))
    assert (done.returncode, done.stdout) == (0, "Weft 0.1\n"), done.stderr
