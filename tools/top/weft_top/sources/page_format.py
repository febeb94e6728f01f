"""The layout of a counter page, version 2, as the library writes it: one file for each PE. Pure.

The same offsets as in src/base/counters.hpp. To add a counter: docs/DEVELOPING.md, "A metric of weft-top".

Invariants: everything is little-endian and naturally aligned; a page whose numbers do not fit its own file is
refused as a whole with a PageError, so that nothing is read beyond what is there.
"""

from dataclasses import dataclass
from struct import Struct

from ..model import PeerTraffic, Rail
from .printable import printable

MAGIC = 0x54464557
VERSION = 2
HEADER_BYTES = 384
RAIL_BYTES = 256
PEER_BYTES = 16
# Far above anything sensible; what claims more is damaged.
FILE_BYTES_MAX = 256 << 20
RAIL_COUNT_MAX = 4096

# magic version header_bytes rail_bytes rail_count peer_rail_bytes stride pe pe_count pid
# start_ticks file_bytes rails_offset peers_offset network_namespace started_ns uid node heartbeat
# job policy host version_text
HEADER = Struct("<9Ii6Q2IQ64s16s64s16s")
# A rail: nic, address; then tx and rx of bytes, operations, signals, then outstanding retries
# errors up warm rate.
RAIL_TEXTS = Struct("<32s64s")
RAIL_TEXT_BYTES = RAIL_TEXTS.size
# Behind the numbers comes the provider, 32 bytes, which nothing shows.
RAIL_NUMBERS = Struct("<9QIIQ32x2Q")


class PageError(Exception):
    """What is wrong with a page; the text follows the file's name."""


@dataclass(frozen=True, slots=True)
class Header:
    """The part of a page that stays as it is."""

    pe: int
    pe_count: int
    pid: int
    start_ticks: int  # 0: not known
    file_bytes: int
    rail_count: int
    stride: int  # rails for each peer in the table of peers
    rails_offset: int
    peers_offset: int  # 0: no table
    network_namespace: int
    started_ns: int
    uid: int
    node: int
    job: str
    policy: str
    host: str

    def rails_end(self):
        return self.rails_offset + self.rail_count * RAIL_BYTES

    def peers_end(self):
        return self.peers_offset + self.pe_count * self.stride * PEER_BYTES if self.peers_offset else 0


def parse_header(data, size):
    """The Header in `data` (bytes) of a file of `size` bytes, or a PageError."""
    if len(data) < HEADER.size:
        raise PageError(f"is truncated: {size} bytes, a header has {HEADER_BYTES}")
    (magic, version, header_bytes, rail_bytes, rail_count, peer_bytes, stride, pe, pe_count, pid, ticks, file_bytes,
     rails_offset, peers_offset, namespace, started_ns, uid, node, _, job, policy, host, _) = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise PageError("is no counter page")
    if version != VERSION:
        raise PageError(f"is of version {version}, this weft-top reads {VERSION}; use the weft-top of that Weft")
    if (header_bytes, rail_bytes, peer_bytes) != (HEADER_BYTES, RAIL_BYTES, PEER_BYTES):
        raise PageError("is damaged: its blocks have other sizes than version 2 says")
    header = Header(
        pe, pe_count, pid, ticks, file_bytes, rail_count, stride, rails_offset, peers_offset, namespace, started_ns,
        uid, node, printable(job), printable(policy), printable(host),
    )  # fmt: skip
    _check_sizes(header, size)
    return header


def _check_sizes(header, size):
    if header.file_bytes > size or size > FILE_BYTES_MAX:
        raise PageError(f"is truncated: {size} bytes, its header says {header.file_bytes}")
    inside = HEADER_BYTES <= header.rails_offset and header.rails_end() <= header.file_bytes
    if header.peers_offset:
        inside = inside and HEADER_BYTES <= header.peers_offset and header.peers_end() <= header.file_bytes
    if header.rail_count > RAIL_COUNT_MAX or (header.rail_count and not inside) or header.pe >= header.pe_count:
        raise PageError("is damaged: its counts do not fit its size")


def parse_rail(index, data, offset, texts=None):
    """One rail block; `texts` is (nic, address) where they are known to be what they were."""
    (tx_bytes, rx_bytes, tx_operations, rx_operations, tx_signals, rx_signals, outstanding, retries, errors, up, warm,
     rate, rx_message_bytes, refused) = RAIL_NUMBERS.unpack_from(data, offset + RAIL_TEXT_BYTES)
    if texts is None:
        texts = [printable(text) for text in RAIL_TEXTS.unpack_from(data, offset)]
    counters = {
        "tx_bytes": tx_bytes, "rx_bytes": rx_bytes, "tx_operations": tx_operations, "rx_operations": rx_operations,
        "tx_signals": tx_signals, "rx_signals": rx_signals, "retries": retries, "errors": errors,
        "rx_message_bytes": rx_message_bytes, "refused": refused,
    }  # fmt: skip
    return Rail(index, *texts, up != 0, warm != 0, rate or None, outstanding, counters)


def parse_peers(table, stride):
    """The PeerTraffic of all rails that have seen any, from the bytes of the table."""
    words = memoryview(table).cast("Q").tolist()
    pairs = zip(words[::2], words[1::2])
    return tuple([PeerTraffic(index // stride, index % stride, put, got)
                  for index, (put, got) in enumerate(pairs) if put or got])
