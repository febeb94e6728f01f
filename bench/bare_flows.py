#!/usr/bin/env python3
"""The rails' limit in an all-to-all: the same messages over plain TCP, one connection for each NIC and peer.

  bare_flows.py --lab NAME --pes-per-host 4 --nics-per-pe 4 --bytes 262144 --duration 3

One process with an epoll drives all connections of all PEs. Each PE sends `--bytes` to every PE of other hosts, waits until
all of it has arrived (an answer of one byte), and meets the others, as a step with a quiet and a barrier does. PE p
sends to PE p + d from its NIC d to that PE's NIC d (modulo NICs), so that no NIC sends or receives twice at a time; where a PE
has more NICs than peers, a message goes in equal parts over as many as there are for each. It is a limit only where peers
and NICs divide each other. Prints one JSON line.
"""
import argparse
import json
import pathlib
import select
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "lab"))

from weft_lab import namespaces, state  # noqa: E402: the path above comes first

PORT = 48300
CHUNK = 1 << 18
PAYLOAD_SHARE = 1448 / 1514  # of a full frame


class Flow:
    """One connection, and what is still to go and to come on it in this step."""

    def __init__(self, sender, receiver, bytes_per_step):
        self.sender, self.receiver, self.bytes_per_step = sender, receiver, bytes_per_step
        self.to_send = self.to_receive = 0


def routes(hosts, pes_per_host, nics_per_pe):
    """(sender's host, its NIC, receiver's host, its NIC, parts of the message) of each flow. Pure."""
    pes = hosts * pes_per_host
    peers = pes - pes_per_host
    parts = max(1, nics_per_pe // peers)
    for pe in range(pes):
        for distance in range(1, pes):
            other = (pe + distance) % pes
            if other // pes_per_host == pe // pes_per_host:
                continue
            for part in range(parts):
                nic = (distance * parts + part) % nics_per_pe
                yield (pe // pes_per_host, pe % pes_per_host * nics_per_pe + nic,
                       other // pes_per_host, other % pes_per_host * nics_per_pe + nic, parts)


def connect(lab, route, listeners):
    from_host, from_nic, to_host, to_nic, _ = route
    address = lab.hosts[to_host].nics[to_nic].address
    namespaces.enter_host(lab, lab.hosts[to_host])
    if address not in listeners:
        listeners[address] = socket.create_server((address, PORT), backlog=64)
    namespaces.enter_host(lab, lab.hosts[from_host])
    local = (lab.hosts[from_host].nics[from_nic].address, 0)
    sender = socket.create_connection((address, PORT), timeout=10, source_address=local)
    receiver, _ = listeners[address].accept()
    for end in (sender, receiver):
        end.setblocking(False)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sender, receiver


class Steps:
    """Runs the steps: everything is sent, received and answered before the next one begins."""

    def __init__(self, flows):
        self.flows = flows
        self.poll = select.epoll()
        self.by_descriptor = {}
        for flow in flows:
            for end in (flow.sender, flow.receiver):
                self.by_descriptor[end.fileno()] = (flow, end)
            self.poll.register(flow.receiver, select.EPOLLIN)
            self.poll.register(flow.sender, 0)
        self.data = memoryview(bytes(CHUNK))
        self.buffer = bytearray(CHUNK)

    def run(self):
        self.unanswered = len(self.flows)
        for flow in self.flows:
            flow.to_send = flow.to_receive = flow.bytes_per_step
            self.poll.modify(flow.sender, select.EPOLLIN | select.EPOLLOUT)
        while self.unanswered:
            for descriptor, events in self.poll.poll():
                flow, end = self.by_descriptor[descriptor]
                if end is flow.receiver:
                    self.receive(flow)
                elif events & select.EPOLLOUT and flow.to_send:
                    self.send(flow)
                elif events & select.EPOLLIN and end.recv(1):
                    self.unanswered -= 1

    def send(self, flow):
        flow.to_send -= flow.sender.send(self.data[:min(CHUNK, flow.to_send)])
        if flow.to_send == 0:
            self.poll.modify(flow.sender, select.EPOLLIN)

    def receive(self, flow):
        flow.to_receive -= flow.receiver.recv_into(self.buffer)
        if flow.to_receive == 0:
            flow.receiver.send(b"!")


def measure(arguments):
    lab = state.find(arguments.lab)
    listeners, flows = {}, []
    for route in routes(len(lab.hosts), arguments.pes_per_host, arguments.nics_per_pe):
        sender, receiver = connect(lab, route, listeners)
        flows.append(Flow(sender, receiver, max(1, arguments.bytes // route[4])))
    steps = Steps(flows)
    steps.run()  # warm-up
    start, count = time.monotonic(), 0
    while time.monotonic() - start < arguments.duration:
        steps.run()
        count += 1
    seconds = time.monotonic() - start
    rate = count * sum(flow.bytes_per_step for flow in flows) / seconds
    nics = [nic for host in lab.hosts for nic in host.nics]
    possible = sum(nic.rate_bits_per_s for nic in nics) / 8 * PAYLOAD_SHARE
    return {"bytes_per_s": rate, "steps": count, "seconds": seconds, "flows": len(flows), "share_of_rails": rate / possible}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default="default", help="a lab that is up; all its NICs belong to the PEs")
    parser.add_argument("--pes-per-host", type=int, default=4)
    parser.add_argument("--nics-per-pe", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=1 << 18, help="to each PE of another host, in a step")
    parser.add_argument("--duration", type=float, default=3.0, metavar="S")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
