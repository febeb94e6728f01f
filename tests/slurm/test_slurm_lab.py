"""weft-lab up --slurm itself: what it starts, and what it leaves."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from lab_cli import LAB, Cli
from slurm_cluster import LIMIT_S, skip_without_slurm
from weft_lab import slurm, state
from weft_lab.errors import UserError

NOBODY = "65534"


def living(processes):
    return [pid for pid in processes if state.start_time(pid) is not None]


def assert_up_and_down(cli):
    """Two nodes answer; `down` ends all, a job that runs included, and removes every file."""
    nodes = cli.ok("run", "--", "srun", "-N2", "sh", "-c", "echo $SLURMD_NODENAME $(getent hosts h1 | cut -d' ' -f1)")
    assert sorted(nodes.splitlines()) == ["h0 10.88.1.1", "h1 10.88.1.1"]
    cli.ok("run", "--", "sbatch", "-N2", "-o", "/dev/null", "--wrap", "srun sleep 600")
    lab = next(lab for lab in state.labs() if lab.slurm)
    assert len(slurm.processes_of(lab.slurm)) >= 3
    cli.ok("down")
    assert living(slurm.processes_of(lab.slurm)) == []
    assert not os.path.exists(lab.slurm.directory)


def test_down_leaves_no_process_and_no_file(state_directory):
    skip_without_slurm()
    cli = Cli(state_directory)
    try:
        cli.start("--hosts", "2", "--nics", "1", "--slurm")
        assert_up_and_down(cli)
    finally:
        cli.end_all()
    assert os.listdir(state_directory) == []


def test_a_holder_that_is_killed_leaves_no_process_and_no_file(state_directory):
    skip_without_slurm()
    cli = Cli(state_directory)
    try:
        cli.start("--hosts", "2", "--nics", "1", "--slurm")
        cli.ok("run", "--", "sbatch", "-N2", "-o", "/dev/null", "--wrap", "srun sleep 600")
        (lab,) = state.labs()
        os.kill(lab.holder_pid, signal.SIGKILL)
        end = time.monotonic() + LIMIT_S
        while living(slurm.processes_of(lab.slurm)) or os.path.exists(lab.slurm.directory):
            assert time.monotonic() < end, slurm.processes_of(lab.slurm)
            time.sleep(0.05)
        assert cli.run("list").stderr.startswith("no lab is up")
    finally:
        cli.end_all()
    assert os.listdir(state_directory) == []


def test_a_user_without_privileges_gets_a_slurm(monkeypatch):
    skip_without_slurm()
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can become another user, with setpriv")
    import pyroute2

    with tempfile.TemporaryDirectory(prefix="weft-lab-test-") as directory:
        os.chown(directory, int(NOBODY), int(NOBODY))
        monkeypatch.setenv("WEFT_LAB_DIR", directory)
        prefix = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        packages = os.path.dirname(os.path.dirname(pyroute2.__file__))
        cli = Cli(directory, prefix, ("/usr/bin/python3",), {"PYTHONPATH": packages, "HOME": "/nonexistent"})
        check = [*prefix, "/usr/bin/python3", "-c", f"import os, pyroute2; os.stat({str(LAB / 'weft_lab')!r})"]
        if subprocess.run(check, env=cli.environment, capture_output=True, check=False).returncode != 0:
            pytest.skip("no Python with pyroute2 that another user may run")
        try:
            cli.start("--hosts", "2", "--nics", "1", "--slurm")
            assert_up_and_down(cli)
        finally:
            cli.end_all()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(slurm, "SEARCH_PATH", "/nonexistent")
    with pytest.raises(UserError, match="slurmctld, slurmd, sinfo, srun are not installed.*apt-get install .*slurm-client"):
        slurm.require_programs()


@pytest.mark.parametrize("after_s", [0, 1])
def test_a_slurm_that_does_not_start_leaves_no_lab(state_directory, after_s):
    skip_without_slurm()
    # A controller, found first, that ends at once, or after slurmd and sinfo have begun to ask for
    # it.
    folder = state_directory.parent / "bin"
    folder.mkdir()
    (folder / "slurmctld").write_text(f"#!/bin/sh\nsleep {after_s}\necho fatal: this is a test\n")
    (folder / "slurmctld").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    program = f"import sys; sys.path.insert(0, {str(LAB)!r}); from weft_lab import cli; sys.exit(cli.main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "up", "--hosts", "1", "--nics", "1", "--slurm"],
        env={**os.environ, "PATH": path, "WEFT_LAB_DIR": str(state_directory)},
        capture_output=True, text=True, check=False,
    )
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 2
    assert done.stderr == "weft-lab: Slurm did not start: slurmctld-h0.out: fatal: this is a test\n"
    assert os.listdir(state_directory) == []
