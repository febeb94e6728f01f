"""A Slurm in a lab: slurmctld on the first host and one slurmd on each, so that srun, sbatch and salloc work there.

Invariants: all of it runs as the lab's user and lives in one directory of its own below /tmp, whose path is short,
because step daemons make sockets in it (unix(7): 108 bytes). Daemons, steps and clients are known by SLURM_CONF in
their environment, by which `end` finds them all. Their guard, which has it too, ends them when the lab's holder has
ended without `down`: the kernel removes namespaces, but no processes. Jobs are not authenticated (auth/none): only the
lab's own processes reach its network.
"""

import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time

from . import namespaces
from .errors import UserError
from .plan import Slurm

PACKAGES = "slurmctld slurmd slurm-client"
PROGRAMS = ("slurmctld", "slurmd", "sinfo", "srun")
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
READY_TIMEOUT_S = 20
END_TIMEOUT_S = 5
# A slurmd whose controller has ended does not end when it is asked.
KILL_AFTER_S = 1
# Far more tasks than cores may run on a host: a lab is for trying things.
CPUS_PER_HOST = 64

# What the guard runs; exec makes it small and shows its purpose in ps.
GUARD = "import sys; sys.path.insert(0, sys.argv[1]); from weft_lab import slurm; slurm.guard(int(sys.argv[2]), sys.argv[3])"

