"""Throughput over time, a step line a series. For paged_write the time is that of the client's clock, for
cold_start the times of its puts added up. Several runs are laid over one grid of time: the line is their
median there, the band reaches from the smallest to the largest of those that still go on.
"""
from matplotlib.ticker import FuncFormatter

from . import style
from .series import spread_of

CELLS_MAX = 100  # steps of a line; more are averaged
CLOSE = 0.18  # of the time axis; closer words would touch


def runs_of(series):
    """[[(time_ms, GB/s)]], each run in order of time."""
    runs = {}
    for step in series.records:
        runs.setdefault(step.run, []).append((step.time_ms, step.value))
    return [sorted(steps) for _, steps in sorted(runs.items(), key=lambda item: str(item[0]))]


def laid_over(runs):
    """(edges in ms, the Spread between each two). One run keeps its own steps, if they can be told apart."""
    if len(runs) == 1 and len(runs[0]) <= CELLS_MAX:
        return [0.0, *(time for time, _ in runs[0])], [spread_of([value]) for _, value in runs[0]]
    longest = max(runs, key=lambda steps: steps[-1][0])
    last = longest[-1][0]
    cells = max(1, min(CELLS_MAX, round(last / width_of(runs))))
    edges = [last * index / cells for index in range(cells + 1)]
    going_on = [[steps for steps in runs if steps[-1][0] >= end] or [longest] for end in edges[1:]]
    return edges, [spread_of([mean_between(steps, start, end) for steps in found])
                   for found, start, end in zip(going_on, edges, edges[1:])]


def width_of(runs):
    """How long a step mostly lasts."""
    times = [[0.0, *(time for time, _ in steps)] for steps in runs]
    widths = [later - earlier for each in times for earlier, later in zip(each, each[1:])]
    return spread_of(widths).median or max(widths)


def mean_between(steps, start, end):
    """The mean throughput of a run between two moments."""
    moved, before = 0.0, 0.0
    for time, value in steps:
        moved += max(0.0, min(time, end) - max(before, start)) * value
        before = time
    return moved / (end - start)


def marks_of(series, events):
    """(time in ms, text) of what was done to the runs of these series; the median where it was done in each run."""
    runs = {step.run for each in series for step in each.records}
    times = {}
    for event in events:
        if event.run in runs:
            times.setdefault(event.what, []).append(event.time_ms)
    return sorted((spread_of(found).median, what) for what, found in times.items())


def draw(series, events, look):
    """The figure of these series, whose records are Steps; Events become vertical lines."""
    figure = style.new_figure(look, style.COLUMN_INCHES, 2.4)
    axes = figure.subplots()
    runs = [runs_of(each) for each in series]
    last = max(steps[-1][0] for found in runs for steps in found)
    rate_divisor, rate_says = style.metric_scale("throughput", 0, max(value for found in runs for steps in found for _, value in steps))
    divisor, unit = (1e3, "s") if last >= 3e3 else (1.0, "ms") if last >= 3 else (1e-3, "µs")
    handles = []
    for index, (found, colour) in enumerate(zip(runs, style.colours_of(series))):
        edges, spreads = laid_over(found)
        edges = [edge / divisor for edge in edges]
        low, middle, high = ([getattr(spread, name) / rate_divisor for spread in spreads] for name in ("low", "median", "high"))
        if len(found) > 1:
            axes.stairs(high, edges, baseline=low, fill=True, color=colour, alpha=0.2, linewidth=0)
        handles.append(axes.stairs(middle, edges, baseline=None, color=colour, linestyle=style.LINES[index % 8], linewidth=1.2))
    draw_marks(axes, [(time_ms / divisor, text) for time_ms, text in marks_of(series, events)], last / divisor)
    axes.set_xlim(0, last / divisor)
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain_number))
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(rate_says)
    style.legend(figure, handles, [each.label for each in series])
    return figure


def draw_marks(axes, marks, last):
    """A vertical line for each, its words above; a line higher where the one before stands close."""
    row, before = 0, -last
    for time, text in marks:
        row = row + 1 if time - before < CLOSE * last else 0
        before = time
        axes.axvline(time, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
        axes.annotate(text, (time, 1.0), (0, 2 + 9 * row), xycoords=("data", "axes fraction"), textcoords="offset points",
                      ha="center", va="bottom", fontsize=7, annotation_clip=False)
