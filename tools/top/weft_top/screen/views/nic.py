"""The page of one NIC: what it is, its last minute, every counter with its rate, and who holds it."""

from .. import lines, numbers
from .nics import natural
from .page import Page, nic_label

GRAPH_LINES_MAX = 6
GONE = "this NIC is not here any more; Esc goes back"
NONE = "no NIC is chosen; Enter opens the one under the cursor"


def facts(item):
    """What is fixed about a NIC, as (name, text)."""
    nic = item.nic
    everything = (
        ("kind", nic.kind), ("driver", nic.driver), ("line rate", numbers.line_rate(nic.rate_bits_per_s)),
        ("address", nic.address), ("place", nic.namespace),
    )  # fmt: skip
    return [(name, text) for name, text in everything if text and text != numbers.UNKNOWN]


def _title(item):
    state = item.nic.state
    shown = ("! " if state == "down" else "") + state
    return (lines.clean(nic_label(item.nic)), "title"), ("  ", ""), (shown, "bad" if state == "down" else "ok")


def _facts_line(item):
    pieces = []
    for name, text in facts(item):
        pieces += [(f"{name} ", "dim"), (lines.clean(text), ""), ("   ", "")]
    return tuple(pieces)


def _direction_line(state, item, direction, width):
    value = getattr(item, f"{direction}_bits_per_s")
    share = getattr(item, f"{direction}_share")
    units = None if value is None else value / state.unit_bits
    number = numbers.rate(units, numbers.decimals_for(units or 0))
    text = f"{direction.upper()} {number} {state.unit} {numbers.percent(share)} "
    return ((text, ""), (lines.bar(share, max(width - len(text), 0)), direction))


def _graphs(state, item, width, height):
    """The last minute of both directions, on one scale."""
    top = max((value for pair in item.history for value in pair), default=0)
    drawn = []
    # Two cells a second where there is room, as terminals' cells are narrow.
    times = 2 if width >= 140 else 1
    for index, direction in enumerate(("tx", "rx")):
        values = [pair[index] for pair in item.history for _ in range(times)]
        scale = numbers.rate(top / state.unit_bits, numbers.decimals_for(top / state.unit_bits))
        rows = lines.graph(values, min(width - 10, 60 * times), height, top)
        for position, row in enumerate(rows):
            label = f"{direction.upper()} {scale}" if position == 0 else f"{'0':>9}" if position == height - 1 else " " * 9
            drawn.append(((label, "dim"), ("│", "dim"), (row, direction)))
    seconds = min(60, max(width - 10, 0) // times)
    drawn.append(((" " * 10 + lines.fit(f"{seconds} s ago", 12) + "now".rjust(max(min(width - 10, 60 * times) - 12, 0)), "dim"),))
    return drawn


def _counter_rows(item):
    names = sorted(set(item.nic.counters) | set(item.rates), key=natural)
    return [("counter", name, item.nic.counters.get(name), item.rates.get(name)) for name in names]


def _process_rows(state, item):
    held = [("process", process.pid, process.command, "holds the device") for process in item.nic.processes]
    for pe in state.frame.pes:
        page = pe.page
        for rail in page.rails:
            if page.namespace == item.nic.namespace and item.nic.name in (rail.nic, rail.nic.rpartition("-")[0]):
                held.append(("process", page.process.pid, page.process.command, f"PE {page.pe} of job {page.job}, rail {rail.index}"))
    return held


def _draw(row, width):
    if row[0] == "process":
        return ((lines.fit(f"{row[1]:>8} {row[2]}", 32), ""), (lines.fit(row[3], max(width - 32, 0)), "dim"))
    if row[0] == "title":
        return ((lines.fit(row[1], width), "head"),)
    _, name, value, rate = row
    total = "-" if value is None else f"{value:,}"
    trouble = rate and any(word in name for word in ("drop", "error", "retrans", "fail", "timeout"))
    name_cells = max(min(width - 36, 40), 8)
    return (
        (lines.fit(name, name_cells), ""), (total.rjust(26), ""), (" ", ""),
        (numbers.count(rate, 7), "bad" if trouble else ""), ("/s", "dim"),
    )  # fmt: skip


class NicView:
    name, title = "nic", "NIC"

    def page(self, state, width, height):
        if state.nic_key is None:
            return Page(empty=NONE, has_cursor=False)
        item = next((item for item in state.frame.nics if item.nic.key == state.nic_key), None)
        if item is None:
            return Page(empty=GONE, has_cursor=False)
        head = [_title(item), _facts_line(item), *(_direction_line(state, item, direction, width) for direction in ("tx", "rx"))]
        graph_lines = min((height - 13) // 3, GRAPH_LINES_MAX)
        if graph_lines >= 2 and width >= 40:
            head += _graphs(state, item, width, graph_lines)
        rows = [("title", "counter" + " " * 40)] + _counter_rows(item)
        rows += [("title", "used by")] + (_process_rows(state, item) or [("process", "", "nobody that can be seen", "")])
        return Page(tuple(head), rows, lambda row: _draw(row, width), has_cursor=False)
