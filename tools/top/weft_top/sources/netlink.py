"""As much of netlink as weft-top needs: ask for a dump, read its messages and attributes (netlink(7)).

Owner: the thread that asks. Invariants: every socket has a timeout, so nothing hangs; a message that does not
fit its buffer ends the dump, never the program.
"""

import os
import socket
from struct import Struct, pack, unpack_from

# linux/netlink.h
NLM_F_REQUEST = 0x1
NLM_F_DUMP = 0x300
NLMSG_ERROR = 2
NLMSG_DONE = 3
TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER

_HEADER = Struct("=IHHII")
_ATTRIBUTE = Struct("=HH")
TIMEOUT_S = 2.0
RECEIVE_BYTES = 1 << 16


def open_socket(protocol):
    """A netlink socket of this thread's network namespace; an OSError where the kernel has no such protocol."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    made.settimeout(TIMEOUT_S)
    return made


def attribute(kind, data):
    """One attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind) + data + bytes(-len(data) % 4)


def dump(link, kind, body):
    """The payloads (bytes) of the answer to a request of `kind`; OSError if the kernel refuses."""
    header = _HEADER.pack(_HEADER.size + len(body), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
    link.send(header + body)
    payloads = []
    while not take_messages(link.recv(RECEIVE_BYTES), payloads):
        pass
    return payloads


def take_messages(data, payloads):
    """Append the payloads in one received datagram; true when the dump is complete."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            return True
        if kind == NLMSG_DONE:
            return True
        if kind == NLMSG_ERROR:
            number = -unpack_from("=i", data, offset + _HEADER.size)[0]
            if number:
                raise OSError(number, os.strerror(number))
            return True
        payloads.append(data[offset + _HEADER.size:offset + length])
        offset += (length + 3) & ~3
    return False


def attributes(data, offset=0):
    """Yields (kind, bytes) of the attributes from `offset` on."""
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            return
        yield kind & TYPE_MASK, data[offset + _ATTRIBUTE.size:offset + length]
        offset += (length + 3) & ~3


def u32(data):
    return unpack_from("=I", data)[0] if len(data) >= 4 else 0


def pack_u32(value):
    return pack("=I", value)
