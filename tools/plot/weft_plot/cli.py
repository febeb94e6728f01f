"""The command weft-plot: arguments, what is said to the user, exit status.

Status 0: every line was used. 1: lines were left out, or there was nothing to draw; what could be drawn is
there all the same. 2: the command itself is wrong.
"""
import argparse
import fnmatch
import pathlib
import sys
import warnings

from . import __version__
from .catalogue import Choice, Look, figures_of, where
from .lines import Unreadable, read
from .save import FORMATS, save
from .series import FIELDS

DESCRIPTION = """Makes figures for a paper from what weft-perf --json, bench/device_all, the peers' benchmarks,
scripts/bench and weft-top --json recorded: latency, bandwidth and rate over size, bytes of each NIC,
throughput over time, who sends to whom."""
EPILOG = f"""Fields: benchmark, {', '.join(FIELDS)}.
Several runs of the same become their median, with a bar from the smallest to the largest.

  weft-perf put_bw --json=put.jsonl ...; weft-plot put.jsonl -o figures
  weft-plot weft.jsonl peers.jsonl --list
  weft-plot weft.jsonl peers.jsonl --figure latency-alltoall --where scope=block,stream -o alltoall.svg"""


class Mistake(Exception):
    """What is wrong with the command, in one sentence."""


def parser():
    made = argparse.ArgumentParser(prog="weft-plot", description=DESCRIPTION, epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version=f"weft-plot {__version__}")
    # That there is one is checked later: argparse would not say which option it does not know.
    made.add_argument("files", metavar="FILE", nargs="*", help="JSON lines; - is standard input")
    made.add_argument("-o", "--output", metavar="DIR|FILE", default="figures",
                      help="a folder for all figures, or FILE.png or FILE.svg for one (default: figures)")
    made.add_argument("--list", action="store_true", help="say which figures there are, and draw none")
    made.add_argument("--figure", metavar="NAME", action="append", default=[], help="only this one; * and ? stand for others")
    made.add_argument("--where", metavar="FIELD=VALUE,...", action="append", default=[],
                      help="only records with one of these values; != for all others")
    made.add_argument("--series", metavar="FIELD,...", default="", help="the fields that make series (default: those that differ)")
    made.add_argument("--label", metavar="OLD=NEW", action="append", default=[], help="what stands for a label in the figures")
    made.add_argument("--format", metavar="png|svg", action="append", choices=FORMATS, default=[],
                      help="of figures in a folder (default: both)")
    made.add_argument("--width", type=float, metavar="INCHES", help="of each figure (default: 3.5, some 7)")
    made.add_argument("--height", type=float, metavar="INCHES")
    return made


def choice_of(arguments):
    fields = tuple(filter(None, arguments.series.split(",")))
    if unknown := [field for field in fields if field not in FIELDS]:
        raise Mistake(f"--series: there is no field {unknown[0]}; there are: {', '.join(FIELDS)}")
    if wrong := [label for label in arguments.label if "=" not in label]:
        raise Mistake(f"--label: '{wrong[0]}' is not OLD=NEW")
    labels = dict(label.split("=", 1) for label in arguments.label)
    try:
        return Choice(tuple(where(text) for text in arguments.where), fields, labels)
    except ValueError as error:
        raise Mistake(f"--where: {error}") from None


def look_of(arguments):
    for name in ("width", "height"):
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= 40:
            raise Mistake(f"--{name}: {value:g} is not between 1 and 40 inches")
    return Look(arguments.width, arguments.height)


def targets_of(arguments, figures):
    """[(figure, path)]; raises Mistake where the output cannot hold them."""
    output = pathlib.Path(arguments.output)
    kind = output.suffix[1:].lower()
    if kind in FORMATS:
        if len(figures) > 1:
            names = ", ".join(figure.name for figure in figures[:6]) + (", ..." if len(figures) > 6 else "")
            raise Mistake(f"{output} holds one figure and there are {len(figures)}; choose with --figure: {names}")
        return [(figures[0], output)]
    if kind in ("pdf", "eps", "ps", "jpg", "jpeg", "gif", "webp", "tif", "tiff"):
        raise Mistake(f"-o {output}: figures are {' or '.join(FORMATS)}, not {kind}")
    if output.exists() and not output.is_dir():
        raise Mistake(f"-o {output} is a file; name a folder, or a file that ends in .png or .svg")
    formats = dict.fromkeys(arguments.format) or FORMATS
    return [(figure, output / f"{figure.name}.{kind}") for figure in figures for kind in formats]


def chosen(figures, patterns):
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(figure.name, pattern) for figure in figures):
            raise Mistake(f"there is no figure {pattern}; weft-plot --list names them")
    return [figure for figure in figures
            if not patterns or any(fnmatch.fnmatchcase(figure.name, pattern) for pattern in patterns)]


def read_all(names):
    """(records, whether every line was used). Says on stderr what was left out."""
    records, complete = [], True
    for name in names:
        contents = read(name)
        records += contents.records
        if message := contents.message():
            print(f"weft-plot: {message}", file=sys.stderr)
            complete = False
    return records, complete


def write(targets, look):
    from .style import settings  # needs matplotlib, which --help and --list do not
    for figure, path in targets:
        if figure.note:
            print(f"weft-plot: {figure.name}: {figure.note}", file=sys.stderr)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with settings(), warnings.catch_warnings(record=True) as said:
                save(figure.draw(look), path)
        except OSError as error:
            raise Unreadable(f"{path} cannot be written: {error.strerror or error}") from None
        if any("constrained_layout" in str(warning.message) for warning in said):
            print(f"weft-plot: {path}: its words leave no room for the data; give a larger --width or --height", file=sys.stderr)
        print(path)


def run(arguments):
    if not arguments.files:
        raise Mistake("no FILE of JSON lines is named; weft-plot --help lists the options")
    choice, look = choice_of(arguments), look_of(arguments)
    records, complete = read_all(arguments.files)
    figures = chosen(figures_of(records, choice), arguments.figure if records else [])
    if not figures:
        what = "no record is left after --where" if records and arguments.where else "nothing here can be drawn"
        print(f"weft-plot: {what}", file=sys.stderr)
        return 1
    if arguments.list:
        width = max(len(figure.name) for figure in figures)
        print("\n".join(f"{figure.name:<{width}}  {figure.says}" for figure in figures))
    else:
        write(targets_of(arguments, figures), look)
    return 0 if complete else 1


def main(words=None):
    arguments = parser().parse_args(words)
    try:
        return run(arguments)
    except Mistake as mistake:
        print(f"weft-plot: {mistake}", file=sys.stderr)
        return 2
    except Unreadable as error:
        print(f"weft-plot: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the list has seen enough
        return 1
