"""What can happen to a NIC while the lab is up: its cable is pulled, plugged in again, its rate changes.

Invariants: a cut takes the carrier away at the switch's end, as a pulled cable does, so both directions
drop at once and the host keeps its addresses; `up` restores a NIC also when the host itself has set it
down, which makes Linux drop its routes; a new rate is in the kernel before it is in the state file.
"""

from . import state
from .network import configure_nic, limit_nic, link_index, open_netlink


def cut(lab, nic):
    """Take the NIC off the network."""
    with open_netlink(lab, None) as switch:
        switch.link("set", index=link_index(switch, nic.port_name), state="down")


def restore(lab, host, nic):
    """Plug the NIC in again, with all it had."""
    with open_netlink(lab, None) as switch, open_netlink(lab, host) as netlink:
        switch.link("set", index=link_index(switch, nic.port_name), state="up")
        configure_nic(netlink, lab, nic)
        limit_nic(switch, netlink, nic)


def set_rate(lab, host, nic, rate_bits_per_s):
    """Change the NIC's limit in both directions."""
    with state.directory_lock():
        lab = state.read(state.state_path(lab.name))
        nic = lab.hosts[host.index].nics[nic.index]
        nic.rate_bits_per_s = rate_bits_per_s
        with open_netlink(lab, None) as switch, open_netlink(lab, host) as netlink:
            limit_nic(switch, netlink, nic)
        state.write(lab, replace=True)
