"""The screen in a real terminal: a process on a pseudo terminal, ended in every way; the terminal must be as before."""

import fcntl
import importlib
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from terminals import LIMIT_S, Terminal
from weft_top import cli
from weft_top.options import UsageError, parse

HERE = Path(__file__).resolve().parent

PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import frames
from weft_top.screen import ScreenOptions, run_screen

class Source(frames.Source):
    def next_frame(self):
        if {fails_after} and self.asked >= {fails_after}:
            raise OSError("counters are gone")
        return super().next_frame()

sys.exit(run_screen(Source(frames.{scene}(3), is_replay={replay}), ScreenOptions(interval_s=0.1)))
"""


@pytest.fixture
def terminal():
    """terminal(...) -> a Terminal whose first screen is painted; closed in the end."""
    opened = []

    def start(wait=b"32 NICs", fails_after=0, scene="coupled", replay=False, **options):
        program = PROGRAM.format(here=str(HERE), fails_after=fails_after, scene=scene, replay=replay)
        opened.append(Terminal([sys.executable, "-c", program], **options))
        opened[-1].read_until(wait)
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_a_key_ends_it_and_the_terminal_is_as_before(terminal, key):
    screen = terminal()
    assert screen.state()[1049] and not screen.state()[25]
    screen.type(key)
    assert screen.end() == 0
    screen.assert_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_ends_it_and_the_terminal_is_as_before(terminal, number):
    screen = terminal()
    screen.process.send_signal(number)
    assert screen.end() == 128 + number
    screen.assert_restored()


def test_a_signal_during_the_start_leaves_no_trace(terminal):
    for delay_s in (0.0, 0.05, 0.2):
        screen = terminal(wait=b"\x1b[?1049h")
        time.sleep(delay_s)
        screen.process.send_signal(signal.SIGTERM)
        assert screen.end() == 128 + signal.SIGTERM
        state = screen.state()
        assert state[1049] is False and state[25] is True


def test_what_the_source_raises_is_printed_after_the_screen_is_gone(terminal):
    screen = terminal(fails_after=3)
    assert screen.end() == 1
    screen.assert_restored()
    after = screen.written[screen.written.rindex(b"\x1b[?1049l"):]
    assert b"OSError: counters are gone" in after
    assert b"\r\n" in after  # the terminal makes new lines again


def test_a_terminal_that_goes_away_ends_the_process(terminal):
    screen = terminal()
    os.close(screen.outer)
    os.close(screen.inner)
    screen.outer = screen.inner = None
    assert screen.process.wait(timeout=LIMIT_S) != 0


def test_a_terminal_that_takes_nothing_more_does_not_keep_the_process(terminal):
    screen = terminal(size=(200, 50))
    # Nobody reads: the terminal's buffer fills, and painting blocks.
    termios.tcflow(screen.inner, termios.TCOOFF)
    time.sleep(3)
    screen.process.send_signal(signal.SIGTERM)
    assert screen.process.wait(timeout=LIMIT_S) == 128 + signal.SIGTERM


def test_a_new_size_is_painted_anew(terminal):
    screen = terminal()
    before = len(screen.written)
    fcntl.ioctl(screen.inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    screen.process.send_signal(signal.SIGWINCH)
    # At 160 columns there is room for errors and for the line rate.
    screen.read_until(b"line rate")
    assert b"line rate" not in screen.written[:before]
    screen.type(b"q")
    assert screen.end() == 0
    screen.assert_restored()


def test_suspending_and_coming_back_paints_again(terminal):
    screen = terminal()
    screen.type(b"\x1a")
    screen.read_until(b"\x1b[?1049l")
    end = time.monotonic() + LIMIT_S
    while Path(f"/proc/{screen.process.pid}/stat").read_text().rpartition(") ")[2][0] != "T":
        assert time.monotonic() < end, "it does not stop"
        time.sleep(0.05)
    screen.written = b""
    screen.process.send_signal(signal.SIGCONT)
    screen.read_until(b"32 NICs")
    screen.type(b"q")
    assert screen.end() == 0
    screen.assert_restored()


def test_with_no_color_no_colour_is_written_and_marks_remain(terminal):
    screen = terminal(environment={"NO_COLOR": "1"}, scene="rail_down")
    screen.type(b"2")
    screen.read_until(b"down!")
    screen.type(b"q")
    assert screen.end() == 0
    for sequence in re.findall(rb"\x1b\[([0-9;]*)m", screen.written):
        codes = [int(code or 0) for code in sequence.split(b";")]
        assert not any(30 <= code <= 38 or 40 <= code <= 48 or 90 <= code <= 107 for code in codes), sequence


def test_the_terminals_own_background_is_kept(terminal):
    screen = terminal(environment={"COLORTERM": "truecolor"})
    screen.type(b"q")
    assert screen.end() == 0
    assert b"48;2;" not in screen.written and b"\x1b[40m" not in screen.written


def test_a_replay_is_quit_like_any_screen(terminal):
    screen = terminal(wait=b"REPLAY", replay=True)
    screen.type(b"q")
    assert screen.end() == 0
    screen.assert_restored()


def _run(program_options, **streams):
    program = PROGRAM.format(here=str(HERE), fails_after=0, scene="coupled", replay=False)
    return subprocess.run([sys.executable, "-c", program], timeout=LIMIT_S, text=True, **{**program_options, **streams})


def test_without_a_terminal_one_message_names_once_and_json():
    done = _run({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE})
    assert done.returncode == 2 and done.stdout == ""
    assert "--once" in done.stderr and "--json" in done.stderr and "pipe" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_dumb_terminal_gets_the_message_too(terminal):
    screen = terminal(wait=b"--json", environment={"TERM": "dumb"})
    assert screen.end() == 2
    assert b"TERM" in screen.written and b"\x1b" not in screen.written


@pytest.mark.parametrize("package", ["textual", "rich"])
def test_a_screen_without_its_packages_says_what_to_install(monkeypatch, package):
    """As in a plain wheel. The packages are imported by what is imported when the terminal has been looked at."""
    for name in [*sys.modules]:
        if name.startswith("weft_top.screen") or name.partition(".")[0] in ("textual", "rich"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    terminal = importlib.import_module("weft_top.screen.terminal")
    monkeypatch.setattr(terminal, "terminal_problem", str)
    with pytest.raises(UsageError, match=f"the screen needs the Python package {package}: .* -m pip install .*; or use --once"):
        cli._show(None, parse([]))
