"""All modules that draw, behind one import: they need matplotlib, and what reads and lists does not."""
from . import draw_compared, draw_nics, draw_peers, draw_sizes, draw_time

__all__ = ["draw_compared", "draw_nics", "draw_peers", "draw_sizes", "draw_time"]
