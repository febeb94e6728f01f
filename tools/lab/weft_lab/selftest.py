"""`weft-lab selftest`: proves by the kernel's counters that each NIC carries its own traffic at its rate.

Two parts. Paths: a few datagrams from each NIC's address to another index's NIC on the next host; they must
leave and arrive by those two NICs and no other. Rates: a NIC sends to two (only its TX limit can hold it), and
two send to a NIC (only its RX limit can).
Invariant: one process with sockets in every host (a socket stays in the namespace it was made in), so
there is nothing to clean up but file descriptors.
"""

import selectors
import socket
import time
from collections import namedtuple
from dataclasses import dataclass

from . import namespaces
from .counters import CounterReader
from .errors import UserError
from .rates import format_rate

DATAGRAM_COUNT = 10
DATAGRAM_BYTES = 1000
# Room on the other NICs for the odd packet of somebody else's; the traffic itself is ten times as
# much.
NOISE_BYTES = 1000
ARRIVAL_TIMEOUT_S = 2.0

SETTLE_S = 0.2
# What misses its rate is measured again, longer: on a busy machine a process may get no core for
# 100 ms, whereas a limit that does not hold fails every time.
MEASURE_S = (0.4, 1.0, 2.0, 4.0)
ROUND_RATE_MAX_BITS_PER_S = 1_000_000_000
SHARE_MIN, SHARE_MAX = 0.88, 1.06
# Faster NICs may be limited by the machine's cores, so that only the upper bound says something.
RATE_EXPECTED_MAX_BITS_PER_S = 500_000_000

Probe = namedtuple("Probe", "subject partners direction")


@dataclass
class Result:
    """What was found of one NIC."""

    path: str = "-"
    tx_share: float = None
    rx_share: float = None

    def share(self, probe):
        return self.tx_share if probe.direction == "tx" else self.rx_share

    def ok(self, nic):
        return self.path == "ok" and all(share_ok(nic, share) for share in (self.tx_share, self.rx_share))


def key(probe):
    return probe.subject.host_index, probe.subject.index


def share_ok(nic, share):
    if nic.rate_bits_per_s is None:
        return True
    low = SHARE_MIN if nic.rate_bits_per_s <= RATE_EXPECTED_MAX_BITS_PER_S else 0.0
    return share is not None and low <= share <= SHARE_MAX


def run(lab):
    """Test the lab, print a table and one verdict line; returns the exit status."""
    if len(lab.hosts) < 2:
        raise UserError("selftest: traffic between NICs of one host stays inside it; the lab needs two hosts")
    results = {(nic.host_index, nic.index): Result() for nic in lab.nics()}
    with CounterReader(lab) as reader:
        alive = alive_nics(lab, reader)
        check_paths(lab, reader, alive, results)
        probes = all_probes(alive)
        for measure_s in MEASURE_S:
            for packed in rounds(probes):
                measure_round(lab, reader, packed, measure_s, results)
            probes = [probe for probe in probes if not share_ok(probe.subject, results[key(probe)].share(probe))]
    return report(lab, results)


def report(lab, results):
    print(f"{'host':<6}{'NIC':<8}{'address':<15}{'rate':>10}{'TX/rate':>9}{'RX/rate':>9}  path")
    bad = 0
    for nic in lab.nics():
        result = results[nic.host_index, nic.index]
        shares = ["-" if share is None else f"{share:.3f}" for share in (result.tx_share, result.rx_share)]
        rate = format_rate(nic.rate_bits_per_s)
        good = result.ok(nic)
        bad += not good
        mark = "" if good else "  <- FAILED"
        print(
            f"h{nic.host_index:<5}{nic.name:<8}{nic.address:<15}{rate:>10}{shares[0]:>9}{shares[1]:>9}  {result.path}{mark}"
        )
    count = len(results)
    if bad:
        print(f"selftest: FAILED, {bad} of {count} NICs")
        return 1
    print(f"selftest: ok, {count} NICs")
    return 0


def make_socket(lab, nic, kind):
    """A socket in the NIC's host, bound to its address."""
    namespaces.enter_host(lab, lab.hosts[nic.host_index])
    made = socket.socket(socket.AF_INET, kind)
    made.bind((nic.address, 0))
    return made


def alive_nics(lab, reader):
    """[[the NICs of each host that have a carrier]]; the others would only cost timeouts."""
    states = reader.read()
    return [[nic for nic in host.nics if states[host.index][nic.index].state == "up"] for host in lab.hosts]


def check_paths(lab, reader, alive, results):
    for host in lab.hosts:
        others = alive[(host.index + 1) % len(lab.hosts)]
        for nic in host.nics:
            if nic not in alive[host.index]:
                found = "is down"
            elif not others:
                found = "no NIC of the next host is up"
            else:
                found = check_path(lab, reader, nic, others[(nic.index + 1) % len(others)])
            results[nic.host_index, nic.index].path = found


