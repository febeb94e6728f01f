"""From times to rows. Pure Python: no torch, no GPU. Times are in microseconds; `by_rank[rank][sample]` is the time that a
rank saw, and sample i is the same call on all ranks."""

import datetime
import statistics

DROPPED_OF_CHAIN = 16
"""The first pairs of a chain are not counted: ranks enter it at different moments."""


def across_ranks(by_rank, pick):
    """One value for each sample: `pick` of those of all ranks. A rank that has more samples than another is cut."""
    return [pick(values) for values in zip(*by_rank)]


def spread(values):
    """{"min", "median", "max", "samples"} of the samples."""
    if not values:
        raise ValueError("no sample was taken")
    return {"min": round(min(values), 2), "median": round(statistics.median(values), 2), "max": round(max(values), 2),
            "samples": len(values)}


def of_calls(by_rank):
    """Calls that all ranks enter together. A call ends when its slowest rank ends: `us`. `us_least` has the fastest rank's,
    which is free of what one rank waits for another."""
    return {"us": spread(across_ranks(by_rank, max)), "us_least": spread(across_ranks(by_rank, min))}


def of_chain(by_rank):
    """Periods of pairs that follow each other without the CPU: the median over ranks, without the first ones."""
    periods = across_ranks([times[DROPPED_OF_CHAIN:] for times in by_rank], statistics.median)
    return {"us": spread(periods)}


def of_kernels(by_rank):
    """Times of kernels. Both ranks' kernels wait for the other rank, so the one that came last has the kernel's own time: `us`
    is the least over ranks, `us_most` the largest."""
    return {"us": spread(across_ranks(by_rank, min)), "us_most": spread(across_ranks(by_rank, max))}


def per_call(durations, calls):
    """Sums of the kernels of each of `calls` calls. `durations` are in the order in which they ran; all calls have as many."""
    if not durations or len(durations) % calls:
        raise ValueError(f"{len(durations)} kernels in {calls} calls")
    kernels = len(durations) // calls
    return [sum(durations[i * kernels:(i + 1) * kernels]) for i in range(calls)]


def periods(times):
    """Differences of moments that follow each other."""
    return [after - before for before, after in zip(times, times[1:])]


def row(about, what, method, numbers):
    """A JSON row. `about`: what all rows of a run have in common."""
    return {"what": what, "method": method, **numbers, **about,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
