"""Two hosts as network namespaces, joined by one link, without a lab: for networks as administrators build them.

As any user who may make user namespaces: all of it is in one, and gone with it."""
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
IN_NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--", "bash", "-euc"]

# hA and hB, with eth0 each; `on NAME COMMAND...` runs in one, `each` prepares both: $h is the host,
# $i its number.
PRELUDE = """
mount -t tmpfs tmpfs /run
for h in hA hB; do ip netns add $h; ip -n $h link set lo up; done
ip link add eth0 netns hA type veth peer name eth0 netns hB
for h in hA hB; do ip -n $h link set eth0 up; done
on() { ip netns exec "$@"; }
"""

# A real port of a bridge that has the host's address, beside a bridge with a container, the same on
# both hosts.
BRIDGES = """
i=1; for h in hA hB; do
  ip -n $h link add link eth0 name real0 type macvlan mode passthru
  ip -n $h link add br0 type bridge; ip -n $h link set real0 master br0 up
  ip -n $h link set br0 up; ip -n $h addr add 10.77.0.$i/24 dev br0
  ip -n $h link add docker0 type bridge; ip -n $h addr add 172.17.0.1/16 dev docker0; ip -n $h link set docker0 up
  ip -n $h link add veth7c1 type veth peer name c0
  ip -n $h link set veth7c1 master docker0 up; ip -n $h link set c0 up
  i=$((i + 1))
done
"""

# BGP to the host: its address is on lo, and eth0 has none; a route leads to the other host's.
ADDRESS_ON_LOOPBACK = """
i=1; for h in hA hB; do
  ip -n $h addr add 10.77.0.$i/32 dev lo
  ip -n $h route add 10.77.0.$((3 - i))/32 dev eth0 src 10.77.0.$i
  i=$((i + 1))
done
"""

PLAIN = "ip -n hA addr add 10.77.0.1/24 dev eth0; ip -n hB addr add 10.77.0.2/24 dev eth0\n"


def run(network, script, folder):
    """(status, stdout, stderr) of a script in both hosts' namespaces; ./ssh in it stands for ssh, ./ssh-tcp for one whose
    connection is a TCP connection between the hosts. Skips where such namespaces are not to be had."""
    (folder / "ssh").write_text('#!/bin/sh\nhost=$1; shift\n[ "$host" = 10.77.0.1 ] && ns=hA || ns=hB\n'
                                'exec ip netns exec $ns sh -c "$*"\n')
    (folder / "ssh").chmod(0o755)
    (folder / "ssh-tcp").write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "ssh_stand_in.py"} "$@"\n')
    (folder / "ssh-tcp").chmod(0o755)
    made = subprocess.run([*IN_NAMESPACES, PRELUDE + network], capture_output=True, text=True, timeout=60)
    if made.returncode != 0:
        pytest.skip(f"no such namespaces on this machine: {made.stderr.strip()}")
    done = subprocess.run([*IN_NAMESPACES, PRELUDE + network + script], capture_output=True, text=True, timeout=170, cwd=folder)
    return done.returncode, done.stdout, done.stderr
