"""A PE in Python that raises, and Ctrl-C, under srun."""
import os
import signal
import subprocess
import sys
import time

import pytest
from slurm_cluster import HOST_COUNT, LIMIT_S

STEP = ["-N", HOST_COUNT, "--ntasks-per-node=2"]
PROGRAM = """
import sys, time
import weft

job = weft.init()
weft.barrier_all()
if job.pe == 1:
    if len(sys.argv) < 2:
        raise ValueError("this PE has enough")
    open(sys.argv[1], "w").close()
    time.sleep(60)
weft.barrier_all()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def variables(build_dir):
    return {"PYTHONPATH": str(build_dir / "python"), "WEFT_JOB_SECRET": "of this test", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_a_pe_that_raises_ends_the_step_with_its_traceback_on_top(cluster, program, variables, mpi):
    status, text, _ = cluster.run("srun", f"--mpi={mpi}", *STEP, sys.executable, program, **variables)
    assert status != 0 and text.count("Traceback (most recent call last):") == 1, text
    lines = text.splitlines()
    raised = next(i for i, line in enumerate(lines) if "ValueError: this PE has enough" in line)
    assert lines[0].startswith("Traceback") and any("PE 1" in line for line in lines[raised:]), text
    assert cluster.is_empty()


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_ctrl_c_twice_as_srun_asks_for_ends_the_step(cluster, program, variables, mpi, tmp_path):
    command = [*cluster.cli.command, "run", "--", "srun", f"--mpi={mpi}", *map(str, STEP), sys.executable, program, tmp_path / "ready"]
    step = subprocess.Popen([str(word) for word in command], env={**cluster.cli.environment, "WEFT_HEAP_SIZE": "8M", **variables}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    end = time.monotonic() + LIMIT_S
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.3)
    for _ in range(2):
        os.killpg(step.pid, signal.SIGINT)
        time.sleep(0.3)
    output, _ = step.communicate(timeout=LIMIT_S)
    assert step.returncode != 0, output
    assert cluster.is_empty()
