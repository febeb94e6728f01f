"""Horizontal bars for a terminal: one line a NIC, 80 columns wide.

Pure: rows in, text out. The mean is marked in each bar's scale, so that an uneven host is seen at once.
"""

WIDTH = 80
EIGHTHS = " ▏▎▍▌▋▊▉"
RED, GREEN, RESET = "\033[31m", "\033[32m", "\033[0m"
FAR_ABOVE_MEAN = 1.5


def bar(value, largest, width):
    """A bar of at most `width` characters, to an eighth of one."""
    eighths = round(value / largest * width * 8) if largest else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")


def megabytes(value):
    return f"{value / 1e6:.1f} MB"


def draw(rows, colour=False):
    """`rows`: (host, NIC, bytes). One scale for all; bars far above the mean are red in colour."""
    if not rows:
        return "(no NICs)"
    largest = max(value for _, _, value in rows)
    mean = sum(value for _, _, value in rows) / len(rows)
    label_width = max(len(f"{host} {nic}") for host, nic, _ in rows)
    number_width = max(len(megabytes(value)) for *_, value in rows)
    room = WIDTH - label_width - number_width - 2
    lines = []
    for host, nic, value in rows:
        text = bar(value, largest, room).ljust(room)
        if colour:
            text = (RED if value > FAR_ABOVE_MEAN * mean else GREEN) + text + RESET
        lines.append(f"{f'{host} {nic}':<{label_width}} {text} {megabytes(value):>{number_width}}")
    return "\n".join(lines)
