"""weft-top's main: opens the sources and the exports, then the screen, or prints.

Owner: the main thread. Invariants: SIGINT, SIGTERM and SIGHUP end every mode cleanly, with complete files; what
cannot be is one line and a status (options.py names them); a reader that closes our output ends us silently.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time

from .collector import Collector
from .document import to_document
from .frames import LiveSource, ReplaySource
from .options import UsageError, parse, source_options
from .perfetto import PerfettoTrace
from .record import Recorder, Recording, RecordingError
from .table import format_frame

USAGE, FAILED, DONE = 2, 1, 0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments=None):
    """Run weft-top; returns the exit status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a name may have letters that the terminal has not
    try:
        options = parse(arguments)
        source = _open_source(options)
    except (UsageError, RecordingError) as error:
        print(f"weft-top: {error}", file=sys.stderr)
        return USAGE
    try:
        status = _run(source, options)
    except UsageError as error:
        print(f"weft-top: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader has enough. Python would complain at exit, when it flushes what nobody takes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = DONE
    finally:
        source.close()
    return _report(source, status)


def _report(source, status):
    """Say what went wrong on the way."""
    for failure in source.failures:
        print(f"weft-top: --{failure.source} {failure.text}", file=sys.stderr)
    trouble = source.trouble if source.is_replay else ""
    if trouble:
        print(f"weft-top: {trouble}", file=sys.stderr)
    return FAILED if source.failures or trouble else status


def _open_source(options):
    """The FrameSource with its sinks. A recording is looked at before any file is overwritten."""
    recording = Recording(options.replay) if options.replay else None
    sinks = []
    try:
        for name, open_sink in _wanted_sinks(options):
            try:
                sinks.append(open_sink())
            except OSError as error:
                raise UsageError(f"--{name}: {_sink_trouble(name, options, error)}") from error
            except ModuleNotFoundError as error:
                raise UsageError(f"--{name} needs the Python package {error.name}: {install_hint()}") from error
        if recording:
            return ReplaySource(recording, sinks)
        return LiveSource(Collector(source_options(options)), options.interval, sinks)
    except BaseException:
        for sink in sinks:
            sink.close()
        if recording:
            recording.close()
        raise


def _wanted_sinks(options):
    if options.prometheus:
        yield "prometheus", lambda: _exporter(*options.prometheus)
    if options.record:
        yield "record", lambda: Recorder(options.record)
    if options.perfetto:
        yield "perfetto", lambda: PerfettoTrace(options.perfetto)


def _exporter(host, port):
    from .prometheus import Exporter

    exporter = Exporter(host, port)
    if port == 0:
        print(f"weft-top: serving metrics on {host}, port {exporter.port}", file=sys.stderr, flush=True)
    return exporter


def _sink_trouble(name, options, error):
    if name == "prometheus":
        host, port = options.prometheus
        return f"cannot listen on {host}, port {port} ({error.strerror or error}); give another [HOST]:PORT"
    return f"cannot write {getattr(options, name)} ({error.strerror})"


def install_hint():
    """How to get the Python packages: a wheel has an extra, all else a list of them."""
    requirements = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "requirements.txt")
    packages = f"-r {requirements}" if os.path.exists(requirements) else "'weft[top]'"
    return f"{sys.executable} -m pip install {packages}"


def _run(source, options):
    headless = options.once or options.json or options.headless
    exports = options.record or options.perfetto or options.prometheus
    if not headless and not (sys.stdin.isatty() and sys.stdout.isatty()):
        if not exports:
            raise UsageError("this is no terminal to draw on; use --once for a table or --json for scripts")
        headless = True
    if not headless:
        return _show(source, options)
    if options.headless and not (exports or options.once or options.json):
        raise UsageError("--headless alone would show nothing; add --json, --record, --perfetto or --prometheus")
    if options.once:
        return _print_once(source, options)
    return _print_all(source, options)


def _show(source, options):
    try:  # around all of it: the screen imports its packages once it knows that there is a terminal
        from .screen import ScreenOptions, run_screen

        return run_screen(source, ScreenOptions(options.interval, options.unit, options.theme, options.duration))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("textual", "rich"):
            raise
        text = f"the screen needs the Python package {package}: {install_hint()}; or use --once"
        raise UsageError(text) from error


class _Ending:
    """Set by the signals that end us.

    A pipe and not threading.Event: a handler runs between two steps of the main thread, which may then hold the
    event's lock, and set() would wait for it for ever.
    """

    def __init__(self):
        self._signalled, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._is_set = False
        for number in SIGNALS:
            signal.signal(number, self._set)

    def __bool__(self):
        return self._is_set

    def wait_until(self, moment):
        """Sleep until time.monotonic() is `moment`, or a signal comes; true in that case."""
        select.select([self._signalled], [], [], max(0.0, moment - time.monotonic()))
        return self._is_set

    def _set(self, _number, _frame):
        self._is_set = True
        with contextlib.suppress(BlockingIOError):  # the pipe is full of earlier signals
            os.write(self._waker, b"!")


def _print_once(source, options):
    ending = _Ending()
    frame = source.next_frame()
    if source.is_replay:
        last = frame
        while frame and not ending:
            last, frame = frame, source.next_frame()
        frame = last
    elif not ending.wait_until(time.monotonic() + options.interval):
        frame = source.next_frame()
    if frame is None:
        return FAILED if source.trouble else DONE
    print(json.dumps(to_document(frame)) if options.json else format_frame(frame, options.unit), flush=True)
    return DONE


def _print_all(source, options):
    """Look at every interval until the end: of the recording, of --duration, or by a signal."""
    ending = _Ending()
    start = due = time.monotonic()
    end = start + options.duration if options.duration else float("inf")
    while not ending:
        frame = source.next_frame()
        if frame is None:
            break
        if options.json:
            print(json.dumps(to_document(frame), separators=(",", ":")), flush=True)
        if source.is_replay:
            continue
        if due >= end:
            break
        # A look that took too long costs those it ran into; the last look is at the end, and none
        # just before it.
        due = max(due + options.interval, time.monotonic())
        due = end if due > end - options.interval / 2 else due
        ending.wait_until(due)
    return DONE
