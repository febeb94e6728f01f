"""Rows of scripts/bench: Weft's samples beside those of what it was compared with, a line of the figure for
each row's part. The mark is the median, the bar reaches from the smallest to the largest sample.
"""
from . import style
from .series import spread_of

SIDES = (("Weft", style.BLUE, "o", -0.13), ("compared with", style.VERMILLION, "s", 0.13))


def draw(comparisons, look, labels):
    """The figure of Comparisons of one metric. `labels`: {word: what stands for it}."""
    figure = style.new_figure(look, style.PAGE_INCHES * 0.7, 0.85 + 0.3 * len(comparisons))
    axes = figure.subplots()
    values = [value for each in comparisons for value in (*each.ours, *each.theirs)]
    divisor, says = style.metric_scale(comparisons[0].metric, min(values), max(values))
    handles = []
    for (_, colour, marker, offset), side in zip(SIDES, ("ours", "theirs")):
        found = [spread_of([value / divisor for value in getattr(each, side)]) for each in comparisons]
        reach = [[each.median - each.low for each in found], [each.high - each.median for each in found]]
        handles.append(axes.errorbar(
            [each.median for each in found], [row + offset for row in range(len(found))], xerr=reach, color=colour,
            marker=marker, linestyle="none", elinewidth=0.8, capsize=1.8, markeredgewidth=0.0)[0])
    axes.set_xscale("log")
    style.log_limits(axes.set_xlim, [value / divisor for value in values])
    style.log_ticks(axes.xaxis, min(values) / divisor, max(values) / divisor)
    axes.set_yticks(range(len(comparisons)), [labels.get(each.what, each.what) for each in comparisons])
    axes.set_ylim(len(comparisons) - 0.5, -0.5)
    axes.set_xlabel(says)
    style.legend(figure, handles, [labels.get(name, name) for name, *_ in SIDES])
    return figure
