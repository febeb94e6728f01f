"""The rows of docs/PERFORMANCE.md as programs: scripts/bench runs them."""
