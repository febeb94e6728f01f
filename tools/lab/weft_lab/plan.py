"""The description of a lab: its hosts, NICs and addresses. Pure.

Invariants: address, MAC and routing table of a NIC follow from its (host, NIC) pair alone; all addresses
lie in one subnet, as on a cluster with one flat fabric.
"""

import re
from dataclasses import dataclass, field
from typing import List, Optional

from .errors import UserError

PREFIX_LENGTH = 16
NETWORK = "10.88.0.0"
# The third byte of an address is the host, the fourth the NIC plus one (0 and 255 stay free).
HOST_COUNT_MAX = 255
NIC_COUNT_MAX = 254
# BR_PORT_BITS is 10 (net/bridge/br_private.h): ports 1 to 1023.
SWITCH_PORT_COUNT_MAX = 1023
# Table 0 is "unspecified", and 253 to 255 are the kernel's (ip-route(8)).
ROUTE_TABLE_FIRST = 1000


@dataclass
class Nic:
    """One NIC of one host; `rate_bits_per_s` is its limit in each direction, None for none."""

    index: int
    host_index: int
    rate_bits_per_s: Optional[int]

    @property
    def name(self):
        return f"nic{self.index}"

    @property
    def address(self):
        return f"10.88.{self.host_index}.{self.index + 1}"

    @property
    def mac(self):
        # The bit 0x02 of the first byte marks a locally administered address (IEEE 802); "WEF"
        # follows.
        return f"02:57:45:46:{self.host_index:02x}:{self.index:02x}"

    @property
    def port_name(self):
        """The name of the other end, which hangs on the switch."""
        return f"h{self.host_index}n{self.index}"

    @property
    def route_table(self):
        return ROUTE_TABLE_FIRST + self.index


@dataclass
class Host:
    """One host: a network namespace with `nics`. `net_namespace` is a path, once the lab is up."""

    index: int
    nics: List[Nic]
    net_namespace: Optional[str] = None

    @property
    def name(self):
        return f"h{self.index}"


@dataclass
class Slurm:
    """The lab's Slurm: where its files are, and the user of its daemons."""

    directory: str
    uid: int
    gid: int

    @property
    def configuration(self):
        return f"{self.directory}/slurm.conf"

    @property
    def hosts_file(self):
        """The names of the lab's hosts, in the form of hosts(5)."""
        return f"{self.directory}/hosts"


@dataclass
class Lab:
    """A whole lab. The namespaces are paths below the holder's /proc directory, once the lab is up."""

    name: str
    hosts: List[Host] = field(default_factory=list)
    holder_pid: int = 0
    holder_start_time: int = 0
    user_namespace: Optional[str] = None
    switch_namespace: Optional[str] = None
    slurm: Optional[Slurm] = None

    def nics(self):
        return [nic for host in self.hosts for nic in host.nics]


def check_name(name):
    """A lab's name becomes a file's name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name):
        raise UserError(f"'{name}' cannot name a lab; use letters, digits, '_', '-' and '.', 63 at most")
    return name


def plan_lab(name, host_count, nic_count, rate_bits_per_s):
    """A lab of `host_count` hosts with `nic_count` NICs each, or a UserError that says the limit."""
    check_name(name)
    if not 1 <= host_count <= HOST_COUNT_MAX:
        raise UserError(f"--hosts {host_count}: a lab has 1 to {HOST_COUNT_MAX} hosts")
    if not 1 <= nic_count <= NIC_COUNT_MAX:
        raise UserError(f"--nics {nic_count}: the subnet has room for 1 to {NIC_COUNT_MAX} NICs on each host")
    if host_count * nic_count > SWITCH_PORT_COUNT_MAX:
        raise UserError(
            f"{host_count} hosts x {nic_count} NICs need {host_count * nic_count} switch ports, "
            f"but a Linux bridge has {SWITCH_PORT_COUNT_MAX}; ask for fewer hosts or NICs"
        )
    hosts = [
        Host(host, [Nic(nic, host, rate_bits_per_s) for nic in range(nic_count)]) for host in range(host_count)
    ]
    return Lab(name, hosts)


def find_host(lab, text):
    """The host named "1" or "h1"."""
    for host in lab.hosts:
        if text in (host.name, str(host.index)):
            return host
    raise UserError(f"lab '{lab.name}' has no host '{text}'; it has {lab.hosts[0].name} to {lab.hosts[-1].name}")


def find_nic(host, text):
    """The NIC named "3" or "nic3"."""
    for nic in host.nics:
        if text in (nic.name, str(nic.index)):
            return nic
    raise UserError(f"host {host.name} has no NIC '{text}'; it has {host.nics[0].name} to {host.nics[-1].name}")
