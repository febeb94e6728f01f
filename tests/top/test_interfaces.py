"""Plain interfaces: lines of /proc/net/dev, links by netlink, namespaces of labs and of PEs; and NVLink."""

import ctypes
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_cli import Cli
from page_files import PageFile
from weft_top.collector import Collector, SourceOptions
from weft_top.sources import attach, lab_state
from weft_top.sources.interfaces import InterfaceSource, parse_counters, split_lines
from weft_top.sources.links import LinkTable, parse_address, parse_link
from weft_top.sources.netlink import attribute
from weft_top.sources.nvlink import FIELD_DATA_RX, FIELD_DATA_TX, FIELD_LINK_COUNT, FIELD_LINK_SPEED, NvlinkSource

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "top" / "weft-top"
HEAD = b"Inter-|   Receive ...\n face |bytes    packets ...\n"


def line(name, tx=1, rx=2):
    return name + b": %d 3 4 5 0 0 0 0 %d 6 7 8 0 0 0 0\n" % (rx, tx)


class Place:
    label = "h0"
    rates = {"nic0": 5}

    def __init__(self, data, links=None):
        self.data, self.table = data, links or {}

    def counters(self):
        return self.data

    def links(self, time_ns, names):
        return self.table


class Namespaces:
    def __init__(self, *found):
        self.found = found

    def places(self, pages):
        return self.found


def test_each_figure_of_a_line_is_taken_from_its_place():
    assert split_lines(HEAD + line(b"  eth0")).keys() == {b"eth0"}
    assert parse_counters(split_lines(HEAD + line(b"a", 11, 22))[b"a"]) == dict(
        tx_bytes=11, rx_bytes=22, tx_packets=6, rx_packets=3, tx_drops=8, rx_drops=5, tx_errors=7, rx_errors=4)


@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"eth0", HEAD + b"eth0: \n", HEAD + b"eth0: a b c\n",
                                  HEAD + b"eth0: 1 2 3\n", b"\xff\xfe\x00" * 100])
def test_lines_that_cannot_be_read_are_left_out_alone(data):
    source = InterfaceSource(Namespaces(Place(data + b"\n" + line(b"ok") if data.startswith(HEAD) else data)))
    assert [nic.name for nic in source.read(0, (), {})] in ([], ["ok"])


def test_names_with_odd_characters_are_shown_harmless_and_stay_different():
    data = HEAD + line(b"\x1b[2J") + line(b"\x1b[3J") + line(b"caf\xc3\xa9") + line(b"\xff\xfe")
    nics = InterfaceSource(Namespaces(Place(data))).read(0, (), {})
    assert len({nic.key for nic in nics}) == 4
    assert all(nic.name.isprintable() and nic.key.isprintable() for nic in nics)
    assert nics[2].name == "caf\u00e9"


def test_a_lab_gives_its_nics_their_rate_and_an_unchanged_line_the_same_object():
    place = Place(HEAD + line(b"nic0") + line(b"other"))
    source = InterfaceSource(Namespaces(place))
    first, other = source.read(0, (), {})
    assert first.rate_bits_per_s == 5 and other.rate_bits_per_s is None and first.key == "net:h0/nic0"
    place.data = HEAD + line(b"nic0") + line(b"other", 9)
    again, changed = source.read(1, (), {})
    assert again is first and changed.counters["tx_bytes"] == 9
    user = ("someone",)
    assert source.read(2, (), {("h0", "nic0"): user})[0].processes == user


def test_a_thousand_interfaces_are_read():
    data = HEAD + b"".join(line(b"veth%d" % index, index) for index in range(1000))
    nics = InterfaceSource(Namespaces(Place(data))).read(0, (), {})
    assert len(nics) == 1000 and nics[999].counters["tx_bytes"] == 999


def test_links_are_read_from_netlinks_answers_and_any_cut_is_survived():
    def link(state, flags, *attributes):
        return struct.pack("=BxHiII", 0, 1, 7, flags, 0) + attribute(16, bytes([state])) + b"".join(attributes)

    full = link(6, 0x1043, attribute(3, b"eth0\0"), attribute(1, bytes([2, 0, 0, 0, 0, 1])),
                attribute(18, attribute(1, b"veth\0")))
    name, found = parse_link(full)
    assert (name, found.index, found.state, found.driver) == (b"eth0", 7, "up", "veth")
    assert found.address == "02:00:00:00:00:01"
    assert parse_link(link(2, 0x1003))[1].state == "down"
    assert parse_link(link(0, 0x41))[1].state == "up"  # loopback has no operational state
    assert parse_link(link(0, 0x40))[1].state == "down"
    for size in range(16, len(full)):
        parse_link(full[:size])
    address = struct.pack("=BBBBI", socket.AF_INET, 16, 0, 0, 7) + attribute(2, bytes([10, 88, 0, 1]))
    assert parse_address(address) == (7, socket.AF_INET, "10.88.0.1")
    for size in range(8, len(address)):
        assert parse_address(address[:size])[2] in ("", "10.88.0.1")


