"""A job that Slurm's user, its time limit or the death of a node ends: in bounded time, with a reason, and nothing is left."""
import re
import subprocess
import time

import pytest
from slurm_cluster import HOST_COUNT, LIMIT_S, running_cluster
from weft_lab import slurm

PE_COUNT = HOST_COUNT + 1
STEP = ["-N", HOST_COUNT, "-n", PE_COUNT]
SECRET = {"WEFT_JOB_SECRET": "of this test"}


@pytest.fixture
def computing(bin_dir, tmp_path):
    """The command of PEs that call nothing of Weft, for long."""
    return [bin_dir / "torchrun_pe", tmp_path / "up", "compute"]


def wait_until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


def wait_until_up(tmp_path, what):
    wait_until(lambda: all((tmp_path / f"up.{pe}").exists() for pe in range(PE_COUNT)), what)


class TestABatchJob:
    @pytest.fixture
    def job(self, cluster, computing, tmp_path):
        """The number of a job that computes, and the file of its output."""
        output = tmp_path / "job.out"
        script = tmp_path / "job.sh"
        script.write_text("#!/bin/bash\nsrun --mpi=pmi2 " + " ".join(map(str, computing)) + "\n")
        number = cluster.ok("sbatch", "--parsable", *STEP, "-o", output, script).strip()
        wait_until_up(tmp_path, output.read_text)
        return number, output

    def assert_ended(self, cluster, computing, job, reason):
        number, output = job
        wait_until(lambda: not cluster.tasks_of(computing[0]), output.read_text)
        assert cluster.is_empty()
        assert f"JobState={reason}" in cluster.ok("scontrol", "show", "job", number)
        return output.read_text()

    def test_that_is_cancelled_leaves_nothing(self, cluster, computing, job):
        cluster.ok("scancel", job[0])
        assert "CANCELLED" in self.assert_ended(cluster, computing, job, "CANCELLED")

    def test_whose_time_is_over_leaves_nothing(self, cluster, computing, job):
        # Slurm's limits are whole minutes, and it looks at them twice a minute.
        cluster.ok("scontrol", "update", f"JobId={job[0]}", "EndTime=now")
        text = self.assert_ended(cluster, computing, job, "TIMEOUT")
        assert re.search(r"CANCELLED .* DUE TO TIME LIMIT", text), text


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """A lab of which a host may die."""
    yield from running_cluster(tmp_path_factory.mktemp("mortal"))


class TestANodeThatDies:
    """Everything on the second host ends at once, Slurm's daemon included; its PE is the last one."""

    @pytest.fixture
    def start(self, mortal, computing, tmp_path):
        """start(WORD...): a job that is up, by this launcher."""
        jobs = []

        def start_job(*launcher):
            command = [*mortal.cli.command, "run", "--", *map(str, (*launcher, *computing))]
            job = subprocess.Popen(command, env={**mortal.cli.environment, "WEFT_HEAP_SIZE": "8M", **SECRET}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            jobs.append(job)
            wait_until_up(tmp_path, lambda: f"status {job.poll()}")
            mortal.kill_host(1)
            return job

        yield start_job
        for job in jobs:
            job.kill()
            job.wait()
        lab = mortal.lab()
        slurm.start_node(lab, lab.hosts[1])
        wait_until(lambda: mortal.ok("sinfo", "-h", "-o", "%T").split() == ["idle"], lambda: mortal.ok("sinfo"))

    def end_of(self, mortal, computing, job):
        """What the job says when Slurm has found the node dead, which takes it SlurmdTimeout: here it is told."""
        mortal.ok("scontrol", "update", "NodeName=h1", "State=DOWN", "Reason=test")
        output, _ = job.communicate(timeout=LIMIT_S)
        assert job.returncode != 0, output
        assert mortal.is_empty()
        assert mortal.tasks_of(computing[0]) == []
        return output

    @pytest.mark.parametrize("mpi", ["pmi2", "none"])
    def test_ends_the_pes_before_slurm_notices_and_is_named_by_its_pe(self, mortal, computing, start, mpi):
        job = start("srun", f"--mpi={mpi}", "--kill-on-bad-exit", *STEP)
        wait_until(lambda: not mortal.tasks_of(computing[0]), lambda: mortal.ok("squeue", "-s"))
        assert f"PE {PE_COUNT - 1} is lost" in self.end_of(mortal, computing, job)

    def test_under_pmix_slurm_ends_the_step_and_names_the_node(self, mortal, computing, start):
        job = start("srun", "--mpi=pmix", "--kill-on-bad-exit", *STEP)
        assert "Node failure on h1" in self.end_of(mortal, computing, job)

    def test_ends_a_job_of_weft_run_which_names_the_host(self, mortal, computing, start, bin_dir):
        job = start("salloc", "-Q", *STEP, bin_dir / "weft-run", "--")
        assert "weft-run: lost the host 'h1'" in self.end_of(mortal, computing, job)
