"""weft-lab: a virtual cluster on one machine, made of network namespaces.

cli.py reads the command line; plan.py is the pure description of a lab; network.py builds it;
holder.py keeps it alive; state.py finds it again. Only network.py, nics.py and counters.py speak netlink.
"""

__version__ = "0.1.0"
