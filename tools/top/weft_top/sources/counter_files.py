"""Small files that hold one number, read again and again: below /sys, by pread at offset 0.

Owner: the collector's thread. Invariants: a descriptor is kept as long as the process has plenty; beyond that a
file is opened for each read. A number is never negative.
"""

import errno
import os
import resource

# Of the limit of descriptors, what counters may take; the rest is for everything else.
_SHARE = 0.75
NUMBER_BYTES = 64
_WANTED = 65536
_kept = 0
_budget = None


def budget():
    """How many descriptors may be kept. Raises this process's soft limit first, which needs no rights."""
    global _budget
    if _budget is None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
        try:
            if soft != resource.RLIM_INFINITY and soft < wanted:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
        except (ValueError, OSError):
            pass  # a sandbox that forbids it: then with what there is
        _budget = int(_SHARE * (_WANTED if soft == resource.RLIM_INFINITY else soft))
    return _budget


class CounterFile:
    """One file. `number()` and `text()` give what it holds now."""

    GONE = (errno.ENODEV, errno.ENXIO)

    __slots__ = ("name", "_path", "factor", "descriptor")

    def __init__(self, path, name, factor):
        self.name = name
        self._path = path
        self.factor = factor
        self.descriptor = -1

    def _read(self):
        global _kept
        if self.descriptor >= 0:
            return os.pread(self.descriptor, NUMBER_BYTES, 0)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if _kept < budget():
            _kept += 1
            self.descriptor = descriptor
            return os.pread(descriptor, NUMBER_BYTES, 0)
        try:
            return os.pread(descriptor, NUMBER_BYTES, 0)
        finally:
            os.close(descriptor)

    def number(self):
        """The counter times its factor; a ValueError if it is none, an OSError if it cannot be read."""
        value = int(self._read())
        if value < 0:
            raise ValueError(f"{self._path} holds {value}")
        return value * self.factor

    def text(self):
        """The text; "" if there is none."""
        try:
            return self._read().decode("utf-8", errors="replace").strip()
        except OSError as error:
            if error.errno in self.GONE:
                raise
            return ""

    def holds_a_number(self):
        try:
            self.number()
            return True
        except (OSError, ValueError):
            return False

    def close(self):
        global _kept
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            _kept -= 1
