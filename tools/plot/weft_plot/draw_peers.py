"""Who sends how much to whom: a heat map, senders down, receivers across, a panel a series.

Dark is much, white is nothing; one hue, whose lightness survives grey print. With few PEs each cell also
says its number. Several runs are added up cell by cell and divided by their number.
"""
from matplotlib.ticker import FuncFormatter, MaxNLocator

from . import style

NUMBERS_UP_TO = 10  # PEs
SHAPES_UP_TO = 64  # PEs; the cells of more are pixels also in an SVG, which would be huge
TICKS_MAX = 12  # PEs with a number at an axis: each, or each second, fourth, ...
COLOUR_MAP = "Blues"
AXIS_INCHES = 0.7  # of a panel's part of the width: numbers, colour bar, gaps


def mean_matrix(series):
    """The mean of the series' matrices; they must have one size."""
    matrices = [record.matrix for record in series.records]
    count = len(matrices[0])
    return [[sum(matrix[row][column] for matrix in matrices) / len(matrices) for column in range(count)]
            for row in range(count)]


def draw(series, look):
    """The figure of these series, whose records are PeerMatrices of one unit."""
    matrices = [mean_matrix(each) for each in series]
    largest = max(value for matrix in matrices for row in matrix for value in row)
    per_second = series[0].records[0].unit == "bytes/s"
    divisor, unit = style.byte_scale(largest, per_second)
    width = style.COLUMN_INCHES if len(series) == 1 else style.PAGE_INCHES
    inches = (look.width or width) / len(series) - AXIS_INCHES
    titles = [style.lines_of(each.label, inches) for each in series]
    figure = style.new_figure(look, width, 2.9 + style.TITLE_LINE_INCHES * max(max(map(len, titles)) - 1, 0))
    grid = figure.subplots(1, len(series), squeeze=False, sharey=True)
    for title, matrix, axes in zip(titles, matrices, grid[0]):
        image = draw_panel(axes, matrix, largest, divisor)
        if title:
            axes.set_title("\n".join(title))
    grid[0][0].set_ylabel("from PE")
    bar = figure.colorbar(image, ax=list(grid[0]), shrink=0.85, pad=0.02)
    bar.set_label(f"sent ({unit})")
    bar.ax.yaxis.set_major_locator(MaxNLocator(5))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / divisor:g}"))
    bar.outline.set_visible(False)
    return figure


def draw_panel(axes, matrix, largest, divisor):
    count = len(matrix)
    image = axes.pcolormesh(range(count + 1), range(count + 1), matrix, cmap=COLOUR_MAP, vmin=0, vmax=largest or 1,
                            edgecolors="#d9d9d9" if count <= SHAPES_UP_TO else "none", linewidth=0.5 if count <= 16 else 0.25, rasterized=count > SHAPES_UP_TO)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_ylim(count, 0)
    axes.spines[:].set_visible(False)
    ticks = range(0, count, 1 << max(0, (count - 1) // TICKS_MAX).bit_length())
    axes.set_xticks([tick + 0.5 for tick in ticks], list(ticks))
    axes.set_yticks([tick + 0.5 for tick in ticks], list(ticks))
    axes.tick_params(length=0)
    axes.set_xlabel("to PE")
    if count <= NUMBERS_UP_TO:
        write_numbers(axes, matrix, largest, divisor)
    return image


def write_numbers(axes, matrix, largest, divisor):
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            if value > 0:
                colour = "white" if value > 0.55 * largest else "black"
                axes.text(column + 0.5, row + 0.5, f"{value / divisor:.3g}", ha="center", va="center", fontsize=5.5, color=colour)
