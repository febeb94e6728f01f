"""The holder: one process per lab, whose open file descriptors are all that keeps the lab alive.

Invariants: when the holder ends, however it ends, the kernel removes every namespace and NIC; the state
file is written after the network is complete, and a builder whose caller has gone away ends itself.
Life: `start` forks a child, which builds the network, writes the state file, reports through a pipe and
then turns (by exec, keeping its pid) into a process that does nothing but wait.
"""

import os
import select
import signal
import sys
import traceback

from . import namespaces, slurm, state
from .errors import ForbiddenError, UserError

# exec makes the process small (9 instead of 35 MB) and shows its purpose in ps.
WAIT_FOR_EVER = "import signal\nwhile True: signal.pause()"
END_TIMEOUT_S = 5

_FAILURES = {"user": UserError, "forbidden": ForbiddenError, "broken": RuntimeError}


def start(lab, build):
    """Bring `lab` up; `build` makes its network (network.build). Returns when it is complete."""
    if state.find_or_none(lab.name):
        raise UserError(_name_taken(lab))
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _live(lab, build, write_end)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        report = pipe.read()
    if report == "ready":
        return
    os.waitpid(pid, 0)
    kind, _, message = report.partition(":")
    if kind in _FAILURES:
        raise _FAILURES[kind](message)
    raise RuntimeError(f"the holder of lab '{lab.name}' ended while it was building")


def _name_taken(lab):
    return f"lab '{lab.name}' is up already; end it with: weft-lab down --name {lab.name}, or choose another --name"


def _live(lab, build, report_fd):
    """The child's whole life. Never returns."""
    try:
        os.setsid()
        _become(lab, build, report_fd)
    except ForbiddenError as error:
        _report(report_fd, f"forbidden:{error}")
    except UserError as error:
        _report(report_fd, f"user:{error}")
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must hear of it
        _report(report_fd, f"broken:{traceback.format_exc()}")
    os._exit(1)


def _report(descriptor, text):
    os.write(descriptor, text.encode())


def _become(lab, build, report_fd):
    if not namespaces.has_capabilities():
        namespaces.unshare_user()
        lab.user_namespace = f"/proc/{os.getpid()}/ns/user"
    switch_fd, host_fds = build(lab, namespaces.unshare_net)
    lab.holder_pid = os.getpid()
    lab.holder_start_time = state.start_time("self")
    lab.switch_namespace = f"/proc/{os.getpid()}/fd/{switch_fd}"
    for host, descriptor in zip(lab.hosts, host_fds):
        host.net_namespace = f"/proc/{os.getpid()}/fd/{descriptor}"
    kept = {switch_fd, *host_fds}
    _detach(kept | {report_fd})
    try:
        state.write(lab, replace=False)
    except FileExistsError:
        raise UserError(_name_taken(lab)) from None
    try:
        # Without a reader this is an EPIPE (Python ignores SIGPIPE): the caller died, so nobody
        # wants the lab.
        _report(report_fd, "ready")
    except OSError:
        state.remove(lab)
        raise
    os.close(report_fd)
    _wait_for_ever(lab, kept)


def _wait_for_ever(lab, kept):
    for descriptor in kept:
        os.set_inheritable(descriptor, True)
    try:
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", WAIT_FOR_EVER, "weft-lab-holder", lab.name])
    except OSError:
        # The interpreter is gone, or was started through rights that are gone: wait here, only
        # larger.
        while True:
            signal.pause()


def _detach(kept):
    """Let go of everything of the caller's: its directory, its terminal, its other descriptors."""
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor > 2 and descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the descriptor of the listing itself
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def stop(lab):
    """End the holder and with it the lab. Returns the processes that still run inside, which keep their
    host alive until they end."""
    slurm.end(lab)
    inside = processes_inside(lab, lab.hosts)
    try:
        # A pidfd names this process and no later one with its number (pidfd_open(2)).
        descriptor = os.pidfd_open(lab.holder_pid)
    except ProcessLookupError:
        state.remove(lab)
        return inside
    try:
        if state.is_alive(lab):
            _end(lab, descriptor)
    finally:
        os.close(descriptor)
    state.remove(lab)
    return inside


def _end(lab, descriptor):
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal.pidfd_send_signal(descriptor, number)
        if select.select([descriptor], [], [], END_TIMEOUT_S)[0]:
            return
    raise UserError(f"the holder of lab '{lab.name}', process {lab.holder_pid}, does not end")


def processes_inside(lab, hosts):
    """The pids of the processes in these hosts of the lab, as far as this user may see them."""
    try:
        inodes = {os.stat(host.net_namespace).st_ino for host in hosts}
    except OSError:
        return []  # the holder has ended, and nothing leads to its namespaces any more
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != lab.holder_pid:
            try:
                if os.stat(f"/proc/{name}/ns/net").st_ino in inodes:
                    found.append(int(name))
            except OSError:
                continue  # it has ended, or belongs to somebody else
    return found
