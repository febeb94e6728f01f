"""A PE may fork: the child is no PE, and whatever it does the job goes on, on every kind of rail."""
import re
import subprocess

import pytest
from openshmem_jobs import JOB_LIMIT_S, plain_environment

# What the child does, its exit status, and what it says on stderr.
QUIET = {"returns": 0, "exits": 0, "fails": 3, "finalizes": 0, "finalizes_twice": 0, "forks": 0, "after_finalize": 0}
REFUSED = {"puts": "shmem_long_p", "meets": "shmem_barrier_all", "begins": "shmem_init"}


def children(output, count):
    """The exit status of each PE's child, by PE; the job must have gone on."""
    found = dict(re.findall(r"^PE (\d): its child ended with (-?\d+), written 0$", output, re.M))
    assert "the job went on" in output and sorted(map(int, found)) == list(range(count)), output
    assert "flag" not in output
    return [int(found[str(pe)]) for pe in range(count)]


@pytest.mark.parametrize("place", ["node", "rails", "pairs"])
@pytest.mark.parametrize("how", QUIET)
def test_a_child_of_fork_may_end_as_it_likes(start_at, how, place):
    count = 4 if place == "pairs" else 2
    status, output, errors = start_at(place, "openshmem_fork", count, how)
    assert status == 0, output + errors
    assert children(output, count) == [QUIET[how]] * count
    assert errors == ""


@pytest.mark.parametrize("how", REFUSED)
def test_a_child_of_fork_that_communicates_is_told_that_it_is_no_pe(start_at, how):
    status, output, errors = start_at("rails", "openshmem_fork", 2, how)
    assert status == 0, output + errors
    assert children(output, 2) == [1, 1]
    for pe in (0, 1):
        assert f"{REFUSED[how]}: this process was forked from PE {pe} and is not a PE" in errors


def test_a_child_of_fork_that_ends_the_job_ends_alone(start_at):
    status, output, errors = start_at("rails", "openshmem_fork", 2, "ends_the_job")
    assert status == 0, output + errors
    assert children(output, 2) == [9, 9]
    assert "this process was forked from PE 1 and is not a PE; it ends alone" in errors


def test_a_child_of_fork_knows_whose_child_it_is(start_at):
    status, output, errors = start_at("node", "openshmem_fork", 3, "asks")
    assert status == 0, output + errors
    assert children(output, 3) == [3, 16 + 3, 32 + 3]


@pytest.mark.parametrize("how", ["returns", "exits", "fails", "finalizes"])
@pytest.mark.parametrize("persona", ["efa", "cxi", "verbs"])
def test_a_child_of_fork_leaves_the_nics_alone(programs, tmp_path, persona, how):
    environment = plain_environment() | {"LOOM_DIR": str(tmp_path), "WEFT_JOB_SECRET": "of a test, nobody else knows it"}
    done = subprocess.run([programs / "loom", "run", "--nodes", "2", "--nics", "2", "--persona", persona, "--",
                           programs / "openshmem_fork", how], env=environment, capture_output=True, text=True,
                          timeout=JOB_LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert children(done.stdout, 2) == [QUIET[how]] * 2