# %n is the node's name: daemons of several nodes share this machine's file system.
_CONFIGURATION = """\
ClusterName=weft
SlurmctldHost={hostname}({controller})
SlurmUser={uid}
SlurmdUser={uid}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
MailProg=/bin/true
KillWait=2
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/%n
TmpFS={directory}/%n/tmp
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/%n.log
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def require_programs():
    """A UserError that names what is missing."""
    missing = [name for name in PROGRAMS if not _find(name)]
    if missing:
        raise UserError(
            f"up --slurm: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; "
            f"on Debian and Ubuntu: apt-get install --no-install-recommends {PACKAGES}"
        )


def _find(name):
    return shutil.which(name, path=SEARCH_PATH)


def start(lab):
    """Start the daemons of a lab that is up, wait until every host is idle, and note them in `lab`."""
    lab.slurm = Slurm(tempfile.mkdtemp(prefix="weft-slurm-", dir="/tmp"), os.geteuid(), os.getegid())
    try:
        _start_guard(lab)
        _write_files(lab)
        daemons = [_start_daemon(lab, lab.hosts[0], [_find("slurmctld"), "-D", "-c"])]
        for host in lab.hosts:
            daemons.append(start_node(lab, host))
        _wait_until_idle(lab, daemons)
    except BaseException:
        end(lab)
        raise


def _start_guard(lab):
    """A process that waits until the holder has ended. `end` ends it, as everything of this Slurm."""
    if os.fork():
        return
    try:
        os.setsid()
        os.chdir("/")
        # Else it would keep the pipes of whoever called weft-lab. Others close on exec (PEP 446).
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        arguments = ["-I", "-S", "-c", GUARD, package, str(lab.holder_pid), lab.slurm.directory, "weft-lab-guard", lab.name]
        environment = {"SLURM_CONF": lab.slurm.configuration, "PYTHONDONTWRITEBYTECODE": "1"}
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    finally:
        os._exit(1)


def guard(holder_pid, directory):
    """Wait for the end of the holder, then end the Slurm that lives in `directory`."""
    try:
        descriptor = os.pidfd_open(holder_pid)
        select.select([descriptor], [], [])
    except ProcessLookupError:
        pass  # it has ended already
    end_all(Slurm(directory, os.geteuid(), os.getegid()))


def _write_files(lab):
    directory = lab.slurm.directory
    names = "127.0.0.1 localhost\n" + "".join(f"{host.nics[0].address} {host.name}\n" for host in lab.hosts)
    nodes = "\n".join(
        f"NodeName={host.name} NodeAddr={host.nics[0].address} CPUs={CPUS_PER_HOST}" for host in lab.hosts
    )
    os.makedirs(os.path.join(directory, "state"))
    for host in lab.hosts:
        os.makedirs(os.path.join(directory, host.name, "tmp"))
    with open(lab.slurm.hosts_file, "w", encoding="utf-8") as file:
        file.write(names)
    with open(lab.slurm.configuration, "w", encoding="utf-8") as file:
        file.write(
            _CONFIGURATION.format(
                # slurmctld compares this name with gethostname's, of which a lab's hosts have one
                # together.
                hostname=socket.gethostname().partition(".")[0],
                controller=lab.hosts[0].nics[0].address,
                uid=lab.slurm.uid,
                directory=directory,
                nodes=nodes,
            )
        )


def enter(lab, host):
    """Move this process into a host whose names resolve, as the user for whom the daemons run."""
    namespaces.enter_host(lab, host)
    os.environ["SLURM_CONF"] = lab.slurm.configuration
    namespaces.bind_file(lab.slurm.hosts_file, "/etc/hosts")
    if lab.user_namespace:
        # slurmctld, as root of a user namespace, dies in setgroups; as its real user it does not
        # call it.
        namespaces.unshare_user(lab.slurm.uid, lab.slurm.gid)


def _child(lab, host, command, output):
    """Run `command` in a host, in a session of its own; returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        enter(lab, host)
        os.execv(command[0], command)
    except BaseException as error:  # noqa: BLE001 - the child must not go on as its parent
        os.write(output, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(1)


def start_node(lab, host):
    """Start the daemon of a host; returns its pid and its output file."""
    return _start_daemon(lab, host, [_find("slurmd"), "-D", "-N", host.name])


def _start_daemon(lab, host, command):
    path = os.path.join(lab.slurm.directory, os.path.basename(command[0]) + f"-{host.name}.out")
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    pid = _child(lab, host, command, output)
    os.close(output)
    return pid, path


def _wait_until_idle(lab, daemons):
    end_time = time.monotonic() + READY_TIMEOUT_S
    time.sleep(0.2)  # a client that comes before its controller waits long
    while True:
        # The controller stands first: what other daemons report after its end is a consequence.
        ended = [os.path.basename(path) for pid, path in daemons if os.waitpid(pid, os.WNOHANG)[0]]
        if ended or time.monotonic() > end_time:
            error = (ended and _last_error(lab, ended[:1])) or _last_error(lab, sorted(os.listdir(lab.slurm.directory)))
            raise UserError(f"Slurm did not start: {error or 'no daemon reported an error'}")
        if _states(lab, [pid for pid, _ in daemons], end_time) == ["idle"] * len(lab.hosts):
            return
        time.sleep(0.05)


def _states(lab, daemons, end_time):
    """The state of every node, as sinfo tells, or nothing if a daemon or the time ends before sinfo does."""
    read_end, write_end = os.pipe()
    pid = _child(lab, lab.hosts[0], [_find("sinfo"), "-h", "-N", "-o", "%T"], write_end)
    os.close(write_end)
    watched = [os.pidfd_open(process) for process in (pid, *daemons)]
    ended, _, _ = select.select(watched, [], [], max(0, end_time - time.monotonic()))
    if watched[0] not in ended:
        os.kill(pid, signal.SIGKILL)
    for descriptor in watched:
        os.close(descriptor)
    os.waitpid(pid, 0)
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as pipe:
        return pipe.read().split()


def _last_error(lab, names):
    """The last line about an error in these files of the daemons."""
    found = None
    for name in names:
        if name.endswith((".log", ".out")):
            with open(os.path.join(lab.slurm.directory, name), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file if "error" in line or "fatal" in line or "cannot" in line]
            found = f"{name}: {lines[-1]}" if lines else found
    return found


def end(lab):
    """End the daemons, all steps, all clients and the guard of the lab's Slurm, if it has one, and remove its directory."""
    if lab.slurm:
        end_all(lab.slurm)


def end_all(slurm):
    start_time = time.monotonic()
    number = signal.SIGTERM
    # Again until there are none: a daemon may start a process while it is ended.
    while processes := processes_of(slurm):
        taken = time.monotonic() - start_time
        if taken > KILL_AFTER_S:
            number = signal.SIGKILL
        if taken > END_TIMEOUT_S:
            raise UserError(f"processes of the lab's Slurm do not end: {' '.join(map(str, processes))}")
        for pid in processes:
            _signal(pid, number)
    shutil.rmtree(slurm.directory, ignore_errors=True)


def _signal(pid, number):
    """Signal it, and wait for it for a moment. A pidfd names this process and no later one with its number."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, number)
        select.select([descriptor], [], [], 0.2)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(descriptor)


def processes_of(slurm):
    """The pids of all living processes with this SLURM_CONF, but for this one."""
    wanted = b"SLURM_CONF=" + slurm.configuration.encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return found
