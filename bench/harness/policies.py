"""`scripts/bench policies`: the default policy against each other one, in turn, over a grid of traffics and shapes.

The figure of a row is (best other policy's rate) / (the default's rate), of medians; `regret` is the worst of them.
Every policy runs once; those within CANDIDATE of the default run in each further round, in turn with it. Rows that are
close to the limit or above it get more rounds of both sides, so that a single disturbed run decides nothing.
"""
import argparse
import datetime
import json
import runpy
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field

from . import grid, policies_elsewhere
from .places import ROOT, Missing, lab, json_lines
from .report import Log

POLICIES = runpy.run_path(str(ROOT / "tools" / "top" / "weft_top" / "rail_policies.py"))
DEFAULT = POLICIES["DEFAULT"]
OTHERS = tuple(name for name in POLICIES["TEXTS"] if name != DEFAULT)
WINDOWS_MIN = 4  # quiets in a run
CANDIDATE = 1.15  # a policy that is so much slower in its first run is not the best one
DOUBTFUL = 1.02   # rows whose ratio is above it get more rounds
SHARE_REACH = 0.92
SHARE_REACH_LARGE = 0.95
REGRET_REACH = 1.05


@dataclass
class Settings:
    seed: int = 1
    rows: int = 48
    seconds: float = 1.5
    rounds: int = 2
    rounds_max: int = 5


@dataclass
class Measured:
    """One row: each policy's rates (bytes/s between hosts) and shares of the rails, by run."""

    row: grid.Row
    rates: dict = field(default_factory=dict)
    shares: dict = field(default_factory=dict)
    limit_share: float | None = None  # of plain TCP with the same messages

    def rate(self, policy):
        return statistics.median(self.rates[policy])

    def share(self, policy):
        return statistics.median(self.shares[policy])

    def best_other(self):
        return max(self.others(), key=self.rate)

    def others(self):
        return [policy for policy in OTHERS if policy in self.rates]

    def ratio(self):
        return self.rate(self.best_other()) / self.rate(DEFAULT)


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="scripts/bench policies", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="draws the rows (default: 1); another seed is another grid")
    parser.add_argument("--rows", type=int, default=48, help="how many, the 9 with targets of their own included (default: 48)")
    parser.add_argument("--only", type=int, metavar="N", help="the N-th row alone, from 1")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the N-th row, to go on with a grid")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run, more where quiets are rare (default: 1.5)")
    parser.add_argument("--rounds", type=int, default=2, help="at least so many runs of the default (default: 2)")
    parser.add_argument("--list", action="store_true", help="print the rows, and measure nothing")
    parser.add_argument("--simulated", action="store_true",
                        help="rows of weft-sim instead, up to 512 nodes, with slow planes and leaves: no network, no noise")
    parser.add_argument("--emulated", action="store_true",
                        help="rows with slow planes and large messages on emulated NICs instead (loom/)")
    parser.add_argument("--table", metavar="FILE", help="print what FILE, data of a grid, holds as a table in Markdown")
    return parser.parse_args(words)


def traffic(row):
    """weft-perf's words for a row."""
    spread = row.pes if row.pattern in (grid.ALL_TO_ALL, grid.PARETO, grid.SIGNAL) else 1
    words = ["alltoall_latency", "-b", row.bytes * spread, "-e", row.bytes * spread, "--window", row.steps,
             "-w", row.steps, "--count-per-step", row.operations]
    if row.pattern in (grid.PAIRS, grid.INCAST, grid.RANDOM):
        words += ["--pattern", row.pattern]
    if row.pattern == grid.PARETO:
        words += ["--sizes", "pareto:1.2:7"]
    if row.pattern == grid.SIGNAL:
        words += ["--alternate-signal"]
    return words


