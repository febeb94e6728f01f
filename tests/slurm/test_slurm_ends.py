"""A job that Slurm's user or the death of a node ends: in bounded time, with a reason, and nothing is left."""
import subprocess

import pytest
from slurm_cluster import LIMIT_S, running_cluster
from slurm_jobs import PE_COUNT, STEP, BatchJob, wait_until, wait_until_up
from weft_lab import slurm

SECRET = {"WEFT_JOB_SECRET": "of this test"}


@pytest.fixture
def computing(bin_dir, tmp_path):
    """The command of PEs that call nothing of Weft, for long."""
    return [bin_dir / "torchrun_pe", tmp_path / "up", "compute"]


def test_a_batch_job_that_is_cancelled_leaves_nothing(cluster, bin_dir, tmp_path):
    job = BatchJob(cluster, bin_dir, tmp_path)
    cluster.ok("scancel", job.number)
    assert "CANCELLED" in job.assert_ended("CANCELLED")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """A lab of which a host may die. Slurm tries again for MessageTimeout to reach a node that refuses connections: 10 s, if it is not told."""
    for cluster in running_cluster(tmp_path_factory.mktemp("mortal")):
        with open(cluster.lab().slurm.configuration, "a", encoding="utf-8") as file:
            file.write("MessageTimeout=3\n")
        cluster.ok("scontrol", "reconfigure")
        yield cluster


class TestANodeThatDies:
    """Everything on the second host ends at once, Slurm's daemon included; its PE is the last one."""

    @pytest.fixture(autouse=True)
    def meanwhile(self, overdue):
        """It waits for Slurm while these tests run, and those of the files after this one."""

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
