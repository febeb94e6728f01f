"""What the kernel says of a namespace's interfaces beside their counters: state, address, driver, line rate.

Owner: the collector's thread. Invariants: asked when the kernel announces a change, when a name is new, and
every ten seconds; counters never come from here (interfaces.py reads them).
"""

import os
import socket
from dataclasses import dataclass
from struct import pack, unpack_from
from typing import Optional

from .netlink import TIMEOUT_S, attribute, attributes, dump, pack_u32
from .printable import printable

# linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/if.h
RTM_GETLINK, RTM_GETADDR = 18, 22
IFLA_ADDRESS, IFLA_IFNAME, IFLA_OPERSTATE, IFLA_LINKINFO, IFLA_EXT_MASK, INFO_KIND = 1, 3, 16, 18, 29, 1
RTEXT_FILTER_SKIP_STATS = 1 << 3
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFF_UP_RUNNING = 0x1 | 0x40
OPERSTATES = {1: "down", 2: "down", 3: "down", 5: "down", 6: "up"}  # 0 and 4 say nothing
ASK_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Link:
    """One interface, without its counters."""

    index: int
    state: str = "unknown"
    address: str = ""
    driver: str = ""
    rate_bits_per_s: Optional[int] = None


UNKNOWN = Link(0)


def parse_link(payload):
    """(name in bytes, Link) of one answer to RTM_GETLINK."""
    _, _, index, flags = unpack_from("=BxHiI", payload)
    name, state, address, kind = b"", 0, "", ""
    for number, value in attributes(payload, 16):
        if number == IFLA_IFNAME:
            name = value.rstrip(b"\0")
        elif number == IFLA_OPERSTATE:
            state = value[0]
        elif number == IFLA_ADDRESS and any(value):
            address = value.hex(":")
        elif number == IFLA_LINKINFO:
            kind = printable(dict(attributes(value)).get(INFO_KIND, b""))
    words = OPERSTATES.get(state) or ("up" if flags & IFF_UP_RUNNING == IFF_UP_RUNNING else "down")
    return name, Link(index, words, address, kind)


def parse_address(payload):
    """(interface's index, family, address) of one answer to RTM_GETADDR."""
    family, _, _, _, index = unpack_from("=BBBBI", payload)
    found = dict(attributes(payload, 8))
    data = found.get(IFA_LOCAL) or found.get(IFA_ADDRESS) or b""
    if len(data) != {socket.AF_INET: 4, socket.AF_INET6: 16}.get(family):
        return index, family, ""
    return index, family, socket.inet_ntop(family, data)


class LinkTable:
    """The interfaces of one namespace, through two netlink sockets that were opened inside it."""

    def __init__(self, ask, hear, sysfs=None):
        self._ask, self._hear = ask, hear
        self._sysfs = sysfs  # of the same namespace, or None
        self._links = {}
        self._asked = None
        ask.settimeout(TIMEOUT_S)
        hear.setblocking(False)

    def close(self):
        self._ask.close()
        self._hear.close()

    def read(self, time_ns):
        """{name in bytes: Link}; the same dictionary as before when nothing has changed."""
        if self._changed() or self._asked is None or time_ns - self._asked >= ASK_NS:
            self._asked = time_ns
            links = self._dump()
            if links != self._links:
                self._links = links
        return self._links

    def forget(self):
        """Ask again at the next read: a name came up that is not known."""
        self._asked = None

    def _changed(self):
        changed = False
        while True:
            try:
                self._hear.recv(1 << 16)
            except BlockingIOError:
                return changed
            except OSError:
                return True  # it was so much that the kernel dropped some: ENOBUFS
            changed = True

    def _dump(self):
        body = pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0)
        mask = attribute(IFLA_EXT_MASK, pack_u32(RTEXT_FILTER_SKIP_STATS))
        links = dict(parse_link(payload) for payload in dump(self._ask, RTM_GETLINK, body + mask))
        addresses = {}
        for payload in dump(self._ask, RTM_GETADDR, pack("=BBBBI", socket.AF_UNSPEC, 0, 0, 0, 0)):
            index, family, address = parse_address(payload)
            # The first IPv4 address, else the first of IPv6.
            if address and (index not in addresses or addresses[index][0] > family):
                addresses[index] = (family, address)
        return {name: self._complete(name, link, addresses) for name, link in links.items()}

    def _complete(self, name, link, addresses):
        address = addresses.get(link.index, (0, link.address))[1]
        driver, rate = link.driver, None
        folder = os.path.join(self._sysfs, os.fsdecode(name)) if self._sysfs else ""
        if folder and _first_line(folder, "ifindex") == str(link.index):
            speed = _first_line(folder, "speed")
            rate = int(speed) * 1_000_000 if speed.isdigit() and int(speed) > 0 else None
            driver = driver or driver_of(folder)
        return Link(link.index, link.state, address, driver, rate)


def _first_line(folder, name):
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read(64).decode("ascii", errors="replace").strip()
    except OSError:
        return ""  # a virtual interface has no speed: EINVAL


def driver_of(folder):
    """Of an interface or RDMA device, from its folder in sysfs; "" where that does not say."""
    try:
        return printable(os.path.basename(os.readlink(os.path.join(folder, "device", "driver"))))
    except OSError:
        return ""
