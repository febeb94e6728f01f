#!/usr/bin/env python3
"""The demonstration behind ./demo: an all-to-all with the two policies that others use, then with Weft's default.

It brings a lab up (or, where namespaces are forbidden, uses loopback addresses as rails), runs
weft-perf with each policy, draws the bytes that each NIC received, compares the policies by time, and takes the
lab down whatever happens. The last line is for scripts; it is the only one that begins with "demo: ok" or
"demo: FAILED".
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import bars

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
LAB = ROOT / "tools" / "lab" / "weft-lab"

HOSTS = 2
PES = 8
NICS_PER_PE = 4
NICS_PER_HOST = PES // HOSTS * NICS_PER_PE
WINDOW = 4  # all-to-all steps between two barriers
DEFAULT = None  # the policy that Weft takes when nobody names one
POLICIES = ("coupled", "offset", DEFAULT)
NAMESPACES_FORBIDDEN = 3  # weft-lab's exit status

BALANCED_RX_MAX = 1.1
COUPLED_RX_MIN = 2.0
RUN_LIMIT_S = 300


class Failure(Exception):
    """Ends the demonstration; the text goes into the last line."""


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./demo", description="Compares policies that spread traffic over several NICs, by NIC and by time.")
    parser.add_argument("--rate", default="20mbit", help="of each NIC of the lab (default: 20mbit)")
    parser.add_argument("--size", default="256K", help="of each message (default: 256K)")
    parser.add_argument("--duration", type=float, default=4, help="seconds for each policy (default: 4)")
    parser.add_argument("--keep", action="store_true", help="leave the lab up, and say how to use it")
    return parser.parse_args()


def parse_size(text):
    """256K -> 262144, as weft-perf reads it."""
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper())
    digits = text if shift is None else text[:-1]
    if not digits.isdigit() or int(digits) == 0:
        raise Failure(f"--size {text} is not a size; write 64K or 1M")
    return int(digits) << (shift or 0)


# ---- Where it runs -------------------------------------------------------------------------------


class LabPlace:
    """Two hosts as network namespaces, each NIC limited to a rate; the kernel counts for each."""

    figures = "kernel"

    def __init__(self, name):
        self.name = name

    def command(self, program):
        return [LAB, "run", "--name", self.name, "-n", str(PES), "--", *program], {"WEFT_RUN": str(BIN / "weft-run")}


class LoopbackPlace:
    """The same 32 rails as addresses of the loopback device; the kernel has one counter for all."""

    figures = "library"

    def command(self, program):
        nics = ",".join(f"127.0.0.{index + 1}" for index in range(NICS_PER_HOST))
        environment = {"WEFT_NICS": nics, "WEFT_NODE_SIZE": str(PES // HOSTS)}
        return [BIN / "weft-run", "-n", str(PES), "--", *program], environment


@contextlib.contextmanager
def open_place(arguments):
    """A LabPlace, taken down in the end, or a LoopbackPlace where a lab is forbidden."""
    name = f"demo-{os.getpid()}"
    up = [LAB, "up", "--name", name, "--hosts", str(HOSTS), "--nics", str(NICS_PER_HOST), "--rate", arguments.rate]
    started = subprocess.run(up, capture_output=True, text=True)
    if started.returncode == NAMESPACES_FORBIDDEN:
        print(f"demo: no lab: {started.stderr.strip()}")
        print("demo: loopback addresses stand for the NICs, and Weft's own counters for the kernel's. That shows")
        print("      where Weft sends the bytes, but not that the wires carry them so, nor what it gains: all")
        print("      'NICs' are one device without a limit.")
        yield LoopbackPlace()
        return
    if started.returncode != 0:
        raise Failure(f"the lab did not come up: {started.stderr.strip()}")
    print(f"demo: {started.stdout.strip()}; {PES} PEs, {NICS_PER_PE} NICs for each")
    try:
        yield LabPlace(name)
    finally:
        take_down(name, arguments.keep)


def take_down(name, keep):
    if keep:
        print(f"demo: the lab stays: {LAB} counters --name {name}; end it with {LAB} down --name {name}")
        return
    down = subprocess.run([LAB, "down", "--name", name], capture_output=True, text=True)
    if down.returncode != 0:
        print(f"demo: the lab did not go down: {down.stderr.strip()}", file=sys.stderr)


# ---- What it runs --------------------------------------------------------------------------------


def run_policy(place, policy, arguments):
    """{"row": ..., "balance": ...} of one all-to-all; the last of each kind."""
    size = str(parse_size(arguments.size) * PES)
    program = [BIN / "weft-perf", "alltoall_latency", "-b", size, "-e", size, "-w", str(WINDOW)]
    program += ["--window", str(WINDOW), "--duration", str(arguments.duration), "--verify", "--json"]
    program += ["--policy", policy] if policy else []
    command, environment = place.command(program)
    policy = policy or "the default"
    print(f"demo: {policy}: an all-to-all of {arguments.size} messages for {arguments.duration:g} s ...", flush=True)
    inherited = {name: value for name, value in os.environ.items() if name != "WEFT_RAIL_POLICY"}
    process = subprocess.Popen(command, env=inherited | environment, stdout=subprocess.PIPE, text=True)
    try:
        output, _ = process.communicate(timeout=RUN_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{policy}: nothing came of it in {RUN_LIMIT_S} s") from error
    finally:
        if process.poll() is None:
            process.terminate()  # weft-run ends its PEs
            process.wait(10)
    if process.returncode != 0:
        raise Failure(f"{policy}: weft-perf ended with status {process.returncode}")
    return read_results(policy, output)


def read_results(policy, output):
    results = {}
    for line in output.splitlines():
        if line.startswith("{"):
            value = json.loads(line)
            results[value["kind"]] = value
    if set(results) != {"row", "balance"}:
        raise Failure(f"{policy}: weft-perf printed no figures of the NICs")
    return results


def ratio(results, direction, place):
    value = results["balance"][f"{direction}_max_over_mean_{place.figures}"]
    if value is None:
        raise Failure(f"there are no {place.figures} counters of the NICs")
    return value


def share(results):
    """Time needed / time taken; None where the rates of the NICs are not known."""
    return results["balance"]["share_of_rails"]


def name_of(results):
    return results["balance"]["policy"]


def in_time(results, direction):
    """max/mean of a PE's NICs in 10 ms, the mean of all; None where nobody looked."""
    moments = results["balance"]["max_over_mean_per_interval"]
    return moments["kernel"]["pe"][direction]["mean"] if moments else None


