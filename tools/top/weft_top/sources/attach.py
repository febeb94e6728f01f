"""Opens what weft-top reads in a lab's hosts, in a process of its own, and hands the descriptors back.

Run by namespaces.py as `python attach.py DESCRIPTOR`, with {"user": path or null, "hosts": [path]} on standard
input. A process that enters a user namespace must have one thread and cannot go back, so weft-top itself stays
where it is. For each host one message goes back, with four descriptors: /proc/net/dev, and two netlink sockets
(one to ask, one that hears of changes), and the namespace itself; or the text of an error, without any.
"""

import ctypes
import json
import os
import socket
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
# linux/rtnetlink.h: RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
CHANGES = 0x1 | 0x10 | 0x100


def route_sockets():
    """(a socket to ask, a socket that hears of changes) in the present namespace."""
    ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    hear = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    hear.bind((0, CHANGES))
    return ask, hear


def enter(path, kind):
    """Move into a namespace; returns its descriptor. The one we are in is no error, although setns(2) says so."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    here = os.stat("/proc/self/ns/" + ("user" if kind == CLONE_NEWUSER else "net"))
    there = os.fstat(descriptor)
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, kind) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    return descriptor


def main():
    request = json.load(sys.stdin)
    with socket.socket(fileno=int(sys.argv[1])) as answers:
        try:
            if request["user"]:
                os.close(enter(request["user"], CLONE_NEWUSER))
            for path in request["hosts"]:
                namespace = enter(path, CLONE_NEWNET)
                counters = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
                ask, hear = route_sockets()
                socket.send_fds(answers, [b"host"], [counters, ask.fileno(), hear.fileno(), namespace])
                os.close(counters)
                os.close(namespace)
                ask.close()
                hear.close()
        except OSError as error:
            answers.send((error.strerror or str(error)).encode())


if __name__ == "__main__":
    main()
