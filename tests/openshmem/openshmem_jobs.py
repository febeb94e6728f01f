"""Where the suite's jobs run, and how one is started and ended."""
import os
import signal
import subprocess

JOB_LIMIT_S = 60
RAILS = {"WEFT_NICS": "127.0.0.1,127.0.0.2", "WEFT_NICS_SHARED": "yes", "WEFT_PROVIDER": "tcp"}
NODES_OF_ONE = RAILS | {"WEFT_NODE_SIZE": "1"}
NODES_OF_TWO = RAILS | {"WEFT_NODE_SIZE": "2"}
FAULTS = NODES_OF_ONE | {"WEFT_FAULTS": "seed=5,reorder=0.3,delay=0.1,refuse=0.05"}
MIXED_FAULTS = NODES_OF_TWO | {"WEFT_FAULTS": "seed=11,reorder=0.3,delay=0.1,refuse=0.05"}
CMA = {"WEFT_NODE_LOCAL": "cma"}
PLACES = {
    "node": {}, "rails": NODES_OF_ONE, "pairs": NODES_OF_TWO, "faults": FAULTS, "mixed-faults": MIXED_FAULTS,
    "cma": CMA, "checks": {"WEFT_CHECK_LEVEL": "2"},
}


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "SHMEM_", "SMA_"))}


def run(command, environment=None):
    """The job's (status, stdout, stderr); a job that does not end is ended, with all its PEs."""
    job = subprocess.Popen(list(map(str, command)), env=plain_environment() | (environment or {}), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output, errors = job.communicate(timeout=JOB_LIMIT_S + 20)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        output, errors = job.communicate()
    return job.returncode, output, errors