def shape(place, row):
    """Makes the NICs of host 1 what the row says; before any PE starts."""
    if row.rails == grid.FOUR_AGAINST_THREE:
        for pe in range(row.pes_per_host):
            place.nic("down", 1, pe * row.nics_per_pe + 3)
    if row.rails == grid.ONE_AT_HALF:
        place.nic("rate", 1, 0, f"{row.nic_bits_per_s / 2e3:.0f}kbit")


def run(place, row, policy, seconds, into):
    perf = place.perf(row.pes, *traffic(row), "--duration", seconds, "--policy", policy)
    into.rates.setdefault(policy, []).append(perf.value("GB_per_s_between_nodes") * 1e9)
    into.shares.setdefault(policy, []).append(perf.balance["share_of_rails"])


def bare_limit(place, row, seconds):
    """The share that plain TCP reaches with the same messages; None where bare_flows.py is no limit."""
    peers = row.pes - row.pes_per_host
    divides = peers % row.nics_per_pe == 0 or row.nics_per_pe % peers == 0
    if row.pattern != grid.ALL_TO_ALL or row.rails != grid.EVEN or not divides:
        return None
    words = ["--pes-per-host", row.pes_per_host, "--nics-per-pe", row.nics_per_pe,
             "--bytes", row.bytes * row.steps * row.operations, "--duration", seconds]
    command = [sys.executable, ROOT / "bench" / "bare_flows.py", "--lab", place.name, *words]
    return json_lines(command)[0]["share_of_rails"]


def seconds_of(row, settings):
    """Of one run: some windows at least, as slow NICs are found from what lies between quiets."""
    return max(settings.seconds, WINDOWS_MIN * row.window_s)


def measure(row, settings):
    measured = Measured(row)
    seconds = seconds_of(row, settings)
    with lab(nics=row.nics_per_host, rate=f"{row.nic_bits_per_s / 1e3:.0f}kbit", hosts=row.hosts) as place:
        shape(place, row)
        for policy in (DEFAULT, *OTHERS):
            if policy != "single" or single_may_win(measured):
                run(place, row, policy, seconds, measured)
        for turn in range(1, settings.rounds_max):
            candidates = [policy for policy in measured.others() if measured.rate(policy) * CANDIDATE > measured.rate(DEFAULT)]
            if turn >= settings.rounds and measured.ratio() < DOUBTFUL:
                break
            order = [DEFAULT, *candidates]
            for policy in order if turn % 2 == 0 else reversed(order):
                run(place, row, policy, seconds, measured)
        measured.limit_share = bare_limit(place, row, seconds)
    return measured


def single_may_win(measured):
    """One NIC of each PE carries all of it: where the default has more than these can, the run would only take time."""
    row = measured.row
    return measured.rate(DEFAULT) <= CANDIDATE * row.pes * row.nic_bits_per_s / 8


def line_of(measured):
    other = measured.best_other()
    limit = "" if measured.limit_share is None else f"; plain TCP {measured.limit_share:.2f}"
    return (f"{grid.text_of(measured.row):<70} {DEFAULT} {measured.share(DEFAULT):.3f}   {other} {measured.share(other):.3f}   "
            f"ratio {measured.ratio():.3f}{limit}")


def share_reach(row):
    """The share asked for in a row of grid.FIXED, else None."""
    if row not in grid.FIXED:
        return None
    return SHARE_REACH_LARGE if row.bytes >= 256 * grid.K and row.steps == 16 else SHARE_REACH


class Data:
    """bench/data/DATE-MACHINE-policies[-KIND].jsonl: a line a row, and one for the whole grid."""

    def __init__(self, settings, kind=""):
        log = Log(settings, kind=f"-policies{kind}")
        self.path = log.path
        self.common = {"seed": settings.seed, "seconds": settings.seconds, "machine": log.machine, "versions": log.versions}

    def add(self, line):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "date": now, **self.common}) + "\n")

    def add_row(self, number, measured):
        self.add({"row": number, "traffic": grid.text_of(measured.row), **asdict(measured.row),
                  "nic_bits_per_s": measured.row.nic_bits_per_s, "bytes_per_s": measured.rates,
                  "share_of_rails": measured.shares, "plain_tcp_share": measured.limit_share,
                  "best_other": measured.best_other(), "ratio": measured.ratio()})


