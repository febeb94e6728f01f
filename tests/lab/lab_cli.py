"""weft-lab as the tests call it: in a process of its own, as some user, with a state directory of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[2] / "tools" / "lab"
COMMAND_TIMEOUT_S = 40


class Cli:
    """Calls weft-lab as a user would."""

    def __init__(self, directory, prefix=(), interpreter=(sys.executable,), environment=None):
        self.environment = {**os.environ, "WEFT_LAB_DIR": str(directory), **(environment or {})}
        program = f"import sys; sys.path.insert(0, {str(LAB)!r}); from weft_lab.cli import main; sys.exit(main())"
        self.inner_command = [*interpreter, "-c", program]
        self.command = [*prefix, *self.inner_command]

    def run(self, *arguments):
        return subprocess.run(
            [*self.command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def ok(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments):
        """`up`, or a skipped test where the kernel forbids namespaces."""
        done = self.run("up", *arguments)
        if done.returncode == 3:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stdout + done.stderr

    def end_all(self):
        for line in self.run("list").stdout.splitlines():
            self.run("down", "--name", line.partition(":")[0])