def test_the_kernel_is_asked_again_only_when_something_changed():
    table = LinkTable(*attach.route_sockets(), sysfs="/sys/class/net")
    first = table.read(0)
    assert first[b"lo"].address == "127.0.0.1" and table.read(1) is first
    asked = []
    table._dump = lambda: asked.append(1) or first
    table.read(2)
    table.read(11 * 10**9)
    assert asked == [1]
    table.close()


# ---- Labs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "name": "a", "hosts": [1]}', "\x00",
                                  '{"version": 1, "name": "a", "hosts": [], "holder_pid": "x"}'])
def test_a_state_file_that_is_damaged_is_one_line(tmp_path, text):
    with pytest.raises(ValueError):
        lab_state.parse(text)
    (tmp_path / "a.json").write_text(text)
    files = lab_state.LabFiles(str(tmp_path))
    assert files.living() == [] and str(tmp_path / "a.json") in files.trouble


def test_a_state_file_of_a_holder_that_is_gone_is_no_lab_and_stays_where_it_is(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"version": 1, "name": "a", "holder_pid": 1, "holder_start_time": 99999999999, "hosts": [],'
                    ' "user_namespace": null, "switch_namespace": ""}')
    files = lab_state.LabFiles(str(tmp_path))
    assert files.living() == [] and files.trouble == "" and path.exists()


def collector_for(tmp_path, **options):
    return Collector(SourceOptions(pages_directory=str(tmp_path), rdma_root=str(tmp_path / "none"), **options))


def test_without_any_right_one_sees_into_a_lab_of_ones_own(tmp_path):
    """The lab then has a user namespace of its own, which weft-top must enter too. Root gives its rights away."""
    prefix = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv (util-linux) is not there to give root's rights away")
        # One is kept: since Linux 5.12 only who has CAP_SETFCAP may map uid 0 into a user
        # namespace.
        prefix = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"]
    lab = Cli(tmp_path / "labs", prefix)
    try:
        lab.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
        assert "user namespace" in lab.ok("list")
        command = [*prefix, sys.executable, PROGRAM, "--once", "--interval", "0.1", "--pages", tmp_path]
        shown = subprocess.run(command, env=lab.environment, capture_output=True, text=True, timeout=30)
        assert shown.returncode == 0 and "note:" not in shown.stdout, shown.stdout + shown.stderr
        rows = {line.split()[0]: line.split() for line in shown.stdout.splitlines() if line.startswith("h")}
        assert rows.keys() >= {"h0:nic0", "h0:nic1", "h1:nic0", "h1:nic1"}
        assert rows["h1:nic1"][1:3] == ["up", "0.040"]
    finally:
        lab.end_all()


