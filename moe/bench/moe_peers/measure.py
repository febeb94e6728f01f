"""How a pair of dispatch and combine is timed, the same way for every library. Each function gives times in microseconds of
this rank, one for each sample; summary.py puts ranks together. README.md says what the methods mean.

Ranks enter a timed call together: their streams sleep until the CPU has enqueued everything, then meet in an all-reduce of
NCCL, and the first event follows that."""

import gc
import os
import time

import torch
import torch.distributed as distributed

import summary

CHAIN = 128
"""Pairs that follow each other without the CPU waiting."""
PAIRS_IN_GRAPH = 48
"""A multiple of 2 and 3: libraries take turns with so many buffers."""
SLEEP_CYCLES = 1_000_000
"""About 500 us at the clock of an H100, in which the CPU enqueues a call."""


class Ranks:
    """The ranks of one library, one GPU each: values are gathered over the CPU, streams meet over NCCL."""

    def __init__(self, device, file):
        self.device = device
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(backend, init_method=f"file://{file}", **_rank_and_size())
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self._word = torch.zeros(1, device=device)
        distributed.all_reduce(self._word)

    def gather(self, value):
        """[value of rank 0, ...], on all ranks."""
        values = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def meet(self):
        """Enqueues what lets all streams go on at the same time."""
        if self.device.type == "cuda":
            torch.cuda._sleep(SLEEP_CYCLES)
        distributed.all_reduce(self._word)


def _rank_and_size():
    return {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}


class Events:
    """Moments on the current stream."""

    def __init__(self):
        self._events = []

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def periods(self):
        """Between one mark and the next, after all of them."""
        torch.cuda.synchronize()
        return [before.elapsed_time(after) * 1000 for before, after in zip(self._events, self._events[1:])]


class CpuMoments:
    """The same without a GPU, to try the programs."""

    def __init__(self):
        self._times = []

    def mark(self):
        self._times.append(time.perf_counter() * 1e6)

    def periods(self):
        return summary.periods(self._times)


def _clock_of(ranks):
    return Events if ranks.device.type == "cuda" else CpuMoments


class Pair:
    """A dispatch and a combine of an adapter whose experts' answers lie ready."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.answers = None

    def prepare(self):
        received = self.adapter.dispatch()
        self.answers = self.adapter.experts(received)
        self.adapter.combine(received, self.answers)

    def both(self):
        return self.adapter.combine(self.adapter.dispatch(), self.answers)


def fresh(pair, ranks, trials):
    """{"dispatch": times, "combine": times, "pair": times} of calls that all ranks enter together."""
    adapter, clock, times = pair.adapter, _clock_of(ranks), {"dispatch": [], "combine": [], "pair": []}
    for trial in range(trials + 3):
        events = clock()
        ranks.meet()
        events.mark()
        received = adapter.dispatch()
        events.mark()
        after_dispatch = clock()
        ranks.meet()
        after_dispatch.mark()
        adapter.combine(received, pair.answers)
        after_dispatch.mark()
        del received
        whole = clock()
        ranks.meet()
        whole.mark()
        pair.both()
        whole.mark()
        if trial < 3:
            continue
        for name, marks in (("dispatch", events), ("combine", after_dispatch), ("pair", whole)):
            times[name] += marks.periods()
    return times


def chain(pair, ranks):
    """{"pair": periods} of CHAIN pairs, the CPU running ahead as far as it can."""
    events = _clock_of(ranks)()
    ranks.meet()
    for _ in range(CHAIN):
        events.mark()
        pair.both()
    events.mark()
    return {"pair": events.periods()}


def in_graph(pair, ranks, replays):
    """{"pair": times} of a pair in a CUDA graph of PAIRS_IN_GRAPH, one value for each replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            pair.both()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        for _ in range(PAIRS_IN_GRAPH):
            pair.both()
    times = []
    for replay in range(replays + 2):
        events = Events()
        ranks.meet()
        events.mark()
        graph.replay()
        events.mark()
        if replay >= 2:
            times += [time / PAIRS_IN_GRAPH for time in events.periods()]
    torch.cuda.synchronize()
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    return {"pair": times}


def kernels(pair, ranks, calls):
    """{"dispatch": times, "combine": times} of kernels alone, by the profiler, for each of `calls` pairs."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        ranks.meet()
        for _ in range(calls):
            pair.both()
        torch.cuda.synchronize()
    ran = sorted((event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA),
                 key=lambda event: event.time_range.start)
    times = {}
    for what, parts in pair.adapter.kernels.items():
        durations = [event.time_range.end - event.time_range.start for event in ran
                     if any(part in event.name for part in parts)]
        try:
            times[what] = summary.per_call(durations, calls)
        except ValueError as error:
            names = sorted({event.name[:60] for event in ran})
            raise ValueError(f"{what}: {error}; there were {names}") from None
    return times
