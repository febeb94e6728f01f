"""Jobs of Python programs: PEs as processes of weft-run, in the build's package or in an installed wheel.

PYTHON_WITH_WEFT names the interpreter of an environment in which the wheel is installed; without it the tests run the
package of the build (build/PRESET/python).
"""
import os
import pathlib
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import pytest


@dataclass
class Done:
    status: int
    out: str
    err: str

    def lines(self):
        """Of standard output, sorted: PEs print in any order, and one write may end before its line does."""
        return sorted(line for line in self.out.splitlines() if line)


class Programs:
    """Starts programs as PEs."""

    LIMIT_S = 60  # a hang, also on a busy machine

    # `say` writes a line at once, so that lines of PEs do not mix.
    PREAMBLE = """import os, sys, time
import numpy
import weft

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

"""

    def __init__(self, bin_dir, package, folder):
        installed = os.environ.get("PYTHON_WITH_WEFT")
        self.python = pathlib.Path(installed) if installed else pathlib.Path(sys.executable)
        self.weft_run = self.python.parent / "weft-run" if installed else bin_dir / "weft-run"
        self.environment = os.environ | {"WEFT_HEAP_SIZE": "8M", "PYTHONUNBUFFERED": "1"}
        if not installed:
            self.environment["PYTHONPATH"] = str(package)
        self._folder = folder

    def write(self, body):
        """A file with this program; `import weft` and numpy are there."""
        path = self._folder / "program.py"
        # A PE that hangs says in which line, shortly before it is ended.
        watched = f"import faulthandler; faulthandler.dump_traceback_later({0.9 * self.LIMIT_S})\n"
        path.write_text(watched + self.PREAMBLE + textwrap.dedent(body))
        return path

    def start(self, *command, **variables):
        return subprocess.Popen(
            [str(word) for word in command], env=self.environment | variables, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)

    def finish(self, process, limit_s=None):
        limit_s = limit_s or self.LIMIT_S
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            pytest.fail(f"still running after {limit_s} s\n{out}{err}")
        return Done(process.returncode, out, err)

    def run(self, *command, **variables):
        return self.finish(self.start(*command, **variables))

    def pes(self, count, body, **variables):
        """A job of `count` PEs that run this program."""
        return self.run(self.weft_run, "-n", count, "--", self.python, self.write(body), **variables)

    def ok(self, count, body, **variables):
        done = self.pes(count, body, **variables)
        assert done.status == 0, done.out + done.err
        return done


def programs_of(kind, request, folder):
    """Programs, or a class under it, for the interpreter and the package that are tested."""
    if os.environ.get("PYTHON_WITH_WEFT"):
        return kind(None, None, folder)
    package = request.getfixturevalue("build_dir") / "python"
    if not (package / "weft" / "_weft.abi3.so").exists():
        pytest.fail(f"{package} has no Python module; run scripts/setup and scripts/build again")
    return kind(request.getfixturevalue("bin_dir"), package, folder)


@pytest.fixture
def programs(request, tmp_path):
    return programs_of(Programs, request, tmp_path)
