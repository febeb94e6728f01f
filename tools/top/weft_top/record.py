"""Recordings: `--record` writes what was seen, `--replay` gives it back. docs/RECORDING.md has the format.

Owner: one thread for each object. Invariants: after each frame the file is whole, so that a program that is
killed leaves a recording that can be played; a reader never reads beyond a block whose checksum fits.
"""

import json
import os
import socket
import time
import zlib
from struct import Struct

from .delta import Decoder, Encoder

MAGIC = b"weft-top recording "
VERSION = 1
_BLOCK = Struct("<II")
# No sane frame is larger: 1,000 NICs with 100 counters each take 2 MB.
BLOCK_BYTES_MAX = 64 << 20
HEADER_BYTES_MAX = 4096
# Level 6 makes files a fifth smaller and takes five times as long (32 NICs, 8 PEs, random steps: 84
# and 437 us a look).
LEVEL = 1


class RecordingError(Exception):
    """A file that is no recording; the text names it and says what to do."""


class Recorder:
    """Writes each Snapshot to `path`, which it overwrites. OSError where that fails."""

    name = "record"

    def __init__(self, path):
        # The program may not buffer: what was seen must be there when it is killed.
        self._file = open(path, "wb", buffering=0)
        self._encoder = Encoder()
        self._deflate = zlib.compressobj(LEVEL)
        facts = {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "host": socket.gethostname()}
        self._write(MAGIC + f"{VERSION} {json.dumps(facts)}\n".encode())

    def write(self, snapshot, frame):
        text = json.dumps(self._encoder.encode(snapshot), separators=(",", ":")).encode()
        block = self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._write(_BLOCK.pack(len(block), zlib.crc32(block)) + block)

    def _write(self, data):
        while data:
            data = data[self._file.write(data):]

    def close(self):
        self._file.close()


class Recording:
    """Reads a recording; a RecordingError if `path` is none."""

    def __init__(self, path):
        self.path = path
        self.trouble = ""  # what is wrong with its end; known once snapshots() has ended
        try:
            self._file = open(path, "rb")
        except OSError as error:
            raise RecordingError(f"cannot read {path} ({error.strerror})") from error
        try:
            self.facts = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _read_header(self):
        try:
            line = self._file.readline(HEADER_BYTES_MAX)
        except OSError as error:
            raise RecordingError(f"cannot read {self.path} ({error.strerror})") from error
        version, _, facts = line.removeprefix(MAGIC).partition(b" ")
        if not line.startswith(MAGIC) or not line.endswith(b"\n") or not version.isdigit():
            raise RecordingError(f"{self.path} is no recording of weft-top; make one with: weft-top --record FILE")
        if int(version) != VERSION:
            raise RecordingError(f"{self.path} is of version {int(version)}, this weft-top plays {VERSION}")
        try:
            found = json.loads(facts)
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    def close(self):
        self._file.close()

    def snapshots(self):
        """Yields what was recorded; ends at the first block that is not whole, and says so in `trouble`."""
        inflate, decoder, count = zlib.decompressobj(), Decoder(), 0
        while True:
            try:
                block = self._read_block()
                if block is None:
                    return
                text = inflate.decompress(block, BLOCK_BYTES_MAX)
                snapshot = decoder.decode(json.loads(text))
            except (_Damage, zlib.error, OSError, *Decoder.DAMAGE):
                self.trouble = f"{self.path} is damaged or cut off after frame {count}; what comes before is whole"
                return
            count += 1
            yield snapshot

    def _read_block(self):
        head = self._file.read(_BLOCK.size)
        if not head:
            return None
        if len(head) < _BLOCK.size:
            raise _Damage
        size, checksum = _BLOCK.unpack(head)
        block = self._file.read(size) if size <= BLOCK_BYTES_MAX else b""
        if len(block) != size or zlib.crc32(block) != checksum:
            raise _Damage
        return block


class _Damage(Exception):
    """A block that is not whole."""


def same_file(first, second):
    """Whether two paths mean one file, which cannot be read and overwritten at once."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False