def test_a_lab_that_may_not_be_entered_is_one_notice(tmp_path):
    lab = Cli(tmp_path / "labs")
    try:
        lab.start("--hosts", "1", "--nics", "1")
        child = os.fork()
        if child == 0:
            try:
                os.chmod(tmp_path, 0o777)
                collector = collector_for(tmp_path, lab_directory=str(tmp_path / "labs"))
                drop_capabilities()
                texts = [notice.text for notice in collector.sample().notices]
                os._exit(0 if len(texts) == 1 and "cannot look into lab 'default'" in texts[0] else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        lab.end_all()


def drop_capabilities():
    """Stay the same user without the right to enter namespaces (capset(2); none at all), also after exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(41):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: root gets none back by exec
    header = struct.pack("=Ii", 0x20080522, 0)
    assert libc.capset(header, bytes(24)) == 0


def test_the_interfaces_of_a_pe_in_a_namespace_of_its_own_are_shown(pages, tmp_path):
    program = "import ctypes; print(ctypes.CDLL(None).unshare(0x40000000), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if child.stdout.readline() != "0\n":
            pytest.skip("making a network namespace is forbidden here")
        inode = os.stat(f"/proc/{child.pid}/ns/net").st_ino
        page = PageFile(pages, pid=child.pid)
        page.namespace = inode
        page.rails[0]["nic"] = "lo"
        page.save()
        collector = collector_for(pages, lab_directory=str(tmp_path))
        nics = {nic.key: nic for nic in collector.sample().nics}
        inside = nics[f"net:net:[{inode}]/lo"]
        assert inside.counters["tx_bytes"] == 0 and [process.pid for process in inside.processes] == [child.pid]
        assert nics["net:/lo"].processes == ()
        child.communicate("\n")
        time.sleep(1.1)
        assert all(nic.namespace == "" for nic in collector.sample().nics)
        collector.close()
    finally:
        if child.poll() is None:
            child.communicate("\n")


def test_a_page_whose_process_is_not_seen_leads_to_nobody_elses_interfaces(pages, tmp_path):
    page = PageFile(pages, pid=1)  # another process by that number, which started at another time
    started = int(pathlib.Path("/proc/1/stat").read_text().rsplit(")", 1)[1].split()[19])
    page.ticks, page.namespace = started + 1, 4242
    page.save()
    collector = collector_for(pages, lab_directory=str(tmp_path), trust_pages=True)
    snapshot = collector.sample()
    assert snapshot.pes[0].namespace == "net:[4242]" and all(nic.namespace == "" for nic in snapshot.nics)
    collector.close()


# ---- NVLink --------------------------------------------------------------------------------------


class Nvml:
    """The part of pynvml that is used, with GPUs of our own: {index: {field: value or None}}."""

    class NVMLError(Exception):
        pass

    def __init__(self, gpus, broken=()):
        self.gpus, self.broken, self.open = gpus, set(broken), False

    def nvmlInit(self):  # noqa: N802 - NVML's name
        if "init" in self.broken:
            raise self.NVMLError("Driver Not Loaded")
        self.open = True

    def nvmlShutdown(self):  # noqa: N802
        self.open = False

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return b"NVIDIA H200"

    def nvmlDeviceGetFieldValues(self, handle, fields):  # noqa: N802
        if handle in self.broken:
            raise self.NVMLError("GPU is lost")
        return [SimpleNamespace(nvmlReturn=0 if self.gpus[handle].get(field) is not None else 3, valueType=3,
                                value=SimpleNamespace(ullVal=self.gpus[handle].get(field))) for field, _ in fields]


def gpu(tx, rx, speed=26562, count=18):
    return {FIELD_DATA_TX: tx, FIELD_DATA_RX: rx, FIELD_LINK_SPEED: speed, FIELD_LINK_COUNT: count}


def test_gpus_with_nvlink_are_nics_in_bytes_and_one_that_is_lost_takes_no_other_with_it():
    nvml = Nvml({0: gpu(10, 20), 1: gpu(None, None), 2: gpu(1, 2, None, None)})
    source = NvlinkSource(nvml)
    first, third = source.read(0, (), {})
    assert (first.key, first.kind, first.name) == ("nvlink:0", "nvlink", "GPU 0 NVIDIA H200")
    assert first.counters == {"tx_bytes": 10240, "rx_bytes": 20480}
    assert first.rate_bits_per_s == 26562 * 8_000_000 * 18 and third.rate_bits_per_s is None
    nvml.broken.add(0)
    assert [nic.key for nic in source.read(1, (), {})] == ["nvlink:2"]
    source.close()
    assert not nvml.open


def test_without_a_gpu_nothing_is_said_and_with_one_but_no_package_one_line(tmp_path, monkeypatch):
    assert NvlinkSource(gpu_files=[str(tmp_path / "none")]).notices() == []
    monkeypatch.setattr("weft_top.sources.nvlink.load_nvml", lambda: None)
    source = NvlinkSource(gpu_files=[str(tmp_path)])
    assert source.read(0, (), {}) == [] and "nvidia-ml-py" in source.notices()[0].text


def test_a_driver_that_does_not_answer_is_one_line_and_is_asked_again():
    nvml = Nvml({0: gpu(1, 2)}, broken=["init"])
    source = NvlinkSource(nvml)
    assert source.read(0, (), {}) == [] and "Driver Not Loaded" in source.notices()[0].text
    nvml.broken.clear()
    assert len(source.read(11 * 10**9, (), {})) == 1 and source.notices() == []
