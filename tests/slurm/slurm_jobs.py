"""Batch jobs of the lab's Slurm that compute until something ends them."""
import time

from slurm_cluster import HOST_COUNT, LIMIT_S

PE_COUNT = HOST_COUNT + 1
STEP = ["-N", HOST_COUNT, "-n", PE_COUNT]


def wait_until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


def wait_until_up(tmp_path, what):
    wait_until(lambda: all((tmp_path / f"up.{pe}").exists() for pe in range(PE_COUNT)), what)


class BatchJob:
    """A job that computes on `cluster`, from when all its PEs are up."""

    def __init__(self, cluster, bin_dir, folder):
        self.cluster = cluster
        self.program = bin_dir / "torchrun_pe"
        self.output = folder / "job.out"
        script = folder / "job.sh"
        script.write_text(f"#!/bin/bash\nsrun --mpi=pmi2 {self.program} {folder / 'up'} compute\n")
        self.number = cluster.ok("sbatch", "--parsable", *STEP, "-o", self.output, script).strip()
        wait_until_up(folder, self.output.read_text)

    def assert_ended(self, reason):
        self.cluster.left_out.discard(self.number)
        wait_until(lambda: not self.cluster.tasks_of(self.program), self.output.read_text)
        assert self.cluster.is_empty()
        assert f"JobState={reason}" in self.cluster.ok("scontrol", "show", "job", self.number)
        return self.output.read_text()
