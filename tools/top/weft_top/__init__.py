"""weft-top: which NIC carries what, in which direction, and for whom."""

import pathlib

__version__ = "0.1.0"
# What tools share lies beside them, in the tree and where they are installed.
__path__.append(str(pathlib.Path(__file__).resolve().parents[2] / "balance"))
