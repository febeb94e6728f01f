"""Numbers as text of a known width. Pure.

Invariants: what is not known is "-", never 0; no text is wider than asked for; a column uses the same number
of decimals in every row, so that its points stand below each other.
"""

import time

UNKNOWN = "-"
# What one unit of the screen is, in bits per second.
UNIT_BITS = {"Gbit/s": 1e9, "GB/s": 8e9}
RATE_WIDTH = 6
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def decimals_for(largest):
    """How many decimals fit RATE_WIDTH beside the largest value of a column."""
    for limit, decimals in ((1, 4), (10, 3), (100, 2), (1000, 1)):
        if largest < limit - 0.5 * 10**-decimals:
            return decimals
    return 0


def rate(value, decimals, width=RATE_WIDTH):
    """A value in the screen's unit, right-aligned in `width`."""
    if value is None:
        return UNKNOWN.rjust(width)
    if not value:
        return "0".rjust(width)
    if value < 0.5 * 10**-decimals:
        return "~0".rjust(width)
    text = f"{value:.{decimals}f}"
    return text.rjust(width) if len(text) <= width else count(value, width)


def count(value, width=0):
    """A number with three digits and a prefix: 999, 12.3k, 4.00M; right-aligned in `width`."""
    if value is None:
        return UNKNOWN.rjust(width)
    for prefix in _PREFIXES:
        if value < 999.5:
            break
        value /= 1000
    if not prefix:
        text = f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
        return ("<1" if text == "0.0" else text).rjust(width)
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{min(value, 999):.{decimals}f}{prefix}".rjust(width)


def percent(share, width=4):
    """A share of 1.0 as a percentage; what is above 999 % is cut there."""
    if share is None:
        return UNKNOWN.rjust(width)
    return f"{min(share * 100, 999):.0f}%".rjust(width)


def ratio(value, width=4):
    """max/mean: 1.00, 12.5."""
    if value is None:
        return UNKNOWN.rjust(width)
    return (f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}").rjust(width)


def line_rate(bits_per_s):
    """A line rate in the words that are printed on the box: 400 Gbit/s, 40 Mbit/s."""
    if not bits_per_s:
        return UNKNOWN
    for limit, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= limit:
            return f"{bits_per_s / limit:.4g} {unit}"
    return f"{bits_per_s:.4g} bit/s"


def seconds(value):
    """100 ms, 2 s."""
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:g} s"


def clock(wall_ns):
    """The local time of day of a moment since 1970."""
    return time.strftime("%H:%M:%S", time.localtime(wall_ns // 1_000_000_000))
