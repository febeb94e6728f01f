"""Snapshots made by seed, for tests of what reads them."""

import random

from weft_top.model import Nic, Notice, PePage, PeerTraffic, Process, Rail, Snapshot

NAMES = ("tx_bytes", "rx_bytes", "tx_packets", "rx_drops", "rdma_write_bytes", "odd \u00e9")
RAIL_NAMES = ("tx_bytes", "rx_bytes", "tx_operations", "rx_operations", "tx_signals", "rx_signals", "retries", "errors",
              "refused")


class Machine:
    """A machine whose NICs and PEs move, come, go, and are reset, as a seed says."""

    def __init__(self, seed, nic_count=6, pe_count=3, rail_count=4):
        self.chance = random.Random(seed)
        self.step = 0
        self.pages = ()
        self.counters = {f"net:/nic{i}": dict.fromkeys(NAMES, 0) for i in range(nic_count)}
        self.rails = {(pe, rail): dict.fromkeys(RAIL_NAMES, 0) for pe in range(pe_count) for rail in range(rail_count)}
        self.peers = {pe: {} for pe in range(pe_count)}
        self.pe_count, self.rail_count = pe_count, rail_count

    def look(self):
        self.step += 1
        for counters in (*self.counters.values(), *self.rails.values()):
            for name in counters:
                if self.chance.random() < 0.6:
                    counters[name] += self.chance.randrange(1 << self.chance.randrange(40))
                elif self.chance.random() < 0.02:
                    counters[name] = 0
        nics = [self._nic(key) for key in self.counters if self.chance.random() < 0.95]
        if self.step % 2 or not self.pages:
            self.pages = tuple(self._page(pe) for pe in range(self.pe_count) if self.chance.random() < 0.95)
        notices = [Notice("pages", "x" * self.step)] if self.chance.random() < 0.2 else []
        time_ns = 5 * 10**12 + self.step * 100_000_000 + self.chance.randrange(1000)
        return Snapshot(time_ns, 10**18 + time_ns, tuple(nics), self.pages, tuple(notices))

    def _nic(self, key):
        names = list(NAMES) if self.chance.random() < 0.95 else list(NAMES)[:3]
        counters = {name: self.counters[key][name] for name in names}
        state = "up" if self.chance.random() < 0.9 else "down"
        users = (Process(1, "a"),) if self.chance.random() < 0.5 else ()
        return Nic(key, "net", key[5:], "h0", state, 10**9, "veth", "10.0.0.1", counters, users)

    def _page(self, pe):
        rails = []
        for index in range(self.rail_count):
            up = self.chance.random() < 0.95
            counters = dict(self.rails[pe, index])
            rails.append(Rail(index, f"nic{index}", "10.0.0.1", up, True, None, self.chance.randrange(9), counters))
        for _ in range(3):
            place = (self.chance.randrange(self.pe_count), self.chance.randrange(self.rail_count))
            put, got = self.peers[pe].get(place, (0, 0))
            self.peers[pe][place] = (put + self.chance.randrange(10**6), got + self.chance.randrange(10))
        peers = tuple(PeerTraffic(*place, *values) for place, values in sorted(self.peers[pe].items()))
        return PePage(f"job/{pe}", "job", pe, self.pe_count, Process(pe + 1, "a"), "coupled", "", tuple(rails), peers,
                      5 * 10**12 + self.step * 100_000_000)
