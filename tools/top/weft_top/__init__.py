"""weft-top: which NIC carries what, in which direction, and for whom."""

__version__ = "0.1.0"
