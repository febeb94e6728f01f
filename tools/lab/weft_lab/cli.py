"""The command line: reads it, calls the right module, turns the two known errors into a line and a status.

Invariant: exit status 0 is success, 1 a failed self-test or a defect, 2 a user's error, 3 "namespaces are
forbidden here"; `run` exits with its command's status.
"""

import argparse
import json
import sys

from . import __version__, state
from .errors import ForbiddenError, UserError
from .nic_counters import BYTES, DROPS, PACKETS
from .plan import find_host, find_nic, plan_lab
from .rates import format_rate, parse_rate


def main(arguments=None):
    """Run one command; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        if options.command is None:
            raise UserError("no command is named; weft-lab --help lists them")
        return options.action(options) or 0
    except (UserError, ForbiddenError) as error:
        print(f"weft-lab: {error}", file=sys.stderr)
        return error.exit_status
    except PermissionError as error:
        print(f"weft-lab: {error}; the lab belongs to another user", file=sys.stderr)
        return UserError.exit_status
    except KeyboardInterrupt:
        return 130


def parser():
    top = argparse.ArgumentParser(prog="weft-lab", description="A virtual cluster on one machine.")
    top.add_argument("--version", action="version", version=f"weft-lab {__version__}")
    top.add_argument("--name", default="default", help="the lab's name, also behind the command (default: default)")
    # That there is one is checked later: argparse would not say which option it does not know.
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    _add_up(commands)
    _add_run(commands)
    _add_command(commands, "down", "end a lab", down)
    commands.add_parser("list", help="show the labs that are up").set_defaults(action=list_labs)
    counters = _add_command(commands, "counters", "show the kernel's counters of every NIC", show_counters)
    counters.add_argument("--json", action="store_true", help="as JSON")
    _add_nic(commands)
    _add_command(commands, "selftest", "prove that each NIC carries its own traffic at its rate", selftest)
    return top


def _add_command(commands, name, text, action):
    command = commands.add_parser(name, help=text)
    # Without a default of its own, which would replace what stands before the command.
    command.add_argument("--name", default=argparse.SUPPRESS, help="the lab's name (default: default)")
    command.set_defaults(action=action)
    return command


def _add_up(commands):
    command = _add_command(commands, "up", "start a lab", up)
    command.add_argument("--hosts", type=int, default=2, metavar="N", help="hosts (default: 2)")
    command.add_argument("--nics", type=int, default=4, metavar="N", help="NICs per host (default: 4)")
    command.add_argument(
        "--rate", default="unlimited", help="each NIC's rate, per direction: 800kbit, 40mbit, ... (default: unlimited)"
    )
    command.add_argument("--slurm", action="store_true", help="with a Slurm whose nodes are the hosts")


def _add_run(commands):
    command = _add_command(commands, "run", "run a command in a lab", run)
    command.add_argument("--host", metavar="HOST", help="inside this host (index or name; with --slurm, the first)")
    command.add_argument("-n", dest="pe_count", type=int, metavar="PES", help="as this many PEs, by weft-run")
    command.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")


def _add_nic(commands):
    nic = commands.add_parser("nic", help="cut, restore or slow one NIC")
    verbs = nic.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, text, action in (
        ("down", "pull its cable", nic_down),
        ("up", "plug it in again", nic_up),
        ("rate", "change its rate in both directions", nic_rate),
    ):
        command = _add_command(verbs, verb, text, action)
        command.add_argument("host", metavar="HOST", help="index or name")
        command.add_argument("nic", metavar="NIC", help="index or name")
        if verb == "rate":
            command.add_argument("rate", metavar="RATE", help="for example 10mbit, or unlimited")


def up(options):
    from . import holder, network, slurm

    lab = plan_lab(options.name, options.hosts, options.nics, parse_rate(options.rate))
    if options.slurm:
        slurm.require_programs()
    holder.start(lab, network.build)
    if options.slurm:
        _start_slurm(state.find(options.name))
    with_slurm = ", with Slurm" if options.slurm else ""
    print(f"lab '{lab.name}': {options.hosts} hosts x {options.nics} NICs of {options.rate} are up{with_slurm}")


def _start_slurm(lab):
    from . import holder, slurm

    try:
        slurm.start(lab)
        state.write(lab, replace=True)
    except BaseException:
        holder.stop(lab)
        raise


def run(options):
    from . import launch

    return launch.run(options)


def down(options):
    from . import holder

    lab = state.find(options.name)
    inside = holder.stop(lab)
    print(f"lab '{lab.name}' is down")
    if inside:
        pids = " ".join(map(str, inside))
        print(f"weft-lab: still running inside, and keeping their host alive until they end: {pids}", file=sys.stderr)


def list_labs(_):
    labs = state.labs()
    for lab in labs:
        rates = sorted({nic.rate_bits_per_s or 0 for nic in lab.nics()})
        rate_text = ", ".join(format_rate(rate or None) for rate in rates)
        kind = "user namespace" if lab.user_namespace else "root"
        print(
            f"{lab.name}: {len(lab.hosts)} hosts x {len(lab.hosts[0].nics)} NICs of {rate_text}, "
            f"holder {lab.holder_pid}, {kind}"
        )
    if not labs:
        print("no lab is up; start one with: weft-lab up", file=sys.stderr)


def show_counters(options):
    from . import counters

    lab = state.find(options.name)
    with counters.CounterReader(lab) as reader:
        values = reader.read()
    document = counters.to_document(lab, values)
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        print(counters_table(document), end="")


def counters_table(document):
    lines = []
    columns = "{:<9}{:<15}{:<6}{:>10}{:>16}{:>16}{:>12}{:>12}{:>10}{:>10}"
    names = ("address", "state", "rate", "TX bytes", "RX bytes", "TX packets", "RX packets", "TX drops", "RX drops")
    blank = [""] * 4
    for host in document["hosts"]:
        lines.append(columns.format(host["name"], *names))
        for nic in host["nics"]:
            numbers = [nic[key] for key in BYTES + PACKETS + DROPS]
            rate = format_rate(nic["rate_bits_per_s"])
            lines.append(columns.format(nic["name"], nic["address"], nic["state"], rate, *numbers))
        ratios = [_ratio_text(host[key]) for key in ("tx_max_over_mean", "rx_max_over_mean")]
        lines.append(columns.format("total", *blank[:3], host["tx_bytes"], host["rx_bytes"], *blank).rstrip())
        lines.append(columns.format("max/mean", *blank[:3], *ratios, *blank).rstrip())
    return "\n".join(lines) + "\n"


def _ratio_text(ratio):
    return "-" if ratio is None else f"{ratio:.3f}"


def _host_and_nic(options):
    lab = state.find(options.name)
    host = find_host(lab, options.host)
    return lab, host, find_nic(host, options.nic)


def nic_down(options):
    from . import nics

    lab, host, nic = _host_and_nic(options)
    nics.cut(lab, nic)
    print(f"{host.name} {nic.name} is down")


def nic_up(options):
    from . import nics

    lab, host, nic = _host_and_nic(options)
    nics.restore(lab, host, nic)
    print(f"{host.name} {nic.name} is up")


def nic_rate(options):
    rate = parse_rate(options.rate)
    lab, host, nic = _host_and_nic(options)

    from . import nics

    nics.set_rate(lab, host, nic, rate)
    print(f"{host.name} {nic.name} has {format_rate(rate)}")


def selftest(options):
    from . import selftest as test

    return test.run(state.find(options.name))
