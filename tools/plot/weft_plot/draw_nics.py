"""The bytes of each NIC, TX and RX side by side, a row of panels a series (usually a policy).

The dashed line is the mean of the NICs whose PEs take part in that direction; NICs above 1.1 times the mean
are hatched. max/mean stands above each panel; with several runs it is the median of theirs, a bar the
median of its NIC's bytes.
"""
from matplotlib.ticker import MaxNLocator

from . import style
from .nic_counters import max_over_mean
from .series import spread_of

FAR_ABOVE_MEAN = 1.1
NODES_NAMED = 3  # with their number of NICs; more have only a number
RATIO_LETTERS = 18  # "max/mean 12.34" and what is between it and a title
AXIS_INCHES = 0.75  # of a panel's part of the width: numbers, names, gaps
SAME_SCALE = 1.5  # rows whose means differ by no more share their scale


class Direction:
    """TX or RX of all runs of one series."""

    def __init__(self, series, name):
        self.name, self.label = name, series.label
        runs = [{(nic.node, nic.name): nic for nic in loads.nics} for loads in series.records]
        self.keys = sorted({key for run in runs for key in run}, key=lambda key: (key[0], natural(key[1])))
        self.spreads = [spread_of([self.bytes_of(run[key]) for run in runs if key in run]) for key in self.keys]
        self.takes_part = [any(self.is_in(run[key]) for run in runs if key in run) for key in self.keys]
        ratios = [ratio for run in runs if (ratio := self.ratio_of(run.values())) is not None]
        self.ratio = spread_of(ratios).median if ratios else None

    def bytes_of(self, nic):
        return nic.tx_bytes if self.name == "TX" else nic.rx_bytes

    def is_in(self, nic):
        return nic.sends if self.name == "TX" else nic.receives

    def ratio_of(self, nics):
        return max_over_mean([self.bytes_of(nic) for nic in nics if self.is_in(nic)])

    def mean(self):
        values = [spread.median for spread, counts in zip(self.spreads, self.takes_part) if counts]
        return sum(values) / len(values) if values else 0.0

    def largest(self):
        return max(spread.high for spread in self.spreads)


def natural(name):
    """nic2 before nic10."""
    digits = "".join(filter(str.isdigit, name))
    return (name.rstrip("0123456789"), int(digits) if digits else 0, name)


def draw(series, look):
    """The figure of these series, whose records are NicLoads."""
    rows = [[Direction(each, name) for name in ("TX", "RX")] for each in series]
    largest = [max(direction.largest() for direction in row) for row in rows]
    means = [max(direction.mean() for direction in row) for row in rows]
    together = max(means) <= SAME_SCALE * min(means)
    titles = [[title_of(direction, look) for direction in row] for row in rows]
    title_lines = sum(max(title.count("\n") for title in row) for row in titles)
    figure = style.new_figure(look, style.PAGE_INCHES, 0.5 + 1.45 * len(series) + style.TITLE_LINE_INCHES * title_lines)
    grid = figure.subplots(len(series), 2, squeeze=False, sharex=True, sharey=True if together else "row")
    divisor, unit = style.byte_scale(max(largest))
    for row, names, panels, most in zip(rows, titles, grid, largest):
        panels[0].set_ylim(0, 1.08 * (max(largest) if together else most) / divisor or 1)
        for direction, title, axes in zip(row, names, panels):
            draw_panel(axes, direction, divisor)
            axes.set_title(title, loc="left")
        panels[0].set_ylabel(f"bytes ({unit})")
    for axes in grid[-1]:
        name_nodes(axes, rows[-1][0].keys)
    return figure


def title_of(direction, look):
    """On the line of the ratio where both have room there, else above it."""
    label = direction.label
    inches = (look.width or style.PAGE_INCHES) / 2 - AXIS_INCHES
    lines = style.lines_of(f"{direction.name}, {label}" if label else direction.name, inches)
    has_room = len(lines) == 1 and (len(lines[0]) + RATIO_LETTERS) * style.INCHES_OF_A_LETTER < inches
    return "\n".join(lines if has_room else [*lines, ""])


def places(keys):
    """Where the bar of each NIC stands: a gap between nodes."""
    nodes = sorted({node for node, _ in keys})
    return [index + 1.5 * nodes.index(node) for index, (node, _) in enumerate(keys)]


def draw_panel(axes, direction, divisor):
    mean = direction.mean()
    for place, spread, counts in zip(places(direction.keys), direction.spreads, direction.takes_part):
        far = counts and spread.median > FAR_ABOVE_MEAN * mean
        colour = style.VERMILLION if far else style.BLUE if counts else "#bdbdbd"
        axes.bar(place, spread.median / divisor, 0.8, color=colour, hatch="/////" if far else None, edgecolor="white", linewidth=0)
        if spread.count > 1:
            axes.vlines(place, spread.low / divisor, spread.high / divisor, color="black", linewidth=0.6)
    axes.axhline(mean / divisor, color="black", linewidth=0.9, linestyle=(0, (4, 2)))
    axes.annotate("mean", (1, mean / divisor), (2, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="center", fontsize=7, annotation_clip=False)
    ratio = "no traffic" if direction.ratio is None else f"max/mean {direction.ratio:.2f}"
    axes.set_title(ratio, loc="right")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="x", length=0)


def name_nodes(axes, keys):
    """Below the bars: the node once, with its NICs; of many nodes some."""
    at = {}
    for place, (node, _) in zip(places(keys), keys):
        at.setdefault(node, []).append(place)
    middles = [(found[0] + found[-1]) / 2 for found in at.values()]
    if len(at) > NODES_NAMED:
        step = -(-len(at) // 16)
        axes.set_xticks(middles[::step], list(at)[::step])
        axes.set_xlabel("host")
    else:
        axes.set_xticks(middles, [f"host {node}, {len(found)} NIC{'s' if len(found) > 1 else ''}" for node, found in at.items()])
