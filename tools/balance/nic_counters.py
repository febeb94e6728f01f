"""NICs' counters as every tool names them, and how even some NICs or PEs are used: each of their values divided by the mean, and the
largest of these. 1.0 is even; as many as there are values, all on one. max_over_mean.hpp is the same for programs in C++. Pure."""

BYTES = ("tx_bytes", "rx_bytes")
PACKETS = ("tx_packets", "rx_packets")
DROPS = ("tx_drops", "rx_drops")
ERRORS = ("tx_errors", "rx_errors")


def over_mean(values, capacities=None):
    """Each value divided by the mean; () for no values or only zeros. Relative to `capacities`, which are above 0, one for each
    value, if they are given: by the part of its capacity that each uses, so that half the bytes on a NIC of half the rate are even."""
    total = sum(values)
    if not total > 0:
        return ()
    if capacities is None:
        return tuple(value * len(values) / total for value in values)
    whole = sum(capacities)
    return tuple(value / capacity * whole / total for value, capacity in zip(values, capacities))


def max_over_mean(values, capacities=None):
    """None for no values or only zeros."""
    return max(over_mean(values, capacities), default=None)
