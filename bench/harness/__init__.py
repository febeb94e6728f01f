"""The rows of docs/PERFORMANCE.md as programs: scripts/bench runs them."""

import pathlib

# What benchmarks and tools share.
__path__.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "balance"))
