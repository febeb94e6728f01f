"""Making and entering namespaces, by the C library's unshare and setns.

Invariants: single-threaded callers only (setns(2) refuses to move a thread of a multi-threaded process
into a user namespace); nothing is ever bound into the file system, so a namespace lives exactly as long
as an open file descriptor or a process in it.
"""

import ctypes
import errno
import os

from .errors import ForbiddenError

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

# linux/mount.h
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

# linux/capability.h
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *arguments):
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def has_capabilities():
    """Whether this process may make network namespaces and configure them without a user namespace."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("CapEff:"))
    effective = int(line.split()[1], 16)
    return all(effective >> capability & 1 for capability in (CAP_NET_ADMIN, CAP_SYS_ADMIN))


def unshare_user(uid_inside=0, gid_inside=0):
    """Enter a new user namespace in which the caller is root, or another user; user_namespaces(7), "Defining user
    and group ID mappings": without privileges one may map only oneself, and must deny setgroups first."""
    uid, gid = os.geteuid(), os.getegid()
    maps = (("uid_map", f"{uid_inside} {uid} 1"), ("gid_map", f"{gid_inside} {gid} 1"))
    try:
        _call(_libc.unshare, CLONE_NEWUSER)
        for path, text in (("setgroups", "deny"), *maps):
            with open(f"/proc/self/{path}", "w", encoding="ascii") as file:
                file.write(text)
    except OSError as error:
        raise forbidden("user namespace", error) from error


def unshare_net():
    """Enter a new network namespace and return a file descriptor that keeps it."""
    try:
        _call(_libc.unshare, CLONE_NEWNET)
    except OSError as error:
        raise forbidden("network namespace", error) from error
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def bind_file(source, target):
    """Let `target` be `source` for this process and those that it starts, and for nobody else."""
    if not os.path.exists(target):
        return
    _call(_libc.unshare, CLONE_NEWNS)
    # Else the mount would be everybody's where mounts are shared (mount_namespaces(7)).
    _call(_libc.mount, None, b"/", None, MS_REC | MS_PRIVATE, None)
    _call(_libc.mount, os.fsencode(source), os.fsencode(target), None, MS_BIND, None)


def forbidden(what, error):
    """The one message for every way in which namespaces are refused, with the settings to look at."""
    if error.errno == errno.ENOSPC:
        advice = "raise user.max_user_namespaces and user.max_net_namespaces"
    else:
        advice = (
            "look at the sysctls kernel.apparmor_restrict_unprivileged_userns (Ubuntu; wants 0), "
            "kernel.unprivileged_userns_clone (Debian; wants 1) and user.max_user_namespaces, in a "
            "container at its seccomp profile; or run as root"
        )
    return ForbiddenError(f"making a {what} is forbidden here ({error.strerror}); {advice}")


def enter(path, kind):
    """Move into the namespace at `path`. Moving into one's present user namespace is no error here,
    although setns(2) says EINVAL."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        here = os.stat("/proc/self/ns/" + ("user" if kind == CLONE_NEWUSER else "net"))
        there = os.fstat(descriptor)
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            _call(_libc.setns, descriptor, kind)
    finally:
        os.close(descriptor)


def enter_user(lab):
    """Move into the lab's user namespace, if it has one."""
    if lab.user_namespace:
        enter(lab.user_namespace, CLONE_NEWUSER)


def enter_host(lab, host):
    """Move into a host. There is no way back for a rootless caller, and none is needed."""
    enter_user(lab)
    enter(host.net_namespace, CLONE_NEWNET)


def enter_switch(lab):
    """Move into the namespace of the switch."""
    enter_user(lab)
    enter(lab.switch_namespace, CLONE_NEWNET)
