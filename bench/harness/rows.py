"""The rows of the table: each a function that measures and returns Results. Run one: scripts/bench NAME."""
from collections.abc import Callable
from dataclasses import dataclass

from . import faults, node_local, openshmem
from .places import Here, json_lines, lab, median, nic_address, program, provider
from .report import Result

K, M = 1 << 10, 1 << 20
# Four rails of a rate that two cores can fill.
RAIL_RATE = "250mbit"
RAIL_BYTES_PER_S = 250e6 / 8
# 1448 of 1514 bytes of a full frame are payload (tools/lab/README.md).
GOODPUT_SHARE = 1448 / 1514


@dataclass
class Settings:
    runs: int = 3
    seconds: float = 5.0


@dataclass
class Row:
    name: str
    says: str
    measure: Callable[[Settings], list]


ROWS = {}


def row(says):
    def add(function):
        ROWS[function.__name__] = Row(function.__name__, says, function)
        return function

    return add


for name, (says, function) in {**node_local.ROWS, **openshmem.ROWS, **faults.ROWS}.items():
    ROWS[name] = Row(name, says, function)


def duration(settings):
    return ["--duration", settings.seconds]


def goodput_share(settings, place, measure, rails=4):
    """(share, our bytes/s, TCP's bytes/s), both sides in turn."""
    ours, theirs = [], []
    pairs = [(nic_address(0, nic), nic_address(1, nic)) for nic in range(rails)]
    for _ in range(settings.runs):
        sent, seconds = place.tcp_goodput(pairs, settings.seconds)
        theirs.append(sent / seconds)
        ours.append(measure())
    return median(ours) / median(theirs), median(ours), median(theirs), [ours, theirs]


def bandwidth_row(settings, subcommand, sizes, reach):
    results = []
    with lab(nics=4, rate=RAIL_RATE) as place:
        for size in sizes:
            def measure(size=size):
                return place.perf(2, subcommand, "-b", size, "-e", size, *duration(settings)).value() * 1e9

            share, ours, theirs, samples = goodput_share(settings, place, measure)
            results.append(Result(f"{size} B", share, reach, ours=ours / 1e6, theirs=theirs / 1e6, unit="MB/s",
                                  samples=samples))
    return results


@row("put_bw over 4 rails of 250 Mbit/s, against their TCP goodput")
def put_bw_4_rails(settings):
    return bandwidth_row(settings, "put_bw", [M, 4 * M], 0.95)


@row("get_bw over 4 rails, against their TCP goodput")
def get_bw_4_rails(settings):
    return bandwidth_row(settings, "get_bw", [64 * K, M], 0.9)


@row("4 and 16 KiB puts over 4 rails, against their TCP goodput")
def small_puts_4_rails(settings):
    return bandwidth_row(settings, "put_bw", [4 * K, 16 * K], 0.9)


def balance_of(settings, place, pe_count, *words, limits=(1.02, 1.02)):
    """RX and TX max/mean by the kernel's counters, and the goodput between the nodes."""
    runs = [place.perf(pe_count, "alltoall_latency", "--window", 4, "-w", 8, *words, *duration(settings))
            for _ in range(settings.runs)]
    results = []
    for direction, limit in zip(("rx", "tx"), limits):
        samples = [run.balance_ratio(direction) for run in runs]
        results.append(Result(f"{direction.upper()} max/mean", median(samples), limit, at_least=False, samples=samples))
    results[0].in_time = [run.in_time() for run in runs]
    rates = [run.value("GB_per_s_between_nodes") for run in runs]
    return results, median(rates) * 1e9


def share_of_rails(rate, nics, bits_per_s, reach):
    possible = nics * bits_per_s / 8 * GOODPUT_SHARE
    return Result("share of the rails", rate / possible, reach, ours=rate / 1e6, theirs=possible / 1e6, unit="MB/s")


def eight_pes(size):
    """-b and -e for messages of `size` between 8 PEs."""
    return ["-b", 8 * size, "-e", 8 * size]


@row("all-to-all, 2 hosts x 4 PEs x 4 NICs of 40 Mbit/s, 256 KiB")
def alltoall_balance(settings):
    with lab(nics=16, rate="40mbit") as place:
        results, rate = balance_of(settings, place, 8, *eight_pes(256 * K))
        return [*results, share_of_rails(rate, 32, 40e6, 0.95)]


@row("the same, 4 operations a step to each peer")
def alltoall_multiple_of_4(settings):
    with lab(nics=16, rate="40mbit") as place:
        return balance_of(settings, place, 8, *eight_pes(64 * K), "--count-per-step", 4)[0]


@row("the same, 256 KiB of data and an 8 B put in turn")
def alltoall_alternating(settings):
    with lab(nics=16, rate="40mbit") as place:
        results, rate = balance_of(settings, place, 8, *eight_pes(256 * K), "--alternate-signal")
        return [*results, share_of_rails(rate, 32, 40e6, 0.95)]


@row("the same, Pareto sizes (alpha 1.2)")
def alltoall_pareto(settings):
    with lab(nics=16, rate="40mbit") as place:
        words = ["--window", 4, "-w", 8, *eight_pes(M), "--sizes", "pareto:1.2:7", *duration(settings)]
        runs = [place.perf(8, "alltoall_latency", *words) for _ in range(settings.runs)]
    results = []
    for direction in ("rx", "tx"):
        samples = [run.worst_pe(direction) for run in runs]
        results.append(Result(f"{direction.upper()} max/mean of the worst PE", median(samples), 1.05, at_least=False,
                              samples=samples))
    return results


@row("incast, all to PE 0")
def incast_balance(settings):
    with lab(nics=16, rate="40mbit") as place:
        words = ["-b", 256 * K, "-e", 256 * K, "--pattern", "incast"]
        return balance_of(settings, place, 8, *words, limits=(1.05, 1.05))[0]


