"""Opens the screen in the terminal of this process, and gives the terminal back whatever ends it.

Owner: the main thread. Invariants: nothing is written before it is known that there is a terminal; SIGTERM, SIGHUP,
SIGINT and SIGQUIT end the screen in order; where that gets nowhere (the terminal is gone and does not take what is
written) the process ends all the same after STOP_LIMIT_S.
"""

import contextlib
import os
import signal
import sys
import termios

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
STOP_LIMIT_S = 5
NO_TERMINAL = 2
# Mouse, focus and paste reports off, line wrap on, normal keyboard, normal screen, cursor shown.
RESTORE = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?7h\x1b[<u"
    b"\x1b[0m\x1b[?1049l\x1b[?25h"
)


def terminal_problem(environment=os.environ):
    """Why no screen can be shown here, in words; "" if it can. Textual reads stdin and writes stderr."""
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output"), (sys.stderr, "error output")):
        if stream is None or stream.closed or not stream.isatty():
            return f"its {name} is a pipe, a file or closed"
    if environment.get("TERM", "dumb") in ("", "dumb"):
        return "TERM says that this one cannot move its cursor"
    return ""


def run_in_terminal(source, options):
    """See run_screen."""
    problem = terminal_problem()
    if problem:
        print(
            f"weft-top: the screen needs a terminal, and {problem}; --once prints the figures once, --json for programs",
            file=sys.stderr,
        )
        return NO_TERMINAL
    from .app import TopApp

    app = TopApp(source, options)
    with _restored(), _stopped_by_signals(app):
        app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


@contextlib.contextmanager
def _restored():
    """Undo what is left of the screen if it did not end in order."""
    descriptor = sys.stdin.fileno()
    attributes = termios.tcgetattr(descriptor)
    try:
        yield
    except BaseException:
        restore(descriptor, attributes)
        raise
    with contextlib.suppress(termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def restore(descriptor, attributes):
    """Put the terminal in order by hand; a terminal that is gone, or takes nothing, is nobody's loss."""
    output = sys.__stderr__.fileno()
    with contextlib.suppress(termios.error, OSError):
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
        termios.tcflush(output, termios.TCOFLUSH)
        # The description is shared with the shell, which wants it blocking again.
        os.set_blocking(output, False)
        try:
            os.write(output, RESTORE)
        finally:
            os.set_blocking(output, True)


@contextlib.contextmanager
def _stopped_by_signals(app):
    """Signals end `app`, whether its loop runs already or not."""
    attributes = termios.tcgetattr(sys.stdin.fileno())

    def stop(number, _frame):
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(STOP_LIMIT_S)
        app.stop_code = 128 + number
        if app.loop is not None:
            # From a signal handler only this is safe; it also wakes the loop.
            app.loop.call_soon_threadsafe(app.stop, app.stop_code)

    def give_up(_number, _frame):
        restore(sys.stdin.fileno(), attributes)
        os._exit(app.stop_code)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
