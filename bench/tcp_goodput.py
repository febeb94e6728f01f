#!/usr/bin/env python3
"""Goodput of plain TCP sockets over several address pairs at once: what the rails could carry.

  tcp_goodput.py serve ADDRESS...                       counts; answers "sample" on stdin
  tcp_goodput.py send --duration S LOCAL=REMOTE...      sends over all pairs
  tcp_goodput.py loopback --duration S [PAIRS]          both ends here, over 127.0.0.1..

The receiver counts, between two moments in the middle of the run, so that slow start and what still
lies in buffers do not matter.
"""
import argparse
import json
import socket
import sys
import threading
import time

PORT = 48210
CHUNK = 1 << 18


class Counter:
    """Bytes that have arrived on one address; written by its thread, read by the main one."""

    def __init__(self, address):
        self.address, self.count = address, 0
        self.listener = socket.create_server((address, PORT), reuse_port=False)

    def run(self):
        connection, _ = self.listener.accept()
        buffer = bytearray(CHUNK)
        while size := connection.recv_into(buffer):
            self.count += size


def serve(arguments):
    """Answers "sample" on stdin with one JSON line: seconds and bytes of each address."""
    counters = [Counter(address) for address in arguments.addresses]
    for counter in counters:
        threading.Thread(target=counter.run, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "sample":
            break
        sample = {"time_s": time.monotonic(), "bytes": {c.address: c.count for c in counters}}
        print(json.dumps(sample), flush=True)


def send_until(end, local, remote):
    with socket.create_connection((remote, PORT), source_address=(local, 0)) as connection:
        data = bytes(CHUNK)
        while time.monotonic() < end:
            connection.send(data)


def send(arguments):
    end = time.monotonic() + arguments.duration
    pairs = [pair.split("=") for pair in arguments.pairs]
    threads = [threading.Thread(target=send_until, args=(end, *pair)) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def goodput(first, second):
    """{address: bytes/s} between two samples, and their sum."""
    seconds = second["time_s"] - first["time_s"]
    each = {address: (second["bytes"][address] - count) / seconds for address, count in first["bytes"].items()}
    return {"program": "tcp_goodput", "seconds": seconds, "bytes_per_s": each, "total_bytes_per_s": sum(each.values())}


def loopback(arguments):
    addresses = [f"127.0.0.{index + 1}" for index in range(arguments.pairs)]
    counters = [Counter(address) for address in addresses]
    for counter in counters:
        threading.Thread(target=counter.run, daemon=True).start()
    end = time.monotonic() + arguments.duration
    for address in addresses:
        threading.Thread(target=send_until, args=(end, address, address), daemon=True).start()
    samples = []
    for share in (0.25, 0.9):
        time.sleep(max(0, end - arguments.duration * (1 - share) - time.monotonic()))
        samples.append({"time_s": time.monotonic(), "bytes": {c.address: c.count for c in counters}})
    print(json.dumps(goodput(*samples)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("serve")
    command.add_argument("addresses", nargs="+")
    command.set_defaults(action=serve)
    command = commands.add_parser("send")
    command.add_argument("--duration", type=float, default=5)
    command.add_argument("pairs", nargs="+", metavar="LOCAL=REMOTE")
    command.set_defaults(action=send)
    command = commands.add_parser("loopback")
    command.add_argument("--duration", type=float, default=5)
    command.add_argument("pairs", type=int, nargs="?", default=4)
    command.set_defaults(action=loopback)
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
