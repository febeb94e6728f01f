"""What the files of RDMA drivers mean in the words of model.py. Pure.

Sources: the InfiniBand specification, 16.1.3.5 (PortCounters; data counts words of 4 bytes), the kernel's
Documentation/ABI/stable/sysfs-class-infiniband, and each driver's own list of hw_counters.
"""

from ..nic_counters import DROPS, ERRORS, PACKETS

# In hw_counters too, but settings.
NOT_COUNTERS = frozenset({"lifespan"})

# File name -> (our name, factor), for all drivers. Any other file keeps its own name.
_MEANINGS = {
    "port_xmit_data": ("tx_bytes", 4),
    "port_rcv_data": ("rx_bytes", 4),
    "port_xmit_packets": ("tx_packets", 1),
    "port_rcv_packets": ("rx_packets", 1),
    "port_xmit_discards": ("tx_drops", 1),
    "port_rcv_errors": ("rx_errors", 1),
    "tx_pkts": ("tx_packets", 1),
    "rx_pkts": ("rx_packets", 1),
    "sent_pkts": ("tx_packets", 1),  # rxe
    "rcvd_pkts": ("rx_packets", 1),
    "rx_dropped": ("rx_drops", 1),
    "tx_dropped": ("tx_drops", 1),
    "retrans_pkts": ("retransmits", 1),  # efa
}

# Driver -> what is the sum of several of its counters. The parts stay visible under their own
# names.
SUMS = {
    # A NAK for a gap or a timer that ran out: either way the requester sends again; receivers
    # without a buffer drop.
    "mlx5_core": {"retransmits": ("packet_seq_err", "local_ack_timeout_err"), "rx_drops": ("out_of_buffer",)},
}

# What a reader must hear of within a second.
TROUBLE = frozenset({
    *DROPS, *ERRORS, "retransmits", "link_downed", "packet_seq_err", "local_ack_timeout_err", "out_of_buffer",
})

# What is read more often while it moves. Bytes are read at every look.
WHILE_MOVING = frozenset({
    *PACKETS, "rdma_write_bytes", "rdma_read_bytes", "rdma_write_recv_bytes", "rdma_read_resp_bytes",
})


def meaning(file_name, driver):
    """(name, factor) of a counter's file. On a driver of which nothing is known, the common names still hold."""
    return _MEANINGS.get(file_name, (file_name, 1))
