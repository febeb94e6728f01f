"""The commands that pip puts on the PATH: each replaces itself by the program of the same name in the wheel's bin."""

import functools
import os
import sys

from .paths import prefix


def run_program(name):
    """Does not return. The interpreter of this environment runs tools that are Python, for their packages are here."""
    path = os.path.join(prefix(), "bin", name)
    is_python = name in ("weft-top", "weft-plot")
    command = [sys.executable, path] if is_python else [path]
    try:
        os.execv(command[0], [*command, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: cannot start {path} ({error.strerror}); install the wheel again: "
                 f"{sys.executable} -m pip install --force-reinstall weft")


weft_run = functools.partial(run_program, "weft-run")
weft_info = functools.partial(run_program, "weft-info")
weft_perf = functools.partial(run_program, "weft-perf")
weft_sim = functools.partial(run_program, "weft-sim")
weft_top = functools.partial(run_program, "weft-top")
weft_plot = functools.partial(run_program, "weft-plot")
weft_cc = functools.partial(run_program, "weft-cc")
weft_cxx = functools.partial(run_program, "weft-c++")
oshcc = functools.partial(run_program, "oshcc")
oshcxx = functools.partial(run_program, "oshc++")
oshfort = functools.partial(run_program, "oshfort")
shmemfort = functools.partial(run_program, "shmemfort")
oshrun = functools.partial(run_program, "oshrun")
weft_nvshmem = functools.partial(run_program, "weft-nvshmem")
