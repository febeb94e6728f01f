"""RDMA devices from trees like /sys/class/infiniband, and their holders from netlink's answers."""

import errno
import os
import socket
import struct

import pytest
from device_trees import Port, efa, hfi1, mlx5
from weft_top.model import Process
from weft_top.rates import RateHistory
from weft_top.model import Snapshot
from weft_top.sources import counter_files
from weft_top.sources.netlink import attribute, attributes, dump, pack_u32, take_messages
from weft_top.sources.rdma import RdmaSource
from weft_top.sources.rdma_port import parse_rate, parse_state
from weft_top.sources.rdma_netlink import (
    DEV_INDEX, DEV_NAME, GET_DEVICES, GET_QUEUE_PAIRS, RES_PID, RES_QP, RES_QP_ENTRY, RdmaHolders, parse_pids,
)  # fmt: skip

SECOND = 1_000_000_000


def read(source, second=0.0, holders=None):
    return source.read(int(second * SECOND), (), holders or {})


def test_an_efa_device_shows_its_bytes_its_rdma_counters_and_its_line_rate(devices):
    port = efa(devices, "rdmap79s0")
    for name, value in dict(tx_bytes=10, rx_bytes=20, tx_pkts=3, rx_pkts=4, rx_drops=5, retrans_pkts=6,
                            rdma_write_bytes=7, rdma_write_recv_bytes=8).items():
        port.set(name, value)
    nic, = read(RdmaSource(str(devices)))
    assert (nic.key, nic.kind, nic.name) == ("rdma:rdmap79s0/1", "rdma", "rdmap79s0")
    assert (nic.driver, nic.state) == ("efa", "up")
    assert nic.rate_bits_per_s == 100_000_000_000 and nic.address.startswith("fe80:")
    wanted = dict(tx_bytes=10, rx_bytes=20, tx_packets=3, rx_packets=4, rx_drops=5, retransmits=6, rdma_write_bytes=7,
                  rdma_write_recv_bytes=8, send_wrs=0)
    assert wanted.items() <= nic.counters.items()
    assert "lifespan" not in nic.counters and "tx_pkts" not in nic.counters


def test_mlx5_counts_data_in_words_and_its_retransmits_are_a_sum(devices):
    port = mlx5(devices, "mlx5_0")
    for name, value in dict(port_xmit_data=100, port_rcv_data=25, port_xmit_packets=3, port_xmit_discards=1,
                            packet_seq_err=2, local_ack_timeout_err=3, out_of_buffer=4, link_downed=1).items():
        port.set(name, value)
    nic, = read(RdmaSource(str(devices)))
    wanted = dict(tx_bytes=400, rx_bytes=100, tx_packets=3, tx_drops=1, retransmits=5, rx_drops=4, packet_seq_err=2,
                  link_downed=1)
    assert wanted.items() <= nic.counters.items() and nic.driver == "mlx5_core"


def test_each_port_of_a_device_is_a_nic(devices):
    for number in (1, 2, 10):
        mlx5(devices, "mlx5_0", number)
    assert [nic.name for nic in read(RdmaSource(str(devices)))] == ["mlx5_0:1", "mlx5_0:2", "mlx5_0:10"]


def test_hfi1_and_a_driver_that_nobody_knows_show_the_common_counters(devices):
    hfi1(devices, "hfi1_0").set("port_xmit_data", 5)
    Port(devices, "strange0", "strange").add("hw_counters", ["tx_bytes", "rx_bytes", "blue"]).set("tx_bytes", 9)
    first, second = read(RdmaSource(str(devices)))
    assert first.counters["tx_bytes"] == 20 and first.counters["RcvHdrOvr"] == 0
    assert second.counters == dict(tx_bytes=9, rx_bytes=0, blue=0) and second.driver == "strange"


def test_no_device_and_no_folder_are_no_trouble(devices, tmp_path):
    for root in (devices, tmp_path / "nowhere"):
        source = RdmaSource(str(root))
        assert read(source) == [] and source.notices() == []


