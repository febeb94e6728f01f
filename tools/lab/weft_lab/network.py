"""Builds a lab's network by netlink: switch, NICs, addresses, routes, limits.

Invariants: everything is set through netlink, nothing through /proc/sys, which containers mount read-only;
each function may be called again on what it has made (that is how `nic up` restores a NIC).
The traps that each setting avoids are listed in README.md.
"""

import errno
import socket

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, nla, nlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTM_SETLINK, TC_H_ROOT

from . import namespaces
from .plan import NETWORK, PREFIX_LENGTH
from .rates import HOST_QUEUE_BYTES, token_bucket

BRIDGE = "switch"
ROUTE_SUBNET = f"{NETWORK}/{PREFIX_LENGTH}"
# linux/rtnetlink.h, RT_SCOPE_LINK; linux/neighbour.h, NUD_NOARP and NUD_PERMANENT
SCOPE_LINK = 253
NEIGHBOUR_NOARP = 0x40
NEIGHBOUR_PERMANENT = 0x80


class _InterfaceSettings(nlmsg):
    """The part of RTM_SETLINK that carries per-interface IP settings; pyroute2 can only decode it.
    Attribute numbers: linux/if_link.h, and linux/ip.h (IPV4_DEVCONF_*)."""

    fields = (("family", "B"), ("__align", "x"), ("ifi_type", "H"), ("index", "i"), ("flags", "I"), ("change", "I"))
    nla_map = ((26, "IFLA_AF_SPEC", "af_spec"),)

    class af_spec(nla):  # noqa: N801 - pyroute2 finds the class by this name
        nla_map = ((2, "AF_INET", "inet"), (10, "AF_INET6", "inet6"))

        class inet(nla):  # noqa: N801
            nla_map = ((1, "IFLA_INET_CONF", "conf"),)

            class conf(nla):  # noqa: N801
                nla_map = (
                    (8, "RP_FILTER", "uint32"),
                    (13, "ARP_FILTER", "uint32"),
                    (18, "ARP_ANNOUNCE", "uint32"),
                    (19, "ARP_IGNORE", "uint32"),
                )

        class inet6(nla):  # noqa: N801
            nla_map = ((8, "IFLA_INET6_ADDR_GEN_MODE", "uint8"),)


def _send_settings(netlink, link_index, settings):
    message = _InterfaceSettings()
    message["index"] = link_index
    message["attrs"] = [("IFLA_AF_SPEC", {"attrs": [settings]})]
    message["header"]["type"] = RTM_SETLINK
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK
    netlink.nlm_request_batch([message])


def _ignoring(number, call, *arguments, **keywords):
    """Call, and take "it is so already" for success."""
    try:
        return call(*arguments, **keywords)
    except NetlinkError as error:
        if error.code != number:
            raise
        return None


def link_index(netlink, name):
    return netlink.link_lookup(ifname=name)[0]


def build(lab, make_namespace):
    """Make the whole network of `lab`. `make_namespace()` makes a network namespace, moves this process
    into it and returns its file descriptor. Returns (the switch's descriptor, the hosts' descriptors)."""
    switch_fd = make_namespace()
    with IPRoute() as switch:
        switch.link("set", index=1, state="up")
        bridge_index = make_switch(switch)
        host_fds = []
        for host in lab.hosts:
            host_fds.append(make_namespace())
            with IPRoute() as netlink:
                netlink.link("set", index=1, state="up")
                for nic in host.nics:
                    make_nic(switch, bridge_index, nic, host_fds[-1])
                    configure_nic(netlink, lab, nic)
                    limit_nic(switch, netlink, nic)
    return switch_fd, host_fds


def make_switch(netlink):
    # STP would block each port for 30 s; snooping would send queries of its own (bridge in
    # ip-link(8)).
    netlink.link("add", ifname=BRIDGE, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0)
    index = link_index(netlink, BRIDGE)
    _silence_ipv6(netlink, index)
    netlink.link("set", index=index, state="up")
    return index


