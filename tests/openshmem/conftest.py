"""What the OpenSHMEM tests share: the programs, and how a job of them is started."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from openshmem_jobs import JOB_LIMIT_S, PLACES, run  # noqa: E402: the path above comes first


@pytest.fixture(scope="session")
def programs(bin_dir):
    if not (bin_dir / "openshmem_suite").exists():
        pytest.fail(f"{bin_dir} has no openshmem_suite; run scripts/build")
    return bin_dir


@pytest.fixture(scope="session")
def start(programs):
    """start(program, count, environment, *words): a job on this machine."""
    def start_job(program, count, environment=None, *words):
        command = [programs / "weft-run", "-n", count, "--timeout", JOB_LIMIT_S, "--", programs / program, *words]
        return run(command, environment)

    return start_job


@pytest.fixture(scope="session")
def settings(bin_dir):
    done = subprocess.run([bin_dir / "weft-info", "--env"], capture_output=True, text=True, timeout=30)
    return done.stdout


@pytest.fixture(scope="session")
def start_at(start, settings):
    """start_at(place, program, count, *words): skips where this Weft has no setting of the place."""
    def start_job(place, program, count, *words):
        for name in PLACES[place]:
            if name not in settings:
                pytest.skip(f"this Weft has no {name}")
        return start(program, count, PLACES[place], *words)

    return start_job
