"""What Python costs on top of the C interface, as JSON lines: a host put and an operator of torch, a put of 1 MiB against
the C call, the import.

    weft-run -n 2 -- python bench/python_overhead.py > bench/data/DATE-MACHINE-python.jsonl

PE 0 measures, PE 1 waits. Each number is the median of the rounds, with the fastest and the slowest beside it. The C call is
weft_put of the same library through ctypes; an empty call shows what ctypes costs.
"""
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy
import weft

ROUNDS = 15


def timed(call, count, rounds=ROUNDS):
    """Seconds of one call, in each round."""
    call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken.append((time.perf_counter() - start) / count)
    return taken


def compare(name, of_c, of_python):
    """Both in turn, so that other work on the machine meets both. The ratio is of rates: 1 is the C call's."""
    sides = {"c_us": [], "python_us": []}
    for _ in range(100):
        for side, call in zip(sides, (of_c, of_python)):
            start = time.perf_counter()
            for _ in range(20):
                call()
            sides[side].append(round((time.perf_counter() - start) / 20 * 1e6, 3))
    c, python = (sorted(samples) for samples in sides.values())
    row(name, [us / 1e6 for us in python], ratio_of_medians=round(statistics.median(c) / statistics.median(python), 4),
        ratio_of_fastest_tenths=round(statistics.mean(c[:10]) / statistics.mean(python[:10]), 4), **sides)


def row(name, rounds, **more):
    us = sorted(second * 1e6 for second in rounds)
    print(json.dumps({
        "name": name, "us": round(statistics.median(us), 4), "us_min": round(us[0], 4), "us_max": round(us[-1], 4), **more,
        "python": platform.python_version(), "weft": weft.__version__, "machine": platform.machine(), "cpus": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d")}), flush=True)


def c_interface():
    """weft_put and weft_pe, which does nothing."""
    library = ctypes.CDLL(weft.library())
    library.weft_put.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.weft_pe.argtypes = []
    return library


def import_time(statement):
    """Milliseconds of an import, in interpreters of their own, less those of one that imports nothing."""
    def run(program):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return time.perf_counter() - start
    empty = min(run("pass") for _ in range(10))
    return [run(statement) - empty for _ in range(10)]


def collectives(samples, setting):
    """Adds seconds of a call of each collective to samples[name]: all PEs call it, with WEFT_CHECK_COLLECTIVES as given."""
    os.environ["WEFT_CHECK_COLLECTIVES"] = setting
    with weft.init() as job:
        dest, source = weft.zeros(2 * job.pe_count), weft.zeros(2)
        calls = {"weft.barrier_all": weft.barrier_all, "Team.sync": weft.world.sync,
                 "Team.broadcast of 8 B": lambda: weft.world.broadcast(dest[:2], source),
                 "Team.reduce of 8 B": lambda: weft.world.reduce(dest[:2], source),
                 "Team.fcollect of 8 B": lambda: weft.world.fcollect(dest, source)}
        for name, call in calls.items():
            samples.setdefault(f"{name}, {setting}", []).extend(timed(call, 2000, rounds=3))


def collective_rows():
    """With the comparison of arguments and without, in turn."""
    samples = {}
    for _ in range(8):
        for setting in "yes", "no":
            collectives(samples, setting)
    del os.environ["WEFT_CHECK_COLLECTIVES"]
    return samples


def torch_rows(dest, peer):
    try:
        import torch
        import weft.torch
    except ImportError as error:
        print(json.dumps({"name": "torch", "left_out": str(error)}), flush=True)
        return
    small, large = torch.zeros(2), torch.zeros(1 << 18)
    near = torch.from_dlpack(dest)
    row("weft.put of 8 B, tensors", timed(lambda: weft.put(near[:2], small, peer), 5000), torch=torch.__version__)
    view = near[:2]
    row("weft.put of 8 B, tensors that exist", timed(lambda: weft.put(view, small, peer), 5000), torch=torch.__version__)
    operator = torch.ops.weft.put.default
    row("torch.ops.weft.put of 8 B", timed(lambda: operator(view, small, peer), 5000), torch=torch.__version__)
    library, address, source = c_interface(), near.data_ptr(), large.data_ptr()
    compare("put of 1 MiB, tensors", lambda: library.weft_put(address, source, 1 << 20, peer), lambda: weft.put(near, large, peer))


def main():
    samples = collective_rows()
    with weft.init() as job:
        for name, rounds in samples.items() if job.pe == 0 else ():
            row(name, rounds)
        dest = weft.zeros(1 << 18, "float32")
        peer = job.pe_count - 1
        if job.pe == 0:
            library = c_interface()
            small, large = numpy.zeros(2, "float32"), numpy.zeros(1 << 18, "float32")
            few = dest[:2]
            row("empty call of ctypes", timed(library.weft_pe, 20000))
            to, mine = few.address, small.ctypes.data
            row("weft_put of 8 B by ctypes", timed(lambda: library.weft_put(to, mine, 8, peer), 20000))
            row("weft.put of 8 B, numpy", timed(lambda: weft.put(few, small, peer), 20000))
            own = dest[2:4]
            row("weft.put of 8 B, arrays of weft", timed(lambda: weft.put(few, own, peer), 20000))
            address, source = dest.address, large.ctypes.data
            compare("put of 1 MiB, numpy", lambda: library.weft_put(address, source, 1 << 20, peer), lambda: weft.put(dest, large, peer))
            torch_rows(dest, peer)
            row("import weft", import_time("import weft"))
            row("import weft, and its module", import_time("import weft; weft.put"))
        weft.barrier_all()


if __name__ == "__main__":
    main()