def test_odd_files_are_left_out_alone(devices):
    port = efa(devices, "efa_0")
    for name, text in dict(tx_pkts="N/A (no PMA)\n", rx_pkts="-5\n", send_wrs="", recv_wrs="0x10\n", send_bytes="1e3\n",
                           rx_drops="9" * 60 + "\n").items():
        port.write(f"hw_counters/{name}", text)
    (port.base / "hw_counters" / "recv_bytes").unlink()
    (port.base / "hw_counters" / "recv_bytes").mkdir()
    (port.base / "hw_counters" / "we\x1b[2Jird").write_text("1\n")
    port.set("tx_bytes", 77)
    port.write("state", "strange words\n")
    port.write("rate", "fast\n")
    (devices / "nothing").mkdir()
    (devices / "a_file").write_text("x")
    nic, = read(RdmaSource(str(devices)))
    assert nic.counters["tx_bytes"] == 77 and nic.rate_bits_per_s is None and nic.state == "down"
    assert not {"tx_packets", "rx_packets", "send_wrs", "recv_wrs", "send_bytes", "recv_bytes"} & nic.counters.keys()
    assert all(name.isprintable() for name in nic.counters)


@pytest.mark.parametrize("text, state", [
    ("4: ACTIVE", "up"), ("5: ACTIVE_DEFER", "up"), ("1: DOWN", "down"), ("2: INIT", "down"), ("3: ARMED", "down"),
    ("", "unknown")])
def test_states_are_read(text, state):
    assert parse_state(text) == state


@pytest.mark.parametrize("text, rate", [
    ("100 Gb/sec (4X EDR)", 10**11), ("2.5 Gb/sec (1X SDR)", 2_500_000_000), ("0 Gb/sec", None), ("", None),
    ("1e999 Gb/sec", None), ("nan Gb/sec", None), ("100", None)])
def test_rates_are_read(text, rate):
    assert parse_rate(text) == rate


def test_devices_come_and_go(devices):
    port = efa(devices, "efa_0")
    source = RdmaSource(str(devices))
    assert len(read(source)) == 1
    efa(devices, "efa_1")
    assert [nic.name for nic in read(source, 1.1)] == ["efa_0", "efa_1"]
    (devices / "efa_0").rename(devices.parent / "away")
    assert [nic.name for nic in read(source, 2.2)] == ["efa_1"]
    (devices.parent / "away").rename(devices / "efa_0")
    port.set("tx_bytes", 5)
    assert read(source, 3.3)[0].counters["tx_bytes"] == 5
    source.close()


def test_a_device_that_vanishes_between_two_looks_takes_no_other_with_it(devices, monkeypatch):
    for name in ("efa_0", "efa_1"):
        efa(devices, name)
    source = RdmaSource(str(devices))
    read(source)
    gone = source._ports["efa_0", "1"]._fast[0].descriptor
    pread = os.pread

    def failing(descriptor, size, offset):
        if descriptor == gone:
            raise OSError(errno.ENODEV, "No such device")
        return pread(descriptor, size, offset)

    monkeypatch.setattr("weft_top.sources.rdma_port.pread", failing)
    assert [nic.name for nic in read(source, 0.1)] == ["efa_1"]


def test_bytes_are_read_at_every_look_errors_once_a_second_and_what_never_moves_seldom(devices):
    port = efa(devices, "efa_0")
    source = RdmaSource(str(devices))
    read(source)
    port.set("tx_bytes", 5)
    port.set("send_wrs", 6)
    port.write("state", "1: DOWN\n")
    nic, = read(source, 0.1)
    assert nic.counters["tx_bytes"] == 5
    port.set("rx_drops", 7)
    later, = read(source, 1.3)
    assert later.counters["rx_drops"] == 7 and later.state == "down"
    for second in range(3, 7):
        later, = read(source, second)
    assert later.counters["send_wrs"] == 6
    port.set("send_wrs", 8)  # it has moved before, so it is seen within a second
    assert read(source, 8)[0].counters["send_wrs"] == 8


def test_packets_are_read_five_times_a_second_while_they_move(devices):
    port = efa(devices, "efa_0")
    source = RdmaSource(str(devices))
    seen = []
    for step in range(60):
        port.set("tx_pkts", min(step, 45))
        seen.append(read(source, step / 10)[0].counters["tx_packets"])
    assert all(step - value <= 1 for step, value in enumerate(seen[25:45], 25)) and seen[-1] == 45
    assert len(set(seen[25:45])) in (10, 11) and len(set(seen[1:9])) == 1


def test_an_unchanged_device_is_the_same_object(devices):
    efa(devices, "efa_0")
    source = RdmaSource(str(devices))
    assert read(source)[0] is read(source, 0.1)[0]


