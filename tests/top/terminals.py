"""A process on a pseudo terminal, for the tests: what it wrote, in which state it leaves the terminal, what is to be read there.

The reader understands what the screen writes: cursor positions, text, and modes; colours are left out.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

LIMIT_S = 100


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, command, size=(80, 24), environment=None):
        self.size = size
        self.outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.inner = os.dup(inner)
        self.attributes = termios.tcgetattr(inner)
        # COLUMNS and LINES would outweigh the terminal's own size; readline sets them in the
        # workers of pytest-xdist.
        unwanted = ("NO_COLOR", "COLORFGBG", "COLORTERM", "COLUMNS", "LINES")
        clean = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
            env={**clean, "TERM": "xterm-256color", "TZ": "UTC", **(environment or {})},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(inner)
        self.written = b""

    def read_until(self, words):
        """Read until the process has written `words` (bytes), or has ended."""
        end = time.monotonic() + LIMIT_S
        while words not in self.written:
            assert time.monotonic() < end, f"no {words!r} within {LIMIT_S} s in {self.written[-2000:]!r}"
            if select.select([self.outer], [], [], 0.1)[0]:
                self.written += os.read(self.outer, 1 << 16)
            elif self.process.poll() is not None:
                break

    def type(self, text):
        os.write(self.outer, text)

    def end(self):
        """The exit status, once it has ended; everything it wrote is in `written`."""
        end = time.monotonic() + LIMIT_S
        while self.process.poll() is None or select.select([self.outer], [], [], 0)[0]:
            assert time.monotonic() < end, "the process does not end"
            if select.select([self.outer], [], [], 0.1)[0]:
                self.written += os.read(self.outer, 1 << 16)
        return self.process.returncode

    def state(self):
        """What the written private modes leave: mode number -> set or not."""
        modes = {}
        for numbers, letter in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", self.written):
            for number in numbers.split(b";"):
                modes[int(number)] = letter == b"h"
        return modes

    def assert_restored(self):
        state = self.state()
        assert state.get(1049) is False, "the alternate screen is left"
        assert state.get(25) is True, "the cursor is shown"
        for mode in (1000, 1002, 1003, 1004, 1006, 1015, 2004):
            assert not state.get(mode), f"mode {mode} is off"
        assert state.get(7) is not False, "lines wrap"
        # The last word on the screen and the cursor comes at the very end, after all painting.
        assert self.written.rindex(b"\x1b[?1049l") > self.written.rindex(b"weft-top")
        assert termios.tcgetattr(self.inner)[:4] == self.attributes[:4], "the line discipline is as before"

    def lines(self):
        """What can be read on the screen now: its lines, without spaces at their ends."""
        text = self.written.decode("utf-8", "replace")
        rows = [[" "] * self.size[0] for _ in range(self.size[1])]
        x = y = 0
        for position, plain in re.findall(r"\x1b\[(\d+;\d+)H|\x1b\[[0-9;?<>=$]*[a-zA-Z]|\x1b[=>]|([^\x1b])", text):
            if position:
                y, x = (int(number) - 1 for number in position.split(";"))
            elif plain == "\n":
                y += 1
            elif plain == "\r":
                x = 0
            elif plain:
                if y < len(rows) and x < len(rows[y]):
                    rows[y][x] = plain
                x += 1
        return ["".join(row).rstrip() for row in rows]

    def read_lines_until(self, accepts, limit_s=LIMIT_S):
        """Read until `accepts(lines)`, which is returned."""
        end = time.monotonic() + limit_s
        while not accepts(self.lines()):
            assert time.monotonic() < end and self.process.poll() is None, "\n".join(self.lines())
            if select.select([self.outer], [], [], 0.2)[0]:
                self.written += os.read(self.outer, 1 << 16)
        return self.lines()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self.outer, self.inner):
            if descriptor is not None:
                os.close(descriptor)
