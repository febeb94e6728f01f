"""The grid of `scripts/bench policies`: which traffic on which shape of a cluster, drawn by a seed. Pure.

Rows are chosen so that as many pairs of values of two parameters as can be meet in some row; `FIXED` rows are in every
grid, because targets are stated for them.
"""
import itertools
import random
from dataclasses import dataclass

K, M = 1 << 10, 1 << 20

ALL_TO_ALL, PAIRS, INCAST, RANDOM, PARETO, SIGNAL = "alltoall", "pairs", "incast", "random", "pareto", "signal"
EVEN, FOUR_AGAINST_THREE, ONE_AT_HALF = "even", "4 NICs against 3", "one rail at a half"

PARAMETERS = {
    "hosts": (2, 3),
    "pes_per_host": (1, 2, 4),
    "nics_per_pe": (2, 3, 4),
    "rails": (EVEN, FOUR_AGAINST_THREE, ONE_AT_HALF),
    "pattern": (ALL_TO_ALL, PAIRS, INCAST, RANDOM, PARETO, SIGNAL),
    "bytes": (4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M),
    "steps": (1, 4, 16),
    "operations": (1, 2, 4, 8),
}

# Two cores carry about so much TCP in a lab (docs/decisions/0002); more NICs are slower ones.
LAB_BITS_PER_S = 320e6
NIC_BITS_PER_S_MAX = 40e6
WINDOW_S_MAX = 0.6  # the rails' time for what lies between two quiets; a bad policy takes four times as long
SIGNAL_BYTES = 256 * K
PARETO_MEAN = 0.1  # of the largest, about (alpha 1.2, from 1/64 up)


@dataclass(frozen=True)
class Row:
    """One traffic on one shape. `bytes` to each peer in each operation; `steps` lie between two quiets."""

    hosts: int
    pes_per_host: int
    nics_per_pe: int
    rails: str
    pattern: str
    bytes: int
    steps: int
    operations: int

    @property
    def pes(self):
        return self.hosts * self.pes_per_host

    @property
    def nics_per_host(self):
        return self.pes_per_host * self.nics_per_pe

    @property
    def nic_bits_per_s(self):
        """A whole number of Mbit/s, so that all NICs together are what the machine can carry."""
        return max(1e6, min(NIC_BITS_PER_S_MAX, LAB_BITS_PER_S / (self.hosts * self.nics_per_host) // 1e6 * 1e6))

    @property
    def window_s(self):
        """How long the rails of the busiest PE need for what lies between two quiets."""
        messages = self.steps * self.operations * (1 if self.pattern in (PAIRS, RANDOM) else self.pes - self.pes_per_host)
        mean = self.bytes * (PARETO_MEAN if self.pattern == PARETO else 1)
        return messages * mean * 8 / (self.nics_per_pe * self.nic_bits_per_s)

    def is_possible(self):
        if self.rails == FOUR_AGAINST_THREE and self.nics_per_pe != 4:
            return False
        if self.pattern == SIGNAL and self.bytes != SIGNAL_BYTES:
            return False
        if self.pattern == PARETO and self.bytes < 16 * K:
            return False
        return self.window_s <= WINDOW_S_MAX

    def pairs(self):
        """The pairs of values that meet in this row."""
        values = [(name, getattr(self, name)) for name in PARAMETERS]
        return set(itertools.combinations(values, 2))


# Shares of the rails are asked for in these (all-to-all of 8 PEs over 32 NICs).
FIXED = tuple(Row(2, 4, 4, EVEN, ALL_TO_ALL, size, steps, 1)
              for size in (16 * K, 64 * K, 256 * K) for steps in (1, 4, 16))


def drawn_row(source):
    while True:
        row = Row(**{name: source.choice(values) for name, values in PARAMETERS.items()})
        if row.is_possible():
            return row


def draw(seed, count):
    """`count` rows: FIXED, then those that bring the most new pairs, of 60 drawn for each."""
    source = random.Random(seed)
    rows = list(FIXED[:count])
    covered = set().union(*(row.pairs() for row in rows)) if rows else set()
    while len(rows) < count:
        candidates = [drawn_row(source) for _ in range(60)]
        best = max(candidates, key=lambda row: len(row.pairs() - covered))
        if best not in rows:
            rows.append(best)
            covered |= best.pairs()
    return rows


def covered_share(rows, seed=0):
    """How many of the pairs that can meet at all do, as (met, possible); possible ones are found by drawing."""
    source = random.Random(seed)
    possible = set().union(*(drawn_row(source).pairs() for _ in range(4000)))
    met = set().union(*(row.pairs() for row in rows))
    return len(met & possible), len(possible)


def size_text(count):
    for unit, text in ((M, "MiB"), (K, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {text}"
    return f"{count} B"


def text_of(row):
    """One line for a person."""
    shape = f"{row.hosts} x {row.pes_per_host} x {row.nics_per_pe}"
    rails = "" if row.rails == EVEN else f", {row.rails}"
    return f"{row.pattern} {size_text(row.bytes)}, {row.steps} steps, {row.operations} ops; {shape}{rails}"
