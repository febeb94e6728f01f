"""Which process uses which NICs, and how much: PEs by their own pages, holders of a device by its counters.

What several processes share cannot be told apart by a NIC's counters; such rates are marked, not divided up.
"""

from dataclasses import dataclass, field
from typing import Optional

from .. import lines, numbers
from ..table import Column, Table, order
from .nics import natural
from .page import NicIndex, Page, nic_label, nothing

EMPTY = "no process is known to use a NIC: no job runs, and no holder of a device may be seen"


@dataclass(slots=True)
class Use:
    """A NIC that a process uses: by a rail of its page, or held."""

    label: str
    nic: object  # NicRates or None
    tx: Optional[float]
    rx: Optional[float]
    how: str  # "rail 2", "holds it alone", "shared by 3"


@dataclass(slots=True)
class Owner:
    """A process, with what it uses."""

    pid: int
    command: str
    pe: object = None
    uses: list = field(default_factory=list)

    def total(self, direction):
        known = [getattr(use, direction) for use in self.uses if getattr(use, direction) is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Row:
    owner: Owner
    use: Optional[Use] = None

    def key(self):
        return self.owner.pid, self.owner.command, self.use and (self.use.label, self.use.how)


def owners(frame):
    """All processes of a Frame."""
    found = {}
    index = NicIndex(frame)
    for pe in frame.pes:
        process = pe.page.process
        owner = found.setdefault((process.pid, pe.page.key), Owner(process.pid, process.command, pe))
        for rail in pe.rails:
            nic = index.find(pe.page, rail.rail)
            label = nic_label(nic.nic) if nic is not None else rail.rail.nic
            state = f"rail {rail.rail.index}" + ("" if rail.rail.up else " down")
            owner.uses.append(Use(label, nic, rail.tx_bits_per_s, rail.rx_bits_per_s, state))
    _add_holders(frame, found)
    return list(found.values())


def _add_holders(frame, found):
    by_pid = {pid: owner for (pid, _), owner in found.items()}
    for item in frame.nics:
        count = len(item.nic.processes)
        for process in item.nic.processes:
            owner = by_pid.get(process.pid)
            if owner is None:
                owner = by_pid[process.pid] = found[process.pid, ""] = Owner(process.pid, process.command)
            if any(use.nic is not None and use.nic.nic.key == item.nic.key for use in owner.uses):
                continue  # its page says more
            alone = count == 1
            rates = (item.tx_bits_per_s, item.rx_bits_per_s) if alone else (None, None)
            owner.uses.append(Use(nic_label(item.nic), item, *rates, "holds it" if alone else f"shared by {count}"))


def _owner_label(owner):
    return f"{owner.pid} {owner.command}"


def _pe_words(owner):
    return f"PE {owner.pe.page.pe} of {owner.pe.page.job}" if owner.pe is not None else "not a PE"


def _key(owner):
    page = owner.pe.page if owner.pe is not None else None
    return (0, natural(page.job), page.pe, owner.pid) if page else (1, (), 0, owner.pid)


class _Cells:
    def __init__(self, state, found):
        self.bits = state.unit_bits
        values = [use_rate or 0 for owner in found for use in owner.uses for use_rate in (use.tx, use.rx)]
        totals = [owner.total(direction) or 0 for owner in found for direction in ("tx", "rx")]
        self.decimals = numbers.decimals_for(max(totals, default=0) / self.bits)
        self.largest = max(values, default=0)

    def value(self, row, direction):
        return row.owner.total(direction) if row.use is None else getattr(row.use, direction)

    def rate(self, direction):
        def draw(row, width):
            value = self.value(row, direction)
            return [(numbers.rate(None if value is None else value / self.bits, self.decimals, width), "" if row.use else "bold")]

        return draw

    def bar(self, direction):
        def draw(row, width):
            value = self.value(row, direction) if row.use is not None else None
            return [(lines.bar(value / self.largest if value and self.largest else 0, width), direction)]

        return draw

    @staticmethod
    def name(row, width):
        if row.use is not None:
            return [("  ", ""), (lines.fit(row.use.label, width - 2, "tail"), "")]
        return [(lines.fit(_owner_label(row.owner), width), "bold")]

    @staticmethod
    def what(row, width):
        if row.use is not None:
            down = row.use.how.endswith("down")
            return [(lines.fit(("!" if down else "") + row.use.how, width), "bad" if down else "dim")]
        return [(lines.fit(_pe_words(row.owner), width), "bold")]


def columns(state, found):
    cells = _Cells(state, found)
    return (
        Column("name", "process / NIC", 24, cells.name, lambda row: row.owner.pid, 44, 0, "left", False),
        Column("pe", "PE / rail", 16, cells.what, lambda row: _key(row.owner), 30, 1, "left", False),
        Column("tx", "TX", 6, cells.rate("tx"), lambda row: row.owner.total("tx")),
        Column("tx_bar", "", 8, cells.bar("tx"), None, 40, 2, "left"),
        Column("rx", "RX", 6, cells.rate("rx"), lambda row: row.owner.total("rx")),
        Column("rx_bar", "", 8, cells.bar("rx"), None, 40, 2, "left"),
    )


class ProcessesView:
    name, title = "processes", "Processes"

    def page(self, state, width, height):
        found = [owner for owner in owners(state.frame) if self._matches(state, owner)]
        all_columns = columns(state, found)
        sort = state.place(self.name).sort or ("pe", False)
        ordered = order([Row(owner) for owner in sorted(found, key=_key)], all_columns, sort)
        rows = [line for row in ordered for line in (row, *(Row(row.owner, use) for use in row.owner.uses))]
        table = Table(all_columns, width)
        head, spans = table.header(sort)
        return Page(
            (head,), rows, table.line, Row.key, lambda row: _opens(row), spans,
            tuple(column for column, _ in table.columns if column.sort_key), sort, nothing(state, EMPTY))  # fmt: skip

    @staticmethod
    def _matches(state, owner):
        return state.matches(_owner_label(owner), _pe_words(owner), *(use.label for use in owner.uses))


def _opens(row):
    use = row.use or next((use for use in row.owner.uses if use.nic is not None), None)
    return use.nic.nic.key if use is not None and use.nic is not None else None
