"""The kernel's own counters of every NIC, as its host sees them.

Invariants: bytes and packets are those of the host's end; drops add the two places where a NIC loses
packets: the interface, and the queue that limits it (TX at the host's end, RX at the switch's port).
"""

import time
from dataclasses import asdict, dataclass
from typing import List

from .nic_counters import BYTES, PACKETS, max_over_mean
from .network import open_netlink


@dataclass(frozen=True)
class NicCounters:
    """One NIC at one moment."""

    name: str
    address: str
    state: str
    rate_bits_per_s: int
    tx_bytes: int
    rx_bytes: int
    tx_packets: int
    rx_packets: int
    tx_drops: int
    rx_drops: int


@dataclass(frozen=True)
class HostSample:
    """The bytes of one host's NICs, by index, at one moment."""

    time_s: float
    tx_bytes: List[int]
    rx_bytes: List[int]


class CounterReader:
    """Reads a lab's counters repeatedly, through one netlink socket in each host and one in the switch.
    Leaves this process in some host's namespace."""

    def __init__(self, lab):
        self._lab = lab
        self._switch = open_netlink(lab, None)
        self._hosts = [open_netlink(lab, host) for host in lab.hosts]

    def close(self):
        for netlink in (self._switch, *self._hosts):
            netlink.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def sample(self):
        """[HostSample of each host]: bytes only, by one dump each, for measuring rates."""
        return [self._sample_host(host) for host in self._lab.hosts]

    def _links(self, host):
        """name -> link message. One dump, so that a host's NICs belong to one moment."""
        return {link.get_attr("IFLA_IFNAME"): link for link in self._hosts[host.index].get_links()}

    def _sample_host(self, host):
        time_s = time.monotonic()
        links = self._links(host)
        stats = [links[nic.name].get_attr("IFLA_STATS64") for nic in host.nics]
        return HostSample(time_s, *([nic[name] for nic in stats] for name in BYTES))

    def read(self):
        """[[NicCounters of each NIC] of each host]."""
        port_drops = _queue_drops(self._switch)
        return [self._read_host(host, port_drops) for host in self._lab.hosts]

    def _read_host(self, host, port_drops):
        links = self._links(host)
        queue_drops = _queue_drops(self._hosts[host.index])
        return [
            _nic_counters(nic, links[nic.name], queue_drops.get(nic.name, 0), port_drops.get(nic.port_name, 0))
            for nic in host.nics
        ]


def _queue_drops(netlink):
    """Interface name -> packets dropped by its root queue."""
    names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in netlink.get_links()}
    drops = {}
    for queue in netlink.get_qdiscs():
        if queue.get_attr("TCA_KIND") == "tbf":
            drops[names[queue["index"]]] = queue.get_attr("TCA_STATS")["drop"]
    return drops


def _nic_counters(nic, link, tx_queue_drops, rx_queue_drops):
    stats = link.get_attr("IFLA_STATS64")
    return NicCounters(
        name=nic.name,
        address=nic.address,
        # IF_OPER_UP needs both the administrative state and the carrier (RFC 2863, ifOperStatus).
        state="up" if link.get_attr("IFLA_OPERSTATE") == "UP" else "down",
        rate_bits_per_s=nic.rate_bits_per_s,
        **{name: stats[name] for name in BYTES + PACKETS},
        tx_drops=stats["tx_dropped"] + tx_queue_drops,
        rx_drops=stats["rx_dropped"] + rx_queue_drops,
    )


def to_document(lab, counters):
    """What `counters --json` prints."""
    hosts = []
    for host, nics in zip(lab.hosts, counters):
        hosts.append(
            {
                "name": host.name,
                "tx_bytes": sum(nic.tx_bytes for nic in nics),
                "rx_bytes": sum(nic.rx_bytes for nic in nics),
                "tx_max_over_mean": max_over_mean([nic.tx_bytes for nic in nics]),
                "rx_max_over_mean": max_over_mean([nic.rx_bytes for nic in nics]),
                "nics": [asdict(nic) for nic in nics],
            }
        )
    return {"version": 1, "name": lab.name, "hosts": hosts}
