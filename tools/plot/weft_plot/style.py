"""How all figures look: sizes of a paper's columns, fonts, colours, markers and line styles.

Colours are those of Okabe and Ito's palette for colour-blind readers, without its yellow, which paper
swallows; series differ in marker and line style as well, so that a grey print can be read. The user's own
matplotlibrc does not count.
"""
import contextlib
import math
import textwrap

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from .records import METRICS

COLUMN_INCHES = 3.5
PAGE_INCHES = 7.0

BLACK, BLUE, SKY, GREEN, ORANGE, VERMILLION, PURPLE, GREY = (
    "#000000", "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#7f7f7f")
# A library has its own colours in every figure; others take what is left, in this order.
LIBRARY_COLOURS = {
    "Weft": (BLUE, SKY, BLACK, PURPLE, GREY, ORANGE), "NVSHMEM": (GREEN, "#7fbf7b", GREY), "NCCL": (VERMILLION, ORANGE, GREY),
}
COLOURS = (BLUE, VERMILLION, GREEN, BLACK, ORANGE, SKY, PURPLE, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (2, 2)), (0, (1, 3)))

INCHES_OF_A_LETTER = 0.058  # of legends and titles, on average
TITLE_LINE_INCHES = 0.14

SETTINGS = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.labelsize": 8, "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "axes.titlesize": 8, "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#d9d9d9", "grid.linewidth": 0.5, "lines.linewidth": 1.3, "lines.markersize": 4.2,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.minor.width": 0.4, "ytick.minor.width": 0.4,
    "legend.frameon": False, "legend.handlelength": 3.2, "legend.columnspacing": 1.4, "hatch.linewidth": 0.5,
    "svg.fonttype": "path", "svg.hashsalt": "weft-plot", "savefig.dpi": 300, "path.simplify": False,
}


@contextlib.contextmanager
def settings():
    """Weft's settings alone, for drawing and for saving."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def new_figure(look, width, height):
    """An empty figure of the look's size, or of this one in inches."""
    return Figure(figsize=(look.width or width, look.height or height), layout="constrained")


def colours_of(series):
    """A colour for each series: the library's own where several libraries meet, else the common order."""
    if len({each.library for each in series}) < 2:
        return [COLOURS[index % len(COLOURS)] for index in range(len(series))]
    used, colours = {}, []
    for each in series:
        own = LIBRARY_COLOURS.get(each.library, (PURPLE, BLACK, GREY))
        colours.append(own[used.get(each.library, 0) % len(own)])
        used[each.library] = used.get(each.library, 0) + 1
    return colours


def lines_of(text, inches):
    """The text of a title in lines of at most so many inches."""
    return textwrap.wrap(text, max(12, int(inches / INCHES_OF_A_LETTER)))


def legend_columns(labels, width):
    """As many as the width allows, spread evenly over the rows that this needs."""
    inches_of_widest = 0.55 + INCHES_OF_A_LETTER * max(map(len, labels))
    columns = max(1, min(len(labels), int(width / inches_of_widest)))
    return -(-len(labels) // -(-len(labels) // columns))


def legend_height(labels, width):
    """Inches that legend() will take."""
    return 0.15 * -(-len(labels) // legend_columns(labels, width)) if len(labels) > 1 else 0.0


def legend(figure, handles, labels):
    """Above the axes, where no data is."""
    if len(labels) > 1:
        columns = legend_columns(labels, figure.get_figwidth())
        figure.legend(handles, labels, loc="outside upper center", ncols=columns)


# ---- Ticks ---------------------------------------------------------------------------------------


def size_text(size):
    """1048576 -> '1 MiB'; a size that is no multiple stays in the smaller unit."""
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{int(size) // unit} {name}"
    return f"{size:g} B"


def byte_ticks(axis, sizes):
    """At sizes that were measured, as many as have room for their names."""
    sizes = sorted(set(sizes))
    apart = math.log2(sizes[-1] / sizes[0]) / 7.5
    shown = sizes[:1]
    for size in sizes[1:]:
        if math.log2(size / shown[-1]) >= apart:
            shown.append(size)
    axis.set_major_locator(FixedLocator(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value).replace(" ", "\n")))


def plain_number(value, _=None):
    """0.05, 2, 300, 20k, 5M: never 10 to a power."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit * 0.9999999 and (name != "k" or abs(value) >= 1e4):
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def log_ticks(axis, smallest, largest):
    """1, 2, 5 in each decade while there are few decades."""
    few = largest / smallest < 200
    if largest / smallest < 6:
        axis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
    else:
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_minor_locator(NullLocator() if few else LogLocator(base=10, subs=range(2, 10), numticks=100))
    axis.set_major_formatter(FuncFormatter(plain_number))
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def metric_scale(metric, smallest, largest):
    """(divisor, label) for values of a metric: long latencies in ms or s, short ones in ns, low bandwidths in MB/s."""
    label = METRICS[metric]
    if metric == "latency":
        for unit, name in ((1e6, "s"), (1e3, "ms")):
            if smallest >= unit:
                return unit, f"latency ({name})"
        if largest < 1:
            return 1e-3, "latency (ns)"
    if "GB/s" in label and largest < 0.5:
        return 1e-3, label.replace("GB/s", "MB/s")
    return 1.0, label


def log_limits(axis_limits, values):
    """A margin of the same width on a logarithmic axis, also where all values are one."""
    margin = max(1.12, (max(values) / min(values)) ** 0.06)
    axis_limits(min(values) / margin, max(values) * margin)


def byte_scale(largest, per_second=False):
    """(divisor, unit) that makes numbers of bytes short: decimal, as rates are."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= unit:
            return unit, name + ("/s" if per_second else "")
    return 1.0, "B/s" if per_second else "B"
