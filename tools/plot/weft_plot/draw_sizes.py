"""Latency, bandwidth or rate over size, a line a series; where there is one size only, a dot a series.

Both axes are logarithmic. A point is the median of its runs, the bar through it reaches from the smallest
to the largest of them.
"""
from . import style
from .series import spread_of


def spreads(series):
    """{size: Spread} of one series."""
    values = {}
    for point in series.records:
        values.setdefault(point.size, []).append(point.value)
    return {size: spread_of(values[size]) for size in sorted(values)}


def error_bars(found, divisor):
    """How far the runs reach below and above their medians; None where each has one run."""
    if all(each.count == 1 for each in found):
        return None
    return [[(each.median - each.low) / divisor for each in found], [(each.high - each.median) / divisor for each in found]]


def draw(series, metric, look):
    """The figure of these series, whose records are Points of one benchmark and one metric."""
    if len({point.size for each in series for point in each.records}) > 1:
        return draw_lines(series, metric, look)
    return draw_dots(series, metric, look)


def draw_lines(series, metric, look):
    labels = [each.label for each in series]
    figure = style.new_figure(look, style.COLUMN_INCHES, 2.35 + style.legend_height(labels, look.width or style.COLUMN_INCHES))
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    points = [point for each in series for point in each.records]
    values = [point.value for point in points]
    divisor, says = style.metric_scale(metric, min(values), max(values))
    handles = []
    for index, (each, colour) in enumerate(zip(series, style.colours_of(series))):
        found = spreads(each)
        handles.append(axes.errorbar(
            list(found), [spread.median / divisor for spread in found.values()], error_bars(list(found.values()), divisor), color=colour,
            marker=style.MARKERS[index % 8], linestyle=style.LINES[index % 8], elinewidth=0.8, capsize=1.8, capthick=0.6,
            markeredgewidth=0.0, zorder=3)[0])
    sizes = [point.size for point in points]
    style.log_limits(axes.set_xlim, sizes)
    style.log_limits(axes.set_ylim, [value / divisor for value in values])
    style.byte_ticks(axes.xaxis, sizes)
    style.log_ticks(axes.yaxis, min(values) / divisor, max(values) / divisor)
    axes.set_xlabel("size")
    axes.set_ylabel(says)
    style.legend(figure, handles, labels)
    return figure


def draw_dots(series, metric, look):
    figure = style.new_figure(look, style.COLUMN_INCHES, 0.7 + 0.24 * len(series))
    axes = figure.subplots()
    values = [point.value for each in series for point in each.records]
    divisor, says = style.metric_scale(metric, min(values), max(values))
    for index, (each, colour) in enumerate(zip(series, style.colours_of(series))):
        (spread,) = spreads(each).values()
        axes.errorbar([spread.median / divisor], [index], xerr=error_bars([spread], divisor), color=colour, marker=style.MARKERS[index % 8],
                      linestyle="none", elinewidth=0.8, capsize=1.8, markeredgewidth=0.0)
        axes.annotate(style.plain_number(float(f"{spread.median / divisor:.3g}")), (spread.high / divisor, index), (5, 0), va="center",
                      textcoords="offset points", fontsize=7)
    axes.set_yticks(range(len(series)), [each.label or "all runs" for each in series])
    axes.set_ylim(len(series) - 0.4, -0.6)
    axes.set_xlim(0, max(values) / divisor * 1.2)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(style.FuncFormatter(style.plain_number))
    axes.set_xlabel(says)
    return figure
