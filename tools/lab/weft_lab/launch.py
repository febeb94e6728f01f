"""`weft-lab run`: turns this process into the command, in the right namespaces.

Invariant: always by exec, so that signals and the exit status are the command's own. What runs in a
rootless lab's user namespace has uid 0 there, so WEFT_LAB_DIR tells it where the state files are.
"""

import os
import shutil
from pathlib import Path

from . import namespaces, slurm, state
from .errors import UserError
from .plan import find_host

REPOSITORY = Path(__file__).resolve().parents[3]


def find_weft_run():
    """The path of weft-run: WEFT_RUN, this repository's release build, PATH; None if there is none."""
    named = os.environ.get("WEFT_RUN")
    if named:
        return named
    built = REPOSITORY / "build" / "release" / "bin" / "weft-run"
    return str(built) if os.access(built, os.X_OK) else shutil.which("weft-run")


def run(options):
    """Become the command. Returns only an exit status for a command that cannot be started."""
    command = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if not command:
        raise UserError("run: give the command after --, for example: weft-lab run --host 0 -- hostname")
    if options.pe_count is not None and options.host is not None:
        raise UserError("run: -n starts PEs on all hosts, --host a command on one; give one of them")
    lab = state.find(options.name)
    host = find_host(lab, options.host) if options.host is not None else None
    if lab.slurm and options.pe_count is None:
        os.environ.pop("WEFT_LAB", None)  # weft-run shall take its hosts from the allocation
    else:
        os.environ["WEFT_LAB"] = lab.name
    os.environ["WEFT_LAB_DIR"] = os.path.abspath(state.state_directory())
    if options.pe_count is not None:
        command = weft_run_command(lab, options.pe_count, command)
    elif lab.slurm:
        slurm.enter(lab, host or lab.hosts[0])
    elif host:
        namespaces.enter_host(lab, host)
    else:
        namespaces.enter_user(lab)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        raise_status = 127
    except PermissionError:
        raise_status = 126
    # 127 and 126 are what a shell returns (POSIX, Shell Command Language, 2.8.2).
    os.write(2, f"weft-lab: cannot run '{command[0]}': not found or not executable\n".encode())
    return raise_status


def weft_run_command(lab, pe_count, command):
    if pe_count < 1:
        raise UserError(f"run: -n {pe_count}: at least one PE is needed")
    weft_run = find_weft_run()
    if not weft_run:
        raise UserError("run: -n needs weft-run; build it (build/release/bin/weft-run), or set WEFT_RUN to its path")
    return [weft_run, "--lab", lab.name, "-n", str(pe_count), *command]