def test_a_thousand_devices_are_read_with_few_descriptors(devices, monkeypatch):
    monkeypatch.setattr(counter_files, "_budget", 100)
    monkeypatch.setattr(counter_files, "_kept", 0)
    ports = [Port(devices, f"dev{index:04}", "strange").add("hw_counters", ["tx_bytes", "rx_bytes"])
             for index in range(1000)]
    source = RdmaSource(str(devices))
    before = len(os.listdir("/proc/self/fd"))
    assert len(read(source)) == 1000
    assert len(os.listdir("/proc/self/fd")) <= before + 110
    ports[999].set("tx_bytes", 12)
    nics = read(source, 0.1)
    assert nics[999].counters["tx_bytes"] == 12
    history = RateHistory()
    history.add(Snapshot(0, 0, tuple(nics)))
    assert len(history.add(Snapshot(10, 10, tuple(nics))).nics) == 1000
    source.close()
    assert counter_files._kept == 0


# ---- Who holds a device --------------------------------------------------------------------------


def message(kind, payload):
    return struct.pack("=IHHII", 16 + len(payload), kind, 2, 1, 0) + payload + bytes(-len(payload) % 4)


def queue_pairs(*pids):
    entries = b"".join(
        attribute(RES_QP_ENTRY | 0x8000, attribute(21, pack_u32(7)) + (attribute(RES_PID, pack_u32(pid)) if pid else
                                                                       attribute(29, b"ib_core\0"))) for pid in pids)
    return attribute(DEV_INDEX, pack_u32(0)) + attribute(RES_QP | 0x8000, entries)


class Kernel:
    """Answers like the kernel's RDMA netlink: one device, whose queue pairs belong to `pids`."""

    def __init__(self, *pids):
        self.pids, self.answers = pids, []

    def send(self, request):
        kind = struct.unpack_from("=IH", request)[1]
        if kind == GET_DEVICES:
            payloads = [attribute(DEV_INDEX, pack_u32(0)) + attribute(DEV_NAME, b"efa_0\0")]
        else:
            assert kind == GET_QUEUE_PAIRS and dict(attributes(request, 16)) == {DEV_INDEX: pack_u32(0)}
            payloads = [queue_pairs(*self.pids)]
        self.answers += [message(kind, payload) for payload in payloads] + [message(3, bytes(4))]

    def recv(self, size):
        return self.answers.pop(0)

    def close(self):
        pass


def test_processes_with_queue_pairs_are_named_and_the_kernel_itself_is_not(devices):
    efa(devices, "efa_0")
    kernel = Kernel(os.getpid(), os.getpid(), 0)
    nic, = read(RdmaSource(str(devices), RdmaHolders(lambda: kernel)))
    assert [process.pid for process in nic.processes] == [os.getpid()] and nic.processes[0].command


def test_without_netlink_the_pages_still_say_who_uses_a_device(devices):
    efa(devices, "efa_0")

    def refuse():
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")

    source = RdmaSource(str(devices), RdmaHolders(refuse))
    user = Process(1, "program")
    assert read(source, 0, {("rdma:", "efa_0"): (user,)})[0].processes == (user,)
    assert source.notices() == []


def test_a_kernel_that_refuses_is_one_notice(devices):
    efa(devices, "efa_0")

    def refuse():
        raise OSError(errno.EPERM, "Operation not permitted")

    source = RdmaSource(str(devices), RdmaHolders(refuse))
    read(source)
    read(source, 3)
    assert len(source.notices()) == 1 and "not permitted" in source.notices()[0].text


def test_answers_that_are_cut_off_end_the_dump_and_nothing_else():
    whole = message(GET_QUEUE_PAIRS, queue_pairs(5, 6))
    for size in range(len(whole)):
        payloads = []
        take_messages(whole[:size], payloads)
        assert payloads == []
    payload = queue_pairs(5, 6)
    for size in range(len(payload)):
        assert parse_pids(payload[:size]) <= {5, 6}
    assert parse_pids(payload) == {5, 6}


def test_an_error_of_the_kernel_is_raised_with_its_words():
    class Refusing:
        send = staticmethod(len)

        def recv(self, size):
            return struct.pack("=IHHII", 20, 2, 0, 1, 0) + struct.pack("=i", -errno.EPERM)

    with pytest.raises(PermissionError):
        dump(Refusing(), GET_DEVICES, b"")


def test_a_kernel_that_never_answers_does_not_hang_us(devices):
    efa(devices, "efa_0")

    class Silent(Kernel):
        def recv(self, size):
            raise socket.timeout("timed out")

    source = RdmaSource(str(devices), RdmaHolders(Silent))
    assert len(read(source)) == 1 and len(source.notices()) == 1
