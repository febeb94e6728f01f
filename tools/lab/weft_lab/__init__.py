"""weft-lab: a virtual cluster on one machine, made of network namespaces.

cli.py reads the command line; plan.py is the pure description of a lab; network.py builds it;
holder.py keeps it alive; state.py finds it again. Only network.py, nics.py and counters.py speak netlink.
"""

import pathlib

__version__ = "0.1.0"
# What tools share lies beside them, in the tree and where they are installed.
__path__.append(str(pathlib.Path(__file__).resolve().parents[2] / "balance"))