def summarize(results, minutes):
    """What the last lines say, and what goes into the data."""
    worst = max(results, key=Measured.ratio)
    missed = [result for result in results
              if (reach := share_reach(result.row)) is not None and result.share(DEFAULT) < reach]
    return {"regret": worst.ratio(), "regret_row": grid.text_of(worst.row), "rows": len(results),
            "median_ratio": statistics.median(map(Measured.ratio, results)), "minutes": round(minutes, 1),
            "shares_missed": [f"{grid.text_of(result.row)}: {result.share(DEFAULT):.3f}" for result in missed]}


def table_of(lines):
    """Markdown, of the rows in the data of the last grid."""
    first = max(index for index, line in enumerate(lines) if line.get("row") == 1)
    text = ["| traffic; hosts x PEs x NICs | NIC, Mbit/s | default | best other | its rate / the default's | plain TCP |",
            "|---|---|---|---|---|---|"]
    for line in lines[first:]:
        if "row" in line:
            shares = {policy: statistics.median(values) for policy, values in line["share_of_rails"].items()}
            limit = "" if line["plain_tcp_share"] is None else f"{line['plain_tcp_share']:.2f}"
            other = line["best_other"]
            text.append(f"| {line['traffic']} | {line['nic_bits_per_s'] / 1e6:g} | {shares[DEFAULT]:.2f} | {other} {shares[other]:.2f} "
                        f"| {line['ratio']:.3f} | {limit} |")
    return "\n".join(text)


def main(words):
    arguments = parse_arguments(words)
    if arguments.table:
        with open(arguments.table, encoding="utf-8") as file:
            print(table_of([json.loads(line) for line in file]))
        return 0
    settings = Settings(seed=arguments.seed, rows=arguments.rows, seconds=arguments.seconds, rounds=arguments.rounds)
    if arguments.simulated or arguments.emulated:
        data = Data(settings, "-simulated" if arguments.simulated else "-emulated")
        source = (policies_elsewhere.simulated_rows(DEFAULT, OTHERS) if arguments.simulated
                  else policies_elsewhere.emulated_rows(DEFAULT, OTHERS, settings))
        try:
            return policies_elsewhere.report(source, DEFAULT, data)
        except Missing as missing:
            print(f"not measured: {missing}", file=sys.stderr)
            return 1
    rows = list(enumerate(grid.draw(settings.seed, settings.rows), 1))
    met, possible = grid.covered_share([row for _, row in rows])
    print(f"seed {settings.seed}: {len(rows)} rows, in which {met} of {possible} possible pairs of values meet", flush=True)
    if arguments.list:
        for number, row in rows:
            print(f"{number:>3}  {grid.text_of(row)}  ({row.nic_bits_per_s / 1e6:g} Mbit/s)")
        return 0
    data, results, start = Data(settings), [], time.monotonic()
    for number, row in rows:
        if number >= arguments.first and arguments.only in (None, number):
            try:
                results.append(measure(row, settings))
            except Missing as missing:
                print(f"{number:>3}  {grid.text_of(row)}: not measured: {missing}", file=sys.stderr)
                return 1
            data.add_row(number, results[-1])
            print(f"{number:>3}  {line_of(results[-1])}", flush=True)
    if not results:
        sys.exit(f"scripts/bench policies: there is no row {arguments.only}; --list shows them")
    summary = summarize(results, (time.monotonic() - start) / 60)
    data.add({"summary": summary})
    for text in summary["shares_missed"]:
        print(f"share below its target: {text}")
    print(f"{summary['rows']} rows in {summary['minutes']} minutes; median ratio {summary['median_ratio']:.3f}; data: {data.path}")
    print(f"regret {summary['regret']:.3f} (target {REGRET_REACH}), in: {summary['regret_row']}")
    return 0
