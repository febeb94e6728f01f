"""Frames of fixed situations, for tests of the screen: made by the real RateHistory from counters that move evenly.

Each situation is a function that gives a list of Frames, a second apart, ending at NOON (UTC). Same call, same Frames.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "top"))

from weft_top.model import Nic, Notice, PePage, PeerTraffic, Process, Rail, Snapshot  # noqa: E402: the path above
from weft_top.rates import RateHistory  # noqa: E402: the path above

NOON_NS = 1_763_726_400_000_000_000  # 2025-11-21 12:00:00 UTC
SECOND_NS = 1_000_000_000
GBIT = 1_000_000_000
HOSTS, PES, RAILS = 2, 8, 4
PES_PER_HOST = PES // HOSTS


SINKS = []  # Recorders that get the Snapshots of the situations that are made


class Source:
    """What run_screen takes: gives these Frames, then none, so that a slow machine shows what a fast one does."""

    def __init__(self, frames, is_replay=False):
        self._frames = list(frames)
        self._next = 0
        self.is_replay = is_replay
        self.frames_interval_s = None
        self.asked = 0

    def next_frame(self):
        self.asked += 1
        if self._next == len(self._frames):
            return None
        self._next += 1
        return self._frames[self._next - 1]


def frames_of(snapshot_at, seconds):
    """Frames of snapshot_at(second) for 0 .. seconds, the last one at NOON."""
    history = RateHistory()
    made = []
    for second in range(seconds + 1):
        snapshot = snapshot_at(second)
        for sink in SINKS:
            sink.write(snapshot, None)
        made.append(history.add(snapshot))
    return made


def moment(second, seconds, **content):
    wall_ns = NOON_NS - (seconds - second) * SECOND_NS
    return Snapshot(1000 * SECOND_NS + second * SECOND_NS, wall_ns, **content)


def wave(second):
    """Bytes so far of a traffic that swings, as a factor of what flows in a second: the history has a shape."""
    return second + 0.3 * ((second % 20) - 10 if second % 20 < 10 else 10 - second % 20) / 10


def nic_counters(tx_bytes, rx_bytes, drops=0):
    tx_bytes, rx_bytes = int(tx_bytes), int(rx_bytes)
    return {
        "tx_bytes": tx_bytes, "rx_bytes": rx_bytes, "tx_packets": tx_bytes // 1500, "rx_packets": rx_bytes // 1500,
        "tx_drops": drops, "rx_drops": 0, "tx_errors": 0, "rx_errors": 0,
    }  # fmt: skip


# ---- A job: 2 hosts x 4 PEs x 4 NICs, an all-to-all between the hosts ----------------------------


def all_to_all(rx_weights, policy, seconds=65, down=None, job="demo", rate_bits=10 * GBIT):
    """`rx_weights[pe]`: what part of what it receives arrives on each rail of a PE. `down`: (pe, rail) fails halfway."""
    # Bytes a second that a PE sends by a rail: what the busiest rail of a receiver can take.
    each = 0.9 * rate_bits / 8 / (RAILS * max(max(weights) for weights in rx_weights))

    def snapshot_at(second):
        is_down = down is not None and second > seconds // 2
        factor = wave(second)
        pages = tuple(_page(pe, rx_weights, policy, (job, each * factor, rate_bits), down if is_down else None) for pe in range(PES))
        nics = tuple(_nic(pe, rail, rx_weights, (each * factor, rate_bits), down if is_down else None)
                     for pe in range(PES) for rail in range(RAILS))  # fmt: skip
        return moment(second, seconds, nics=nics, pes=pages)

    return frames_of(snapshot_at, seconds)


def host_of(pe):
    return f"host{pe // PES_PER_HOST}"


def nic_name(pe, rail):
    return f"nic{pe % PES_PER_HOST * RAILS + rail}"


def _address(pe, rail):
    return f"10.77.{pe // PES_PER_HOST}.{pe % PES_PER_HOST * RAILS + rail + 1}"


def _nic(pe, rail, rx_weights, amounts, down):
    each, rate_bits = amounts
    # Headers make the NIC count a little more than the page.
    counters = nic_counters(each * 1.03, RAILS * each * 1.03 * rx_weights[pe][rail], 40 if down == (pe, rail) else 0)
    state = "down" if down == (pe, rail) else "up"
    return Nic(f"net:{host_of(pe)}/{nic_name(pe, rail)}", "net", nic_name(pe, rail), host_of(pe), state, rate_bits, "veth",
               _address(pe, rail), counters)  # fmt: skip


def _page(pe, rx_weights, policy, job, down):
    name, each, rate_bits = job
    rails = tuple(
        Rail(rail, nic_name(pe, rail), _address(pe, rail), down != (pe, rail), rail == 0, rate_bits, 1 << 20, {
            "tx_bytes": int(each), "rx_bytes": 0, "tx_operations": int(each) >> 18, "rx_operations": 0, "tx_signals": 0,
            "rx_signals": 0, "retries": 0, "errors": 3 if down == (pe, rail) else 0, "refused": 0})
        for rail in range(RAILS))  # fmt: skip
    others = [peer for peer in range(PES) if host_of(peer) != host_of(pe)]
    peers = tuple(
        PeerTraffic(peer, rail, int(RAILS * each / len(others) * rx_weights[peer][rail]), 0) for peer in others for rail in range(RAILS)
    )
    return PePage(f"{name}/{pe}", name, pe, PES, Process(4100 + pe, "weft-perf"), policy, host_of(pe), rails, peers)


def coupled(seconds=65):
    """All that a PE receives arrives on one of its rails: RX 4.0 times the mean, TX even."""
    weights = [[1.0 if rail == pe % RAILS else 0.0 for rail in range(RAILS)] for pe in range(PES)]
    return all_to_all(weights, "coupled", seconds, rate_bits=40 * GBIT)


def balanced(seconds=65):
    return all_to_all([[0.25] * RAILS] * PES, "balanced", seconds)


def rail_down(seconds=65):
    """NIC nic6 of host0 (rail 2 of PE 1) goes down halfway; what it received goes to the others."""
    weights = [[0.25] * RAILS for _ in range(PES)]
    weights[1] = [0.333, 0.333, 0.0, 0.334]
    return all_to_all(weights, "balanced", seconds, down=(1, 2))


# ---- Other situations ----------------------------------------------------------------------------


def efa(seconds=65):
    """32 EFA devices of 100 Gbit/s; the first eight carry traffic, two processes hold each of the first four."""

    def snapshot_at(second):
        nics = []
        for index in range(32):
            each = wave(second) * 12.5e9 * (0.97 if index == 0 else 0.5 if index < 8 else 0)
            counters = {**nic_counters(each, each / 2), "rdma_write_bytes": int(each), "rdma_read_bytes": 0,
                        "retrans_pkts": second * 3, "rdma_write_recv_bytes": int(each / 2)}  # fmt: skip
            holders = tuple(Process(900 + number, "python3") for number in range(2 if index < 4 else 1 if index < 8 else 0))
            name = f"rdmap{79 + index}s0"
            nics.append(Nic(f"rdma:{name}/1", "rdma", name, "", "up", 100 * GBIT, "efa", f"fe80::{index:x}", counters, holders))
        return moment(second, seconds, nics=tuple(nics))

    return frames_of(snapshot_at, seconds)


def many(count=1000, seconds=2):
    """`count` plain NICs; nic7 carries most."""

    def snapshot_at(second):
        def nic(index):
            each = second * 125_000_000 * (1.0 if index == 7 else 0.001 * (index % 50))
            return Nic(f"net:/nic{index}", "net", f"nic{index}", "", "up", GBIT, "virtio_net", "", nic_counters(each, each))

        return moment(second, seconds, nics=tuple(nic(index) for index in range(count)))

    return frames_of(snapshot_at, seconds)


HOSTILE = (
    "[bold red]nic[/bold red]", "nic\x1b[2J\x1b[31m", "new\nline\ttab", "right\u202eleft", "wide網卡漢字長長長長長長", "zero\u200bwidth",
    "e\u0301\u0301\u0301\u0301", "{0} %s \\", "x" * 300, "",
)  # fmt: skip


def hostile(seconds=3):
    """Names that would break out of a careless screen, in every place where a name is shown."""

    def snapshot_at(second):
        nics = tuple(
            Nic(f"net:/{index}", "net", name, name if index % 2 else "", "up" if second < 2 else "down", None, name, name,
                {**nic_counters(second * 1000, 5), name: second}, (Process(77 + index, name),))
            for index, name in enumerate(HOSTILE))  # fmt: skip
        pes = tuple(
            PePage(f"{name}/{index}", name, index, 3, Process(500 + index, name), name, name if index % 2 else "", (
                Rail(0, name, name, second < 2, True, None, 0, {"tx_bytes": second * 10**7, "rx_bytes": 0}),
                Rail(1, name, name, True, True, None, 0, {"tx_bytes": second * 10**6, "rx_bytes": 0})))
            for index, name in enumerate(HOSTILE))  # fmt: skip
        notices = tuple(Notice(name, f"may not be read: {name}") for name in HOSTILE)
        return moment(second, seconds, nics=nics, pes=pes, notices=notices)

    return frames_of(snapshot_at, seconds)


def large_job(pes=64, seconds=2):
    """One host's 8 PEs of a job of `pes`, 8 rails each: the matrix is far wider than any terminal."""

    def snapshot_at(second):
        def page(pe):
            rails = tuple(Rail(rail, f"rdmap{pe * 8 + rail}s0", "", True, True, 100 * GBIT, 0,
                               {"tx_bytes": second * 10**9, "rx_bytes": 0}) for rail in range(8))  # fmt: skip
            peers = tuple(PeerTraffic(peer, rail, second * 10**6 * (1 + (pe + peer + rail) % 7), 0)
                          for peer in range(8, pes) for rail in range(8))  # fmt: skip
            return PePage(f"train/{pe}", "train", pe, pes, Process(300 + pe, "trainer"), "balanced", "", rails, peers)

        return moment(second, seconds, pes=tuple(page(pe) for pe in range(8)))

    return frames_of(snapshot_at, seconds)


def nothing(seconds=1):
    """A machine without any NIC or job."""
    return frames_of(lambda second: moment(second, seconds), seconds)


def one_node(seconds=2):
    """A job within one node: pages without rails, and a source that has something to say."""
    pes = tuple(PePage(f"local/{pe}", "local", pe, 2, Process(40 + pe, "a.out"), "", "", ()) for pe in range(2))
    notice = Notice("/dev/shm", "3 counter pages are of another version and are left out")
    return frames_of(lambda second: moment(second, seconds, pes=pes, notices=(notice,)), seconds)


SCENES = {
    "coupled": coupled, "balanced": balanced, "rail_down": rail_down, "efa": efa, "many": many, "hostile": hostile,
    "large_job": large_job, "nothing": nothing, "one_node": one_node,
}  # fmt: skip
