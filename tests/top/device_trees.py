"""Trees like /sys/class/infiniband, made of what the drivers efa, mlx5 and hfi1 show there."""

EFA_HW = (
    "alloc_pd_err", "alloc_ucontext_err", "cmds_err", "completed_cmds", "create_ah_err", "create_cq_err",
    "create_qp_err", "keep_alive_rcvd", "lifespan", "mmap_err", "no_completion_cmds", "rdma_read_bytes",
    "rdma_read_resp_bytes", "rdma_read_wr_err", "rdma_read_wrs", "rdma_write_bytes", "rdma_write_recv_bytes",
    "rdma_write_wr_err", "rdma_write_wrs", "recv_bytes", "recv_wrs", "reg_mr_err", "retrans_bytes", "retrans_pkts",
    "retrans_timeout_events", "rx_bytes", "rx_drops", "rx_pkts", "send_bytes", "send_wrs", "submitted_cmds",
    "tx_bytes", "tx_pkts",
)  # fmt: skip
PORT = (
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
    "local_link_integrity_errors", "multicast_rcv_packets", "multicast_xmit_packets", "port_rcv_constraint_errors",
    "port_rcv_data", "port_rcv_errors", "port_rcv_packets", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_data", "port_xmit_discards",
    "port_xmit_packets", "port_xmit_wait", "symbol_error", "unicast_rcv_packets", "unicast_xmit_packets",
)  # fmt: skip
MLX5_HW = (
    "duplicate_request", "implied_nak_seq_err", "lifespan", "local_ack_timeout_err", "out_of_buffer",
    "out_of_sequence", "packet_seq_err", "req_cqe_error", "resp_cqe_error", "rnr_nak_retry_err", "rx_atomic_requests",
    "rx_read_requests", "rx_write_requests", "np_cnp_sent", "rp_cnp_handled", "roce_adp_retrans",
)  # fmt: skip
HFI1_HW = ("RcvHdrOvr", "RxDmaDataFifoErr", "TxFlowStall", "lifespan")


class Port:
    """One port of a made device; `set` changes a counter, wherever it lies."""

    def __init__(self, root, device, driver, port=1, rate="100 Gb/sec (4X EDR)"):
        self.base = root / device / "ports" / str(port)
        self.base.mkdir(parents=True)
        self.write("state", "4: ACTIVE\n")
        self.write("rate", rate + "\n")
        (self.base / "gids").mkdir()
        (self.base / "gids" / "0").write_text("fe80:0000:0000:0000:0453:52ff:fe45:4e01\n")
        link = root / device / "device" / "driver"
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            (root.parent / "drivers" / driver).mkdir(parents=True, exist_ok=True)
            link.symlink_to(root.parent / "drivers" / driver)

    def write(self, name, text):
        (self.base / name).write_text(text)

    def add(self, folder, names):
        (self.base / folder).mkdir(exist_ok=True)
        for name in names:
            (self.base / folder / name).write_text("10\n" if name == "lifespan" else "0\n")
        return self

    def set(self, name, value):
        folder = next(folder for folder in ("counters", "hw_counters") if (self.base / folder / name).exists())
        (self.base / folder / name).write_text(f"{value}\n")


def efa(root, name):
    return Port(root, name, "efa").add("hw_counters", EFA_HW)


def mlx5(root, name, port=1):
    return Port(root, name, "mlx5_core", port).add("counters", PORT).add("hw_counters", MLX5_HW)


def hfi1(root, name):
    return Port(root, name, "hfi1").add("counters", PORT).add("hw_counters", HFI1_HW)
