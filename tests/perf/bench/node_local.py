"""Rows inside a node: against OpenMPI's oshmem over UCX, and against memcpy; and how many PEs fit."""
import ctypes
import subprocess
import time

from .places import Here, Missing, ROOT, median, oshmem, program
from .report import Result

K, M = 1 << 10, 1 << 20
SIZES = (64 * K, M, 16 * M)


def memcpy_rate(size):
    """GB/s of memcpy from one buffer to another, hot."""
    source, dest = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    count = min(5000, (2 << 30) // size)
    for _ in range(count // 10 + 1):
        ctypes.memmove(dest, source, size)
    start = time.perf_counter()
    for _ in range(count):
        ctypes.memmove(dest, source, size)
    return size * count / (time.perf_counter() - start) / 1e9


def small_operations(settings):
    """Both sides in turn; the ratio is theirs / ours, so above 1 is ahead."""
    place = Here()
    commands = {"put_quiet": ["put_latency", "-b", 8, "-e", 8, "-n", 200000],
                "get": ["get_latency", "-b", 8, "-e", 8, "-n", 200000],
                "fetch_add": ["atomic_latency", "-a", "fetch_add", "-d", "int64", "-n", 200000]}
    ours, theirs = {what: [] for what in commands}, {what: [] for what in commands}
    for _ in range(settings.runs):
        measured = oshmem()
        for what, words in commands.items():
            theirs[what].append(measured[what, 8])
            ours[what].append(place.perf(2, *words).value())
    return [Result(what, median(theirs[what]) / median(ours[what]), 1.0, ours=median(ours[what]) * 1e3,
                   theirs=median(theirs[what]) * 1e3, unit="ns", samples=[ours[what], theirs[what]])
            for what in commands]


def large_puts(settings):
    place = Here()
    values = {size: {"weft": [], "oshmem": [], "memcpy": []} for size in SIZES}
    for _ in range(settings.runs):
        measured = oshmem()
        for size, sides in values.items():
            latency_us = place.perf(2, "put_latency", "-b", size, "-e", size, "-n", 500).value()
            sides["weft"].append(size / latency_us / 1e3)
            sides["oshmem"].append(measured["put", size])
            sides["memcpy"].append(memcpy_rate(size))
    return [Result(f"{size // K} KiB against {other}", median(sides["weft"]) / median(sides[other]), 1.0,
                   ours=median(sides["weft"]), theirs=median(sides[other]), unit="GB/s", samples=[sides])
            for size, sides in values.items() for other in ("oshmem", "memcpy")]


def many_pes(settings):
    """256 PEs as processes: from the launch to the end of their first barriers."""
    del settings  # once says enough
    command = [program("weft-run"), "-n", "256", "--", program("weft-perf"), "barrier_latency", "-n", "1", "-w", "0"]
    start = time.monotonic()
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Missing(f"256 PEs: {done.stderr.strip()[-300:]}")
    return [Result("launch, init, barriers, end", time.monotonic() - start, 20, at_least=False, unit="s")]


ROWS = {
    "node_local_small": ("node-local put + quiet, get, fetch_add of 8 B, against oshmem over UCX", small_operations),
    "node_local_large": ("node-local puts, against oshmem over UCX and memcpy", large_puts),
    "many_pes": ("256 PEs as processes", many_pes),
}
