"""Rows with a rail that is slow, or that dies in mid-run."""
import time

from .places import finish, lab, median
from .report import Result

M = 1 << 20
RATE_BITS_PER_S = 250e6
GOODPUT_SHARE = 1448 / 1514
FIRST_PUTS = 64


def slow_rail(settings):
    """One NIC of four at a part of its rate, at both ends in turn; the library is not told. In the first 64 puts it
    has to find out, while a window of pieces waits on that NIC already; these are measured for themselves."""
    results = []
    for part in (2, 4):
        possible = (3 + 1 / part) * RATE_BITS_PER_S / 8 * GOODPUT_SHARE
        for text, words in (
            ("", ["-w", FIRST_PUTS, "--duration", settings.seconds]),
            (f"; the first {FIRST_PUTS} MiB", ["-w", 0, "-n", FIRST_PUTS]),
        ):
            with lab(nics=4, rate="250mbit") as place:
                place.nic("rate", 1, 2, f"{250 // part}mbit")
                rates = [place.perf(2, "put_bw", "-b", M, "-e", M, *words).value() * 1e9 for _ in range(settings.runs)]
                results.append(Result(f"at 1/{part} of its rate{text}", median(rates) / possible, None if text else 0.9,
                                      ours=median(rates) / 1e6, theirs=possible / 1e6, unit="MB/s", samples=rates))
    return results


def cut_rail(settings):
    """A NIC goes down in the middle of a verified run. The gap is that of paged_write's throughput."""
    gaps = []
    for _ in range(settings.runs):
        with lab(nics=4, rate="250mbit") as place:
            words = ["paged_write", "--total", "32M", "-n", "10", "--interval", "50"]
            process = place.start(2, *words)
            time.sleep(1.5)
            place.nic("down", 1, 2)
            lines = [row for row in finish(process).rows if "time_ms" in row]
            gaps.append(longest_gap(lines))
    return [Result("longest time without progress", median(gaps), 1.0, at_least=False, ours=median(gaps), unit="s",
                   samples=gaps)]


def longest_gap(lines):
    """Seconds in a row in which less than a tenth of the median came."""
    few = median([line["value"] for line in lines]) / 10
    longest = gap = before = 0
    for line in lines:
        step = line["time_ms"] - before
        gap = gap + step if line["value"] < few else 0
        longest, before = max(longest, gap), line["time_ms"]
    return longest / 1e3


ROWS = {
    "slow_rail": ("one of 4 rails slow, detected by Weft, against the remaining capacity", slow_rail),
    "cut_rail": ("one of 4 rails cut in mid-run; every byte verified", cut_rail),
}
