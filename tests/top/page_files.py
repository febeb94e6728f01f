"""Counter pages as a library of version 2 writes them, written out a second time from the format's description, so
that a mistake in weft-top's own table of the format does not hide itself."""

import os
import struct

from weft_top.sources.processes import start_ticks

MAGIC, HEADER_BYTES, RAIL_BYTES = 0x54464557, 384, 256


class PageFile:
    """One page. Change its fields, then save()."""

    def __init__(self, folder, pe=0, pe_count=2, rails=4, job="job-1", pid=None):
        self.pe, self.pe_count, self.job = pe, pe_count, job
        self.pid = pid or os.getpid()
        self.ticks = start_ticks(self.pid) or 1
        self.policy, self.host, self.version = "coupled", "node0", 2
        self.namespace = os.stat("/proc/self/ns/net").st_ino
        self.rails = [dict(nic=f"nic{rail}", address=f"10.0.0.{rail + 1}", up=1, warm=1, rate=0, outstanding=0,
                           tx_bytes=0, rx_bytes=0, tx_operations=0, rx_operations=0, tx_signals=0, rx_signals=0,
                           retries=0, errors=0, rx_message_bytes=0, refused=0) for rail in range(rails)]
        self.peers = {}  # (peer, rail) -> (put, get)
        self.overrides = {}  # offset -> u32 put there in the end
        self.path = folder / f"weft-{os.getuid()}-{job}-{pe}-{self.pid}.page".replace("/", "_")

    def bytes(self):
        rails_offset = HEADER_BYTES
        peers_offset = rails_offset + len(self.rails) * RAIL_BYTES
        table = bytearray(self.pe_count * len(self.rails) * 16)
        size = peers_offset + len(table)
        data = bytearray(size)
        words = (MAGIC, self.version, HEADER_BYTES, RAIL_BYTES, len(self.rails), 16, len(self.rails), self.pe,
                 self.pe_count)
        for index, word in enumerate(words):
            struct.pack_into("<I", data, index * 4, word)
        struct.pack_into("<i", data, 36, self.pid)
        offsets = (self.ticks, size, rails_offset, peers_offset if table else 0, self.namespace, 123)
        struct.pack_into("<6Q", data, 40, *offsets)
        struct.pack_into("<IIQ", data, 88, os.getuid(), 0, 0)
        for offset, room, text in ((104, 64, self.job), (168, 16, self.policy), (184, 64, self.host)):
            text = text.encode() if isinstance(text, str) else text
            data[offset:offset + room] = text[:room].ljust(room, b"\0")
        for index, rail in enumerate(self.rails):
            self._rail(data, rails_offset + index * RAIL_BYTES, rail)
        for (peer, rail), values in self.peers.items():
            struct.pack_into("<QQ", data, peers_offset + (peer * len(self.rails) + rail) * 16, *values)
        for offset, word in self.overrides.items():
            struct.pack_into("<I", data, offset, word)
        return bytes(data)

    @staticmethod
    def _rail(data, start, rail):
        for offset, room, text in ((0, 32, rail["nic"]), (32, 64, rail["address"]), (184, 32, "tcp")):
            text = text.encode() if isinstance(text, str) else text
            data[start + offset:start + offset + room] = text[:room].ljust(room, b"\0")
        names = ("tx_bytes", "rx_bytes", "tx_operations", "rx_operations", "tx_signals", "rx_signals", "outstanding",
                 "retries", "errors")
        struct.pack_into("<9Q", data, start + 96, *(rail[name] for name in names))
        struct.pack_into("<IIQ", data, start + 168, rail["up"], rail["warm"], rail["rate"])
        struct.pack_into("<2Q", data, start + 216, rail["rx_message_bytes"], rail["refused"])

    def save(self):
        """Write it in place, as a mapping would change."""
        flags = os.O_WRONLY | os.O_CREAT
        descriptor = os.open(self.path, flags, 0o644)
        try:
            os.pwrite(descriptor, self.bytes(), 0)
        finally:
            os.close(descriptor)
        return self
