"""The state files: which labs there are, and where their namespaces are found.

Invariants: a file appears and changes atomically; it is written only once the lab is complete; a file
whose holder is gone is stale and is removed by whoever meets it. README.md states the format, which
weft-run reads: change both or neither.
"""

import fcntl
import json
import os
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import asdict

from .errors import UserError
from .plan import PREFIX_LENGTH, Host, Lab, Nic, Slurm, check_name

VERSION = 1


def state_directory():
    """The directory of this user's state files, made if it is missing."""
    path = os.environ.get("WEFT_LAB_DIR")
    if not path:
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        path = os.path.join(runtime, "weft-lab") if runtime else f"/tmp/weft-lab-{os.getuid()}"
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError as error:
        raise UserError(f"cannot use the state directory {path} ({error.strerror}); set WEFT_LAB_DIR") from error
    # In /tmp anybody may have made it first; following their link or trusting their file would be
    # theirs to use.
    if not stat.S_ISDIR(status.st_mode) or (status.st_uid != os.geteuid() and os.geteuid() != 0):
        raise UserError(f"the state directory {path} is not yours; set WEFT_LAB_DIR to one that is")
    return path


def state_path(name):
    return os.path.join(state_directory(), f"{check_name(name)}.json")


@contextmanager
def directory_lock():
    """Excludes other writers. The lock is on the directory itself, so that no lock file stays behind."""
    descriptor = os.open(state_directory(), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def start_time(pid):
    """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None if there is no such process, or only its corpse."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The second field is the command's name and may contain blanks and brackets.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_alive(lab):
    """Whether the holder lives, and is not another process that got its number."""
    return start_time(lab.holder_pid) == lab.holder_start_time


def to_document(lab):
    def nic_document(nic):
        return {
            "index": nic.index,
            "name": nic.name,
            "address": nic.address,
            "prefix": PREFIX_LENGTH,
            "mac": nic.mac,
            "rate_bits_per_s": nic.rate_bits_per_s,
        }

    def host_document(host):
        return {
            "index": host.index,
            "name": host.name,
            "net_namespace": host.net_namespace,
            "nics": [nic_document(nic) for nic in host.nics],
        }

    return {
        "version": VERSION,
        "name": lab.name,
        "holder_pid": lab.holder_pid,
        "holder_start_time": lab.holder_start_time,
        "user_namespace": lab.user_namespace,
        "switch_namespace": lab.switch_namespace,
        "hosts": [host_document(host) for host in lab.hosts],
        "slurm": asdict(lab.slurm) if lab.slurm else None,
    }


def from_document(document):
    def nic_from(host_index, nic):
        return Nic(nic["index"], host_index, nic["rate_bits_per_s"])

    hosts = [
        Host(host["index"], [nic_from(host["index"], nic) for nic in host["nics"]], host["net_namespace"])
        for host in document["hosts"]
    ]
    return Lab(
        document["name"],
        hosts,
        document["holder_pid"],
        document["holder_start_time"],
        document["user_namespace"],
        document["switch_namespace"],
        Slurm(**document["slurm"]) if document.get("slurm") else None,
    )


def write(lab, replace):
    """Put the state file in place; without `replace`, an existing one is a FileExistsError."""
    path = state_path(lab.name)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(to_document(lab), file, indent=1)
            file.write("\n")
        if replace:
            os.rename(temporary, path)
        else:
            os.link(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["version"] != VERSION:
            raise UserError(f"{path} is of version {document['version']}, this weft-lab reads {VERSION}")
        return from_document(document)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}); delete it") from error


def remove(lab):
    """Delete the lab's file, unless another lab of that name has taken its place since."""
    path = state_path(lab.name)
    with directory_lock():
        try:
            present = read(path)
        except FileNotFoundError:
            return
        if (present.holder_pid, present.holder_start_time) == (lab.holder_pid, lab.holder_start_time):
            os.unlink(path)


def labs():
    """All living labs, by name; removes stale files on the way."""
    names = sorted(name[:-5] for name in os.listdir(state_directory()) if name.endswith(".json"))
    return [lab for lab in (find_or_none(name) for name in names) if lab]


def find_or_none(name):
    """The living lab of that name, or None; removes a stale file."""
    try:
        lab = read(state_path(name))
    except FileNotFoundError:
        return None
    if is_alive(lab):
        return lab
    remove(lab)
    return None


def find(name):
    """The living lab of that name, or a UserError that says which there are."""
    lab = find_or_none(name)
    if lab:
        return lab
    others = ", ".join(f"'{other.name}'" for other in labs())
    hint = f"there is {others}" if others else "start one with: weft-lab up"
    raise UserError(f"no lab '{name}' is up; {hint}")