def _silence_ipv6(netlink, index):
    # Without link-local addresses there are no router solicitations and reports in the NICs'
    # counters. IN6_ADDR_GEN_MODE_NONE is 1 (linux/if_link.h).
    setting = ("AF_INET6", {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", 1)]})
    _ignoring(errno.EAFNOSUPPORT, _send_settings, netlink, index, setting)


def make_nic(switch, bridge_index, nic, host_fd):
    """The veth pair of a NIC: one end in the host, the other a port of the switch that knows its MAC."""
    peer = {"ifname": nic.name, "net_ns_fd": host_fd, "address": nic.mac}
    switch.link("add", ifname=nic.port_name, kind="veth", peer=peer)
    port = link_index(switch, nic.port_name)
    _silence_ipv6(switch, port)
    switch.link("set", index=port, master=bridge_index, state="up")
    # A forwarding table that is complete from the start: nothing is learnt, and nothing unknown is
    # flooded to all ports, where it would count as received (bridge(8)).
    switch.brport("set", index=port, learning=0, unicast_flood=0)
    # A "permanent" entry would mean "this switch itself"; "static", which never ages, is NUD_NOARP
    # (bridge(8)).
    switch.fdb("replace", ifindex=port, lladdr=nic.mac, master=bridge_index, state=NEIGHBOUR_NOARP)


def configure_nic(netlink, lab, nic):
    """Everything that the host must know about one of its NICs. Restores what a link that went down lost."""
    index = link_index(netlink, nic.name)
    # The kernel takes the larger of the interface's value and conf/all's (ip-sysctl): 2, 2 and 1
    # hold whatever `all` says.
    settings = [("ARP_IGNORE", 1), ("ARP_ANNOUNCE", 2), ("ARP_FILTER", 1), ("RP_FILTER", 2)]
    _send_settings(netlink, index, ("AF_INET", {"attrs": [("IFLA_INET_CONF", {"attrs": settings})]}))
    _silence_ipv6(netlink, index)
    _ignoring(errno.EEXIST, netlink.addr, "add", index=index, address=nic.address, prefixlen=PREFIX_LENGTH)
    netlink.link("set", index=index, state="up")
    add_route(netlink, nic, index)
    _ignoring(
        errno.EEXIST,
        netlink.rule,
        "add",
        src=nic.address,
        src_len=32,
        table=nic.route_table,
        priority=nic.route_table,
    )
    add_neighbours(netlink, lab, nic, index)


def add_route(netlink, nic, index):
    """The subnet, by this NIC, in the NIC's own table."""
    route = {
        "dst": ROUTE_SUBNET,
        "oif": index,
        "prefsrc": nic.address,
        "scope": SCOPE_LINK,
        "table": nic.route_table,
    }
    try:
        # BBR, some systems' default, retransmits 300 times as much as CUBIC over these queues
        # (README.md).
        netlink.route("replace", **route, metrics={"cc_algo": "cubic"})
    except NetlinkError as error:
        if error.code != errno.EINVAL:
            raise
        # A kernel without CUBIC (ip-route(8), congctl): its default will do.
        netlink.route("replace", **route)


def add_neighbours(netlink, lab, nic, index):
    """The NICs of all other hosts, for good. The kernel's table holds 1024 entries for the whole machine
    (gc_thresh3 in arp(7)), and 2 hosts with 32 NICs need 2048; permanent entries are not counted."""
    for other in lab.nics():
        if other.host_index != nic.host_index:
            netlink.neigh(
                "replace", dst=other.address, lladdr=other.mac, ifindex=index, state=NEIGHBOUR_PERMANENT
            )


def limit_nic(switch, netlink, nic):
    """Hold the NIC to its rate: what it sends at its own end, what it receives at the switch's port."""
    for handle, name, may_drop in ((netlink, nic.name, False), (switch, nic.port_name, True)):
        index = link_index(handle, name)
        if nic.rate_bits_per_s is None:
            # ENOENT: there is no limit to take away.
            _ignoring(errno.ENOENT, remove_limit, handle, name)
            continue
        bucket = token_bucket(nic.rate_bits_per_s)
        handle.tc(
            "replace",
            "tbf",
            index,
            handle=0x10000,
            rate=f"{bucket.rate_bits_per_s}bit",
            burst=bucket.burst_bytes,
            limit=bucket.queue_bytes if may_drop else HOST_QUEUE_BYTES,
        )


def remove_limit(netlink, name):
    """Take away the queue that limits the interface."""
    netlink.tc("del", index=link_index(netlink, name), parent=TC_H_ROOT)


def open_netlink(lab, host):
    """A netlink socket in a host, or in the switch for None. It stays there while this process moves on."""
    if host is None:
        namespaces.enter_switch(lab)
    else:
        namespaces.enter_host(lab, host)
    return IPRoute()