def check_path(lab, reader, source, target):
    """Send datagrams from one NIC to another; "ok", or what is wrong."""
    with make_socket(lab, source, socket.SOCK_DGRAM) as sender, make_socket(lab, target, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(ARRIVAL_TIMEOUT_S)
        before = reader.sample()
        for _ in range(DATAGRAM_COUNT):
            sender.sendto(bytes(DATAGRAM_BYTES), receiver.getsockname())
        try:
            senders = {receiver.recvfrom(2 * DATAGRAM_BYTES)[1][0] for _ in range(DATAGRAM_COUNT)}
        except TimeoutError:
            return f"nothing arrives at {target.address}"
        if senders != {source.address}:
            return f"arrives as from {senders}"
        after = reader.sample()
    tx = moved(before, after, source.host_index, "tx_bytes")
    rx = moved(before, after, target.host_index, "rx_bytes")
    if carriers(tx) != [source.index]:
        return f"leaves by NICs {carriers(tx)}"
    if carriers(rx) != [target.index]:
        return f"arrives by NICs {carriers(rx)} instead of {target.index}"
    return "ok"


def moved(before, after, host_index, counter):
    """Bytes that each NIC of a host moved between two samples."""
    pairs = zip(getattr(before[host_index], counter), getattr(after[host_index], counter))
    return [later - earlier for earlier, later in pairs]


def carriers(deltas):
    return [index for index, delta in enumerate(deltas) if delta > NOISE_BYTES]


def all_probes(alive):
    """A TX and an RX probe of each NIC with a rate, against two NICs of the next host (one, if it has one)."""
    probes = []
    for host_index, nics in enumerate(alive):
        others = alive[(host_index + 1) % len(alive)]
        for nic in nics:
            if nic.rate_bits_per_s is not None and others:
                # In pairs (0,1), (2,3), ..., so that NICs of equal parity can be tested at the same
                # time.
                indices = {nic.index % len(others), (nic.index ^ 1) % len(others)}
                partners = tuple(others[index] for index in sorted(indices))
                probes += [Probe(nic, partners, "tx"), Probe(nic, partners, "rx")]
    return probes


def expected_rate(probe):
    """Bits per second that a probe can reach: the subject's rate, unless its partners are slower still."""
    rates = [nic.rate_bits_per_s for nic in probe.partners]
    return probe.subject.rate_bits_per_s if None in rates else min(probe.subject.rate_bits_per_s, sum(rates))


def rounds(probes):
    """Pack probes into rounds in which no NIC serves twice and the sum of rates fits the machine. Pure."""
    packed = []
    for probe in probes:
        used = {(nic.host_index, nic.index) for nic in (probe.subject, *probe.partners)}
        for entry in packed:
            fits = entry["rate"] + probe.subject.rate_bits_per_s <= ROUND_RATE_MAX_BITS_PER_S
            if fits and not used & entry["used"]:
                break
        else:
            entry = {"rate": 0, "used": set(), "probes": []}
            packed.append(entry)
        entry["rate"] += probe.subject.rate_bits_per_s
        entry["used"] |= used
        entry["probes"].append(probe)
    return [entry["probes"] for entry in packed]


def measure_round(lab, reader, probes, measure_s, results):
    """Run all probes of a round at once, and note each subject's share of its rate."""
    flows = [connect(lab, probe, partner) for probe in probes for partner in probe.partners]
    try:
        with selectors.DefaultSelector() as selector:
            for sender, receiver in flows:
                selector.register(sender, selectors.EVENT_WRITE)
                selector.register(receiver, selectors.EVENT_READ)
            pump(selector, SETTLE_S)
            before = reader.sample()
            pump(selector, measure_s)
            after = reader.sample()
    finally:
        for ends in flows:
            for end in ends:
                end.close()
    for probe in probes:
        nic = probe.subject
        bits = moved(before, after, nic.host_index, f"{probe.direction}_bytes")[nic.index] * 8
        elapsed = after[nic.host_index].time_s - before[nic.host_index].time_s
        setattr(results[key(probe)], f"{probe.direction}_share", bits / elapsed / expected_rate(probe))


def connect(lab, probe, partner):
    """One TCP connection of a probe: (sending end, receiving end), both without blocking."""
    source, target = (probe.subject, partner) if probe.direction == "tx" else (partner, probe.subject)
    with make_socket(lab, target, socket.SOCK_STREAM) as listener:
        listener.listen(1)
        listener.settimeout(ARRIVAL_TIMEOUT_S)
        sender = make_socket(lab, source, socket.SOCK_STREAM)
        sender.settimeout(ARRIVAL_TIMEOUT_S)
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
    sender.setblocking(False)
    receiver.setblocking(False)
    return sender, receiver


def pump(selector, duration_s):
    """Keep every sender full and every receiver empty for a while."""
    data, end = bytes(1 << 18), time.monotonic() + duration_s
    while (left := end - time.monotonic()) > 0:
        for key, events in selector.select(left):
            if events & selectors.EVENT_WRITE:
                key.fileobj.send(data)
            else:
                key.fileobj.recv(len(data))
