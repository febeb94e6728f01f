"""Which process holds which RDMA device: the kernel's resource lists, by netlink (linux/rdma/rdma_netlink.h).

Owner: the collector's thread. Invariants: optional; a kernel without it, or one that refuses, gives no
processes and one Notice; asked at most every two seconds.
"""

import errno
import socket

from ..model import Process
from .netlink import attribute, attributes, dump, open_socket, pack_u32, u32
from .printable import printable
from .processes import command_of

NETLINK_RDMA = 20
CLIENT_NLDEV = 5
GET_DEVICES = CLIENT_NLDEV << 10 | 1  # RDMA_NLDEV_CMD_GET
GET_QUEUE_PAIRS = CLIENT_NLDEV << 10 | 10  # RDMA_NLDEV_CMD_RES_QP_GET
DEV_INDEX, DEV_NAME, RES_QP, RES_QP_ENTRY, RES_PID = 1, 2, 19, 20, 28
ASK_NS = 2_000_000_000
# A kernel without RDMA is no trouble worth a line.
ABSENT = (errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT)


def parse_device(payload):
    """(index, name) of an answer to GET_DEVICES."""
    found = dict(attributes(payload))
    return u32(found.get(DEV_INDEX, b"")), printable(found.get(DEV_NAME, b""))


def parse_pids(payload):
    """The pids that have queue pairs, from an answer to GET_QUEUE_PAIRS. Kernel users have none."""
    pids = set()
    for kind, table in attributes(payload):
        if kind == RES_QP:
            for entry_kind, entry in attributes(table):
                if entry_kind == RES_QP_ENTRY:
                    pids.update(u32(value) for name, value in attributes(entry) if name == RES_PID)
    return pids - {0}


class RdmaHolders:
    """Device name -> the processes that hold it."""

    def __init__(self, make_socket=lambda: open_socket(NETLINK_RDMA)):
        self._make_socket = make_socket
        self._link = None
        self._asked = None
        self._held = {}
        self.trouble = ""  # why there is nothing

    def close(self):
        if self._link:
            self._link.close()
            self._link = None

    def read(self, time_ns):
        """{device name: (Process, ...)}, not older than two seconds."""
        if self._asked is None or time_ns - self._asked >= ASK_NS:
            self._asked = time_ns
            try:
                self._held = self._ask()
                self.trouble = ""
            except (OSError, socket.timeout) as error:
                self._held = {}
                self.close()
                refused = getattr(error, "errno", None) not in ABSENT
                self.trouble = f"the kernel does not say who holds RDMA devices ({error})" if refused else ""
        return self._held

    def _ask(self):
        if self._link is None:
            self._link = self._make_socket()
        held = {}
        for payload in dump(self._link, GET_DEVICES, b""):
            index, name = parse_device(payload)
            pids = set()
            for answer in dump(self._link, GET_QUEUE_PAIRS, attribute(DEV_INDEX, pack_u32(index))):
                pids |= parse_pids(answer)
            held[name] = tuple(Process(pid, command_of(pid)) for pid in sorted(pids))
        return held
