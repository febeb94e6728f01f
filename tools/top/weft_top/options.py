"""The command line of weft-top: what it accepts, and what is wrong with what was given. Starts nothing.

Invariant: whatever is refused ends in one line that says what to do, with exit status 2.
"""

import argparse

from . import __version__
from .collector import SourceOptions
from .prometheus import parse_address
from .record import same_file
from .sources.rdma import DEFAULT_ROOT

INTERVAL_S_MIN, INTERVAL_S_MAX = 0.1, 10.0
UNITS = ("Gbit/s", "GB/s")
THEMES = ("auto", "dark", "light")
EXIT_STATUSES = """exit status: 0 done; 1 an export failed, or a recording is damaged; 2 asked for what cannot be"""


class UsageError(Exception):
    """Asked for what cannot be; the text says what to do."""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f"{message}; see weft-top --help")


def _interval(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not INTERVAL_S_MIN <= value <= INTERVAL_S_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not between 0.1 and 10 seconds")
    return value


def _duration(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds")
    return value


def _address(text):
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _unit(text):
    for unit in UNITS:
        if text.lower().rstrip("/s") == unit.lower().rstrip("/s"):
            return unit
    raise argparse.ArgumentTypeError(f"'{text}' is no unit; write Gbit/s or GB/s")


def make_parser():
    parser = _Parser(prog="weft-top", epilog=EXIT_STATUSES, description=(
        "Shows which NIC carries what, in which direction, and for which PE of which Weft job. "
        "Without options it opens the screen; q ends it, ? explains the keys."))
    parser.add_argument("--version", action="version", version=f"weft-top {__version__}")
    parser.add_argument("--interval", type=_interval, default=1.0, metavar="S",
                        help="seconds between two looks, 0.1 to 10 (default: 1)")
    parser.add_argument("--unit", type=_unit, default=UNITS[0], help="Gbit/s or GB/s (default: Gbit/s)")
    parser.add_argument("--theme", choices=THEMES, default="auto", help="colours of the screen (default: auto)")
    _add_modes(parser)
    _add_sources(parser)
    return parser


def _add_modes(parser):
    modes = parser.add_argument_group("without the screen, and beside it")
    modes.add_argument("--once", action="store_true", help="look twice, print a table, and end")
    modes.add_argument("--json", action="store_true", help="JSON: a line for each look, or one document with --once")
    modes.add_argument("--headless", action="store_true", help="no screen; only what the options below say")
    modes.add_argument("--duration", type=_duration, metavar="S", help="end after so many seconds")
    modes.add_argument("--record", metavar="FILE", help="write what is seen, for --replay (overwrites FILE)")
    modes.add_argument("--replay", metavar="FILE", help="show a recording instead of this machine")
    modes.add_argument("--perfetto", metavar="FILE", help="write a trace for ui.perfetto.dev (overwrites FILE)")
    modes.add_argument("--prometheus", type=_address, metavar="[HOST]:PORT",
                       help="serve metrics; on loopback unless HOST is given")


def _add_sources(parser):
    sources = parser.add_argument_group("sources")
    for name, what in (("pages", "counter pages of Weft jobs"), ("rdma", "RDMA devices"),
                       ("net", "network interfaces"), ("nvlink", "NVLink")):
        sources.add_argument(f"--no-{name}", action="store_true", help=f"leave out {what}")
    sources.add_argument("--pages", metavar="DIR", help="where the counter pages are (default: WEFT_COUNTERS_DIR, else "
                         "/dev/shm)")
    sources.add_argument("--trust-pages", action="store_true", help="show pages also where their processes are not "
                         "seen, as in a container with a process namespace of its own")
    sources.add_argument("--rdma-root", metavar="DIR", default=DEFAULT_ROOT,
                         help=f"where RDMA devices are (default: {DEFAULT_ROOT})")


def parse(arguments):
    """The options, checked; a UsageError if they cannot be."""
    options = make_parser().parse_args(arguments)
    if options.replay and options.prometheus:
        raise UsageError("--prometheus serves what is now, so it does not go with --replay")
    if options.replay and options.duration:
        raise UsageError("--duration ends a live run; it does not go with --replay")
    if options.once and options.duration:
        raise UsageError("--once ends by itself; leave out --duration")
    for name in ("record", "perfetto"):
        target = getattr(options, name)
        if target and options.replay and same_file(target, options.replay):
            raise UsageError(f"--{name} would overwrite the recording {options.replay}; give another file")
    if options.record and options.record == options.perfetto:
        raise UsageError("--record and --perfetto need two files")
    return options


def source_options(options):
    return SourceOptions(
        pages=not options.no_pages, rdma=not options.no_rdma, net=not options.no_net, nvlink=not options.no_nvlink,
        pages_directory=options.pages, trust_pages=options.trust_pages, rdma_root=options.rdma_root,
    )  # fmt: skip
