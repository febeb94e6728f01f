"""What the tests of `loom` share: the command, jobs in the background, and whether nodes have files of their own."""
import os
import subprocess

import pytest


@pytest.fixture
def environment(tmp_path):
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("LOOM_", "FI_", "WEFT_"))}
    return {**ours, "LOOM_DIR": str(tmp_path / "loom"), "WEFT_JOB_SECRET": "of a test, nobody else knows it"}


@pytest.fixture
def loom(bin_dir, environment):
    def run(*arguments, status=0, **more):
        ended = subprocess.run([bin_dir / "loom", *map(str, arguments)], env={**environment, **more}, text=True,
                               capture_output=True, timeout=120)
        assert status in (None, ended.returncode), ended.stdout + ended.stderr
        return ended
    return run


@pytest.fixture
def start(bin_dir, environment):
    started = []

    def begin(*arguments):
        started.append(subprocess.Popen([bin_dir / "loom", "run", *map(str, arguments)], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def namespaces(loom):
    """Skips where nodes have no names and no files of their own."""
    if "no namespaces" in loom("run", "--", "true").stderr:
        pytest.skip("no namespaces on this machine")