def draw(results, place):
    """Each NIC's received bytes as a bar, per host."""
    policy = name_of(results)
    seconds = results["row"]["value"] * results["row"]["iterations"] / 1e6
    rows = [
        (f"h{nic['node']}", nic["nic"] if place.figures == "kernel" else nic["address"], nic[f"rx_bytes_{place.figures}"])
        for nic in results["balance"]["nics"]
    ]
    rate = results["row"]["GB_per_s_between_nodes"]
    print()
    print(f"{policy}: what each NIC received in {seconds:.1f} s; {rate * 8e3:.0f} Mbit/s between the hosts in all")
    print(bars.draw(rows, colour=sys.stdout.isatty()))


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def compare(runs, place):
    """A line for each policy: by time, and by NIC."""
    lines = [f"{'policy':<10} {'ms a step':>10} {'share of the rails':>20} {'RX max/mean: in all':>21} {'in 10 ms':>9}"]
    for results in runs:
        milliseconds = results["row"]["value"] / 1e3
        lines.append(f"{name_of(results):<10} {milliseconds:>10.1f} {number(share(results), 2):>20}"
                     f" {ratio(results, 'rx', place):>21.2f} {number(in_time(results, 'rx'), 2):>9}")
    return "\n".join(lines)


def explain(arguments, coupled_rx, default, default_rx, speedup):
    print(f"""
Each of the {PES} PEs has {NICS_PER_PE} NICs and sends to {PES // HOSTS} PEs of the other host. With 'coupled' (rail i of the
sender to rail i of the receiver, in turn) sending is even, but all senders meet on the same NIC of a
receiver: the busiest takes {coupled_rx:.1f} times the mean, and the others wait. 'offset' turns the receiver's rail
with the sender; '{default}', Weft's default, chooses both rails by what waits on them: the busiest takes
{default_rx:.2f} times the mean, and the same NICs carry {speedup:.1f} times as much as with 'coupled'. The share of the rails
is the time that the NICs would have needed, evenly used, of the time that it took; max/mean in 10 ms tells
rails that work together (1) from rails that take turns ({NICS_PER_PE}), which the bytes of the whole run do not show.
Every byte of the {arguments.size} messages was checked at its target.""")


def judge(coupled_rx, balanced_rx):
    if balanced_rx > BALANCED_RX_MAX:
        raise Failure(f"the default: RX max/mean is {balanced_rx:.2f}, more than {BALANCED_RX_MAX}")
    if coupled_rx < COUPLED_RX_MIN:
        raise Failure(f"coupled: RX max/mean is {coupled_rx:.2f}, less than {COUPLED_RX_MIN}: the problem did not show")


def demonstrate(arguments):
    """The last line."""
    with open_place(arguments) as place:
        runs = []
        for policy in POLICIES:
            runs.append(run_policy(place, policy, arguments))
            draw(runs[-1], place)
    print(f"\n{compare(runs, place)}")
    coupled, offset, default = runs
    coupled_rx, default_rx = ratio(coupled, "rx", place), ratio(default, "rx", place)
    speedup = default["row"]["GB_per_s_between_nodes"] / coupled["row"]["GB_per_s_between_nodes"]
    explain(arguments, coupled_rx, name_of(default), default_rx, speedup)
    judge(coupled_rx, default_rx)
    return (f"demo: ok rx_max_over_mean={default_rx:.2f} tx_max_over_mean={ratio(default, 'tx', place):.2f} "
            f"coupled_rx_max_over_mean={coupled_rx:.2f} speedup={speedup:.1f} share={number(share(default), 2)} "
            f"coupled_share={number(share(coupled), 2)} offset_share={number(share(offset), 2)}")


def end_by_signal(number, _):
    raise Failure(f"ended by {signal.Signals(number).name}")


def main():
    arguments = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    try:
        print(demonstrate(arguments))
        return 0
    except Failure as failure:
        print(f"demo: FAILED {failure}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
