#!/usr/bin/env python3
"""The most that `weft-perf alltoall_latency --sizes pareto:ALPHA:SEED` can reach of all NICs, by arithmetic alone.

  bench/pareto_bound.py [--bytes 524288] [--alpha 1.2] [--seed 1] [--window 16] [--nodes 2] [--pes-per-node 4]

A window of steps ends when the PE that sends or receives most has done so, while the share counts the NICs of all PEs. Sizes
are those of tools/perf/sizes.cpp."""
import argparse

MASK = (1 << 64) - 1
SPAN = 64


def mix(value):
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def size_of(options, source, dest, step):
    key = mix(mix(mix(options.seed) ^ (source << 32 | dest)) ^ step)
    uniform = ((key >> 11) + 1) * 2**-53
    return min(options.bytes, int(options.bytes / SPAN * uniform ** (-1 / options.alpha)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=524288, help="the largest message, to each peer")
    parser.add_argument("--alpha", type=float, default=1.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=int, default=16, help="steps between quiets")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--pes-per-node", type=int, default=4)
    parser.add_argument("--windows", type=int, default=400)
    options = parser.parse_args()
    pes = range(options.nodes * options.pes_per_node)
    pairs = [(a, b) for a in pes for b in pes if a // options.pes_per_node != b // options.pes_per_node]
    sent = needed = 0
    for step in range(0, options.windows * options.window, options.window):
        tx, rx = [0] * len(pes), [0] * len(pes)
        for source, dest in pairs:
            count = sum(size_of(options, source, dest, step + i) for i in range(options.window))
            tx[source] += count
            rx[dest] += count
        sent += sum(tx) / len(pes)
        needed += max(tx + rx)
    print(f"{sent / needed:.3f}")


if __name__ == "__main__":
    main()
