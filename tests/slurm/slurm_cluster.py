"""A lab with a Slurm as the tests use it: commands on its login node, with status, output and time."""
import os
import signal
import subprocess
import time

import pytest
from lab_cli import Cli
from weft_lab import holder, slurm, state
from weft_lab.errors import UserError

HOST_COUNT = 2
# A hang, also on a busy machine.
LIMIT_S = 60


def skip_without_slurm():
    try:
        slurm.require_programs()
    except UserError as error:
        pytest.skip(str(error))


class Cluster:
    """Commands on the login node of the lab's Slurm."""

    def __init__(self, cli, directory):
        self.cli = cli
        self.directory = directory
        self.left_out = set()  # jobs that is_empty does not count

    def run(self, *command, **variables):
        """Status, output and seconds of a command; its output is both streams together."""
        start = time.monotonic()
        done = subprocess.run(
            [*self.cli.command, "run", "--", *map(str, command)],
            env={**self.cli.environment, "WEFT_HEAP_SIZE": "8M", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout, time.monotonic() - start

    def ok(self, *command, **variables):
        status, output, _ = self.run(*command, **variables)
        assert status == 0, output
        return output

    def is_empty(self):
        """Whether no step and no job is left. Slurm notices an end a moment later."""
        for _ in range(100):
            ids = self.ok("squeue", "-h", "-s", "-o", "%i").split() + self.ok("squeue", "-h", "-o", "%i").split()
            if {number.partition(".")[0] for number in ids} <= self.left_out:
                return True
            time.sleep(0.1)
        return False

    def lab(self):
        return state.read(os.path.join(self.cli.environment["WEFT_LAB_DIR"], "default.json"))

    def kill_host(self, index):
        """End everything on a host at once, its daemon included."""
        lab = self.lab()
        while inside := holder.processes_inside(lab, [lab.hosts[index]]):
            for pid in inside:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def tasks_of(self, program):
        """The pids of the processes of `program` in this lab."""
        lab = self.lab()
        found = []
        for pid in holder.processes_inside(lab, lab.hosts):
            try:
                if os.path.samefile(f"/proc/{pid}/exe", program):
                    found.append(pid)
            except OSError:
                continue  # it has ended
        return found


def running_cluster(directory, nic_count=2, rate="unlimited"):
    """Yields a Cluster of a lab of its own, which ends after it."""
    skip_without_slurm()
    cli = Cli(directory / "labs")
    cli.start("--hosts", str(HOST_COUNT), "--nics", str(nic_count), "--rate", rate, "--slurm")
    yield Cluster(cli, directory)
    cli.end_all()
