"""The OpenSHMEM suite: its programs as jobs, on one node, over rails, through faults and in the lab; each
test of a program is a case of its own in the report."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

import typed_tests
from openshmem_jobs import run

HERE = pathlib.Path(__file__).resolve().parent
# Which program runs where, with how many PEs. Each job costs a second or two of ./test.
JOBS = [
    *[("suite", "node", count) for count in (1, 2, 3, 4, 5, 7, 8)],
    *[("typed_c99", "node", count) for count in (1, 2, 3, 4, 5, 7, 8)],
    *[("typed_c11", "node", count) for count in (1, 3, 8)],
    *[("typed_cpp", "node", count) for count in (1, 2, 5)],
    *[("threads", "node", count) for count in (1, 2, 3)],
    *[("suite", "rails", count) for count in (2, 3, 5)],
    ("suite", "pairs", 4), ("suite", "pairs", 7),
    ("typed_c99", "rails", 2), ("typed_c11", "pairs", 3), ("typed_cpp", "rails", 3),
    ("threads", "rails", 2), ("threads", "pairs", 4),
    ("suite", "faults", 3), ("suite", "mixed-faults", 5), ("typed_c99", "faults", 2),
    ("suite", "cma", 2), ("suite", "cma", 5), ("typed_c99", "cma", 3), ("threads", "cma", 2),
    ("suite", "checks", 3), ("typed_c99", "checks", 2),
]
LAB_JOBS = [("suite", 2), ("suite", 5), ("suite", 8), ("typed_c99", 4), ("threads", 2)]
LAB_FORBIDDEN = 3  # weft-lab's exit status
RESULT = re.compile(r"^(ok|FAILED|skipped|begin) (.*)$")


def results_of(output):
    """The last word on each test and what follows its name; `begin` where the job ended in it."""
    results, begun = {}, ""
    for line in output.splitlines():
        if found := RESULT.match(line):
            word, rest = found.groups()
            begun = rest if word == "begin" else begun
            results[begun] = word, rest.removeprefix(begun).strip(": ")
    return results


def report(subtests, status, output, errors):
    """Each test of the program as a case; then whether the program came to its end."""
    results = results_of(output)
    assert results, f"status {status}\n{output}{errors}"
    for name, (word, rest) in results.items():
        with subtests.test(name):
            if word == "skipped":
                pytest.skip(rest)
            if word == "begin":
                pytest.fail(f"the job ended in this test with status {status}\n{errors[-3000:]}", pytrace=False)
            if word == "FAILED":
                pytest.fail(f"failed {rest}; the job's stderr:\n{errors[-3000:]}", pytrace=False)
    assert re.search(r"^done: \d+ tests, 0 failed", output, re.M), errors[-3000:]
    assert status == 0, errors[-3000:]


@pytest.mark.parametrize(("program", "place", "count"), JOBS, ids=lambda value: str(value))
def test_the_suite(start_at, subtests, program, place, count):
    report(subtests, *start_at(place, f"openshmem_{program}", count))


# ---- In the lab ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(project, programs, tmp_path_factory):
    """lab(program, count): a job on two hosts with two NICs for each."""
    tool = project / "tools" / "lab" / "weft-lab"
    name = f"openshmem-{os.getpid()}"
    environment = {"WEFT_LAB_DIR": str(tmp_path_factory.mktemp("labs")), "WEFT_RUN": str(programs / "weft-run")}
    up = [sys.executable, tool, "up", "--name", name, "--hosts", 2, "--nics", 2, "--rate", "400mbit"]
    status, _, errors = run(up, environment)
    if status == LAB_FORBIDDEN:
        pytest.skip(errors.strip())
    assert status == 0, errors

    def start_job(program, count):
        command = [sys.executable, tool, "run", "--name", name, "-n", count, "--", programs / program]
        return run(command, environment | {"WEFT_NICS_SHARED": "yes"})

    yield start_job
    run([sys.executable, tool, "down", "--name", name], environment)


@pytest.mark.parametrize(("program", "count"), LAB_JOBS, ids=lambda value: str(value))
def test_the_suite_in_the_lab(lab, subtests, program, count):
    report(subtests, *lab(f"openshmem_{program}", count))


# ---- Programs that end in their own way ----------------------------------------------------------

MISTAKES = {
    "pe_too_large": "there is no PE 2",
    "pe_negative": "there is no PE -1",
    "get_from_stack": "is not symmetric",
    "put_to_stack": "is not symmetric",
    "atomic_on_stack": "is not symmetric",
    "atomic_pe_too_large": "there is no PE 1000000",
    "beyond_the_heap": "symmetric",
    "invalid_context": "context",
    "invalid_team": "team",
    "signal_on_stack": "is not symmetric",
    "free_of_stack": "shmem_free",
}


@pytest.mark.parametrize("place", ["node", "rails"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_the_job_with_one_sentence(start_at, mistake, place):
    status, output, errors = start_at(place, "openshmem_bad_input", 2, mistake)
    assert status not in (0, 124), output + errors
    assert status < 128, f"killed by a signal:\n{errors}"
    assert MISTAKES[mistake] in errors
    assert "nobody noticed" not in output


@pytest.mark.parametrize("place", ["node", "rails"])
@pytest.mark.parametrize("count", [1, 3])
def test_global_exit_ends_all_pes_with_its_status(start_at, count, place):
    status, output, errors = start_at(place, "openshmem_global_exit", count)
    assert status == 7, errors
    assert "the barrier" not in output


@pytest.mark.parametrize("count", [1, 4])
def test_start_pes_still_starts(start, count):
    assert start("openshmem_start_pes", count)[:2] == (0, f"started {count} PEs\n")


@pytest.mark.parametrize(("place", "count"), [("node", 1), ("node", 3), ("rails", 3)])
@pytest.mark.parametrize("how", ["once", "again"])
def test_the_library_may_be_initialized_again(start_at, place, count, how):
    status, output, errors = start_at(place, "openshmem_init_again", count, how)
    assert (status, output) == (0, "again\n" * count), errors


@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_init_thread_provides_what_is_asked_for(start, level):
    assert start("openshmem_init_thread", 2, {}, level)[:2] == (0, "provided\n")


@pytest.mark.parametrize("count", [1, 3])
def test_a_program_may_put_itself_before_the_library(start, count):
    status, output, errors = start("openshmem_profiling", count)
    assert (status, output) == (0, "counted 2 barriers, 1 puts, 1 mallocs\n"), errors


@pytest.mark.parametrize(("place", "count"), [("node", 1), ("node", 5), ("rails", 3)])
def test_searches_without_a_mask_come_to_all_flags(start_at, place, count):
    assert start_at(place, "openshmem_all_to_one", count)[:2] == (0, "taken by any, test_any, some, test_some\n")


@pytest.mark.parametrize("name", ["SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"])
def test_the_symmetric_size_is_kept(start, name):
    assert start("openshmem_symmetric_size", 2, {name: "20M"})[1] == "fits\n"
    assert start("openshmem_symmetric_size", 2, {name: "4M"})[1] == "does not fit\n"


def test_an_alignment_that_cannot_be_is_said_with_the_largest(start):
    status, _, errors = start("openshmem_suite", 2, {"WEFT_HEAP_SIZE": "300M"}, "9.3.1 align: every power of two up to half")
    assert status == 0, errors
    said = [line for line in errors.splitlines() if "shmem_align: the alignment " in line]
    assert len(said) == 2 and all("is more than 256 MiB, the largest that the heaps of all PEs have" in line for line in said)


def test_info_and_version_are_printed_on_request(start):
    assert "SHMEM_SYMMETRIC_SIZE" in "".join(start("openshmem_start_pes", 1, {"SHMEM_INFO": "1"})[1:])
    assert "1.6" in "".join(start("openshmem_start_pes", 1, {"SHMEM_VERSION": "1"})[1:])


# ---- The suite itself ----------------------------------------------------------------------------


# A fault of the front door (broken/), and the program that must notice it.
FAULTS = {
    "put_too_much": "suite", "put_too_little": "typed_c99", "get_too_much": "typed_c99", "lost_atomic": "typed_c99",
    "torn_atomic": "suite", "context_without_team": "typed_c99", "wrong_index": "suite", "lost_precision": "suite",
    "wrong_root": "suite", "calloc_without_zeroes": "suite",
}


@pytest.mark.parametrize("fault", ["none", *FAULTS])
def test_the_suite_notices_a_fault(start, build_dir, fault):
    library = build_dir / "lib" / "libopenshmem_broken.so"
    assert library.exists()
    program = f"openshmem_{FAULTS.get(fault, 'suite')}"
    status, output, errors = start(program, 4, {"LD_PRELOAD": str(library), "BROKEN": fault})
    failed = [name for name, (word, _) in results_of(output).items() if word == "FAILED"]
    assert (status == 0) == (failed == []) == (fault == "none"), output + errors


def test_every_function_of_the_header_is_called(project):
    declared = set(re.findall(r"\b_?(?:shmem_\w+|start_pes|_my_pe|_num_pes|shmalloc|shfree|shrealloc|shmemalign)(?=\()",
                              (project / "include" / "shmem.h").read_text()))
    written = [path.read_text() for path in (*HERE.glob("*.c"), *HERE.glob("programs/*.c"))]
    called = "\n".join([*written, *typed_tests.sources().values()])
    words = set(re.findall(r"\w+", called))
    assert sorted(name for name in declared if name not in words and not name.endswith("_t")) == []