@row("2 PEs only, 4 NICs each")
def two_pes_balance(settings):
    with lab(nics=4, rate=RAIL_RATE) as place:
        words = ["-b", 256 * K, "-e", 256 * K, "--pattern", "pairs"]
        return balance_of(settings, place, 2, *words, limits=(1.05, 1.05))[0]


@row("uneven rails: 4 against 3")
def uneven_rails(settings):
    with lab(nics=4, rate=RAIL_RATE) as place:
        place.nic("down", 1, 3)
        words = ["-b", M, "-e", M]
        runs = [place.perf(2, "put_bw", *words, *duration(settings)) for _ in range(settings.runs)]
        possible = 3 * RAIL_BYTES_PER_S * GOODPUT_SHARE
        rates = [run.value() * 1e9 for run in runs]
        receive = [run.balance_ratio("rx") for run in runs]
        return [Result("RX max/mean of the 3", median(receive), 1.05, at_least=False, samples=receive),
                Result("share of 3 rails", median(rates) / possible, 0.95, ours=median(rates) / 1e6,
                       theirs=possible / 1e6, unit="MB/s", samples=rates)]


@row("coupled: the lab reproduces the imbalance")
def coupled_problem(settings):
    with lab(nics=16, rate="40mbit") as place:
        receive, transmit = balance_of(settings, place, 8, *eight_pes(256 * K), "--policy", "coupled")[0]
        receive.reach, receive.at_least, transmit.reach = 3.5, True, 1.05
        return [receive, transmit]


@row("cold start: the first communication after init with warm-up, against steady state")
def cold_start(settings):
    """Without warm-up the same must be slow; a row whose control shows nothing cannot tell."""
    with lab(nics=4, rate=RAIL_RATE) as place:
        runs = {warmup: [] for warmup in ("off", "on")}
        for _ in range(settings.runs):
            for warmup, values in runs.items():
                values.append(place.perf(2, "cold_start", "--warmup", warmup).tables())
    results = []
    for table, what in (("cold_start", "first 64 puts"), ("cold_start_allocation", "first allocation")):
        on, off = ([run[table]["ratio"] for run in runs[warmup]] for warmup in ("on", "off"))
        steady = [run[table]["steady"] for run in runs["on"]]
        results.append(Result(f"{what}, with warm-up", median(on), 2.0, at_least=False,
                              ours=median([run[table]["value"] for run in runs["on"]]), theirs=median(steady),
                              unit="µs", samples=[{"on": on}], control=median(off)))
    return results


@row("paged write, warm-up off and on")
def paged_write(settings):
    with lab(nics=4, rate=RAIL_RATE) as place:
        rates = {"on": [], "off": []}
        for _ in range(settings.runs):
            for warmup, values in rates.items():
                values.append(place.perf(2, "paged_write", "--warmup", warmup).value())
        on, off = median(rates["on"]), median(rates["off"])
        return [Result("with warm-up", on / off, 1.0, ours=on, theirs=off, unit="GB/s", samples=[rates])]


@row("one loopback rail against the bare provider that spins")
def bare_provider(settings):
    return against_bare(settings, "none")


@row("one loopback rail against the bare provider that can sleep")
def bare_provider_that_sleeps(settings):
    """Opened as Weft opens it: with a wait descriptor (docs/decisions/0005)."""
    return against_bare(settings, "fd")


def against_bare(settings, wait):
    place, name = Here(rails=1), provider()
    sizes = (8, M)
    latencies = {size: ([], []) for size in sizes}
    bandwidths = ([], [])
    for _ in range(settings.runs):
        loop = [program("raw_write_loop"), "--provider", name, "--wait", wait, *sizes]
        raw = {line["size"]: line for line in json_lines(loop)}
        for size in sizes:
            words = ["put_latency", "-b", size, "-e", size, "-n", 2000 if size < K else 200]
            latencies[size][0].append(place.perf(2, *words, WEFT_PROVIDER=name).value())
            latencies[size][1].append(raw[size]["latency_us"])
        perf = place.perf(2, "put_bw", "-b", M, "-e", M, "-n", 256, "--window", 16, WEFT_PROVIDER=name)
        bandwidths[0].append(perf.value())
        bandwidths[1].append(raw[M]["bandwidth_GB_per_s"])
    results = [Result(f"latency, {size} B", median(ours) / median(theirs), 1.15, at_least=False, ours=median(ours),
                      theirs=median(theirs), unit="µs", samples=[ours, theirs])
               for size, (ours, theirs) in latencies.items()]
    ours, theirs = map(median, bandwidths)
    return [*results, Result("bandwidth, 1 MiB", ours / theirs, 0.95, ours=ours, theirs=theirs, unit="GB/s",
                             samples=list(bandwidths))]


@row("put_signal rate over loopback tcp, 64 B")
def put_signal_rate(settings):
    """Against Weft's own put, quiet, put, quiet; and, since a slow one would flatter the ratio, against two
    writes of the bare provider."""
    name, rates, slow, bare = provider(), [], [], []
    for _ in range(settings.runs):
        run = Here(rails=1).perf(2, "put_signal_rate", "-b", 64, WEFT_PROVIDER=name)
        rates.append(run.value() / 1e6)
        slow.append(run.value("put_quiet_put") / 1e6)
        raw = json_lines([program("raw_write_loop"), "--provider", name, 64])[0]
        bare.append(1 / (2 * raw["latency_us"]))
    return [Result(what, median(rates) / median(theirs), 3.0, ours=median(rates), theirs=median(theirs), unit="M/s",
                   samples=[rates, theirs])
            for what, theirs in (("against put, quiet, put, quiet", slow), ("against two bare writes", bare))]
