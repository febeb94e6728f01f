"""A lab with a Slurm, one for all tests of this folder."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lab"), str(HERE.parents[1] / "tools" / "lab")]

from slurm_cluster import running_cluster  # noqa: E402: the path above comes first
from slurm_jobs import BatchJob  # noqa: E402
from weft_lab import state  # noqa: E402


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    yield from running_cluster(tmp_path_factory.mktemp("slurm"))


@pytest.fixture
def state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_LAB_DIR", str(tmp_path / "labs"))
    return Path(state.state_directory())


@pytest.fixture(scope="session")
def overdue(cluster, bin_dir, tmp_path_factory):
    """A job whose time is over. Slurm looks at time limits twice a minute, and other tests run meanwhile."""
    job = BatchJob(cluster, bin_dir, tmp_path_factory.mktemp("overdue"))
    cluster.left_out.add(job.number)
    # Slurm's limits are whole minutes. It refuses a time that is over when the command arrives, as
    # `now` is at the end of a second.
    cluster.ok("scontrol", "update", f"JobId={job.number}", "EndTime=now+5")
    return job
