"""Labs that are really up, as the present user. Skipped with a reason where namespaces are forbidden."""

import json
import os
import signal
import subprocess
import time
import traceback

import pytest
from lab_cli import Cli
from weft_lab import holder, namespaces, network, plan, state
from weft_lab.errors import ForbiddenError, UserError

PROBE = """
import socket, sys
kind, bind, peer = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((bind, 7000)); s.settimeout(1)
if kind == "send":
    s.sendto(b"x" * 900, (peer, 7000))
else:
    print("ready", flush=True)
    sys.stdin.readline()  # until the sender has ended, however long its start takes on a busy machine
    try: print("got", s.recvfrom(1000)[1][0], flush=True)
    except TimeoutError: print("nothing", flush=True)
"""


def reach(cli, source, target):
    """Whether a datagram from a (host, address) arrives at another; returns what the receiver says."""
    python = ["--", "python3", "-c", PROBE]
    receiver = subprocess.Popen(
        [*cli.command, "run", "--host", source_host(target), *python, "receive", target, "-"],
        env=cli.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    assert receiver.stdout.readline() == "ready\n"
    cli.run("run", "--host", source_host(source), *python, "send", source, target)
    return receiver.communicate("sent\n", timeout=30)[0].strip()


def in_a_child(function):
    """Call it in a process of its own, since entering a namespace cannot be undone by everybody."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:  # noqa: BLE001 - the child must not go on with the test run
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def source_host(address):
    return address.split(".")[2]


def counters_of(cli):
    return json.loads(cli.ok("counters", "--json"))["hosts"]


def holder_pid(cli):
    return json.loads(open(os.path.join(cli.environment["WEFT_LAB_DIR"], "default.json")).read())["holder_pid"]


def wait_until(condition, timeout_s=60):  # a hang, also on a busy machine
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "this did not become true in time"
        time.sleep(0.02)


def test_each_nic_carries_its_own_traffic_at_its_rate(cli):
    cli.start("--hosts", "2", "--nics", "4", "--rate", "40mbit")
    output = cli.ok("selftest")
    assert output.splitlines()[-1] == "selftest: ok, 8 NICs", output


def test_the_self_test_notices_a_missing_limit_and_a_missing_rule(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    lab = read_lab(cli)

    def spoil():
        with network.open_netlink(lab, None) as switch:
            network.remove_limit(switch, "h0n0")
        with network.open_netlink(lab, lab.hosts[0]) as netlink:
            netlink.rule("del", src="10.88.0.2", src_len=32, table=1001, priority=1001)

    in_a_child(spoil)
    done = cli.run("selftest")
    lines = {tuple(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert done.returncode == 1
    assert "leaves by NICs [0]" in lines["h0", "nic1"]
    assert "FAILED" in lines["h0", "nic0"]


def test_an_idle_lab_counts_nothing(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    time.sleep(1)
    assert all(nic["tx_packets"] == nic["rx_packets"] == 0 for host in counters_of(cli) for nic in host["nics"])


def test_a_cut_nic_drops_both_directions_and_works_again_when_restored(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    cut, other = "10.88.0.2", "10.88.1.1"
    assert reach(cli, cut, other) == f"got {cut}"
    cli.ok("nic", "down", "0", "nic1")
    assert counters_of(cli)[0]["nics"][1]["state"] == "down"
    assert reach(cli, cut, other) == reach(cli, other, cut) == "nothing"
    assert reach(cli, "10.88.0.1", other) == "got 10.88.0.1"
    cli.ok("nic", "up", "h0", "1")
    assert reach(cli, cut, other) == f"got {cut}"
    assert reach(cli, other, cut) == f"got {other}"


def test_nic_up_restores_the_routes_that_a_link_set_down_in_the_host_loses(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    lab = read_lab(cli)

    def set_down():
        with network.open_netlink(lab, lab.hosts[0]) as netlink:
            netlink.link("set", index=network.link_index(netlink, "nic1"), state="down")

    in_a_child(set_down)
    cli.ok("nic", "up", "0", "1")
    before = counters_of(cli)[0]["nics"]
    assert reach(cli, "10.88.0.2", "10.88.1.1") == "got 10.88.0.2"
    after = counters_of(cli)[0]["nics"]
    assert [b["tx_packets"] - a["tx_packets"] for a, b in zip(before, after)] == [0, 1]


def read_lab(cli, name="default"):
    return state.read(os.path.join(cli.environment["WEFT_LAB_DIR"], f"{name}.json"))


def test_only_the_owner_of_an_address_answers_arp(cli):
    cli.start("--hosts", "2", "--nics", "3", "--rate", "40mbit")
    lab = read_lab(cli)
    target = lab.hosts[1].nics[2]
    read_end, write_end = os.pipe()

    def ask():
        with network.open_netlink(lab, lab.hosts[0]) as netlink:
            index = network.link_index(netlink, "nic0")
            netlink.neigh("del", dst=target.address, ifindex=index)
            subprocess.run(["python3", "-c", PROBE, "send", "10.88.0.1", target.address], check=False)

            def answered():
                return [entry.get_attr("NDA_LLADDR") for entry in
                        netlink.get_neighbours(dst=target.address, ifindex=index) if entry.get_attr("NDA_LLADDR")]

            wait_until(answered)
            os.write(write_end, answered()[0].encode())

    in_a_child(ask)
    assert os.read(read_end, 100).decode() == target.mac


def test_a_new_rate_holds_in_the_kernel_and_in_the_state_file(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    cli.ok("nic", "rate", "0", "1", "10mbit")
    cli.ok("nic", "rate", "h1", "nic0", "unlimited")
    hosts = counters_of(cli)
    assert [nic["rate_bits_per_s"] for host in hosts for nic in host["nics"]] == [4 * 10**7, 10**7, None, 4 * 10**7]
    assert cli.ok("selftest").splitlines()[-1] == "selftest: ok, 4 NICs"
    limits = [sorted(limits_of(cli, host)) for host in (0, 1)]
    assert limits == [[10**7, 4 * 10**7], [4 * 10**7]]


def limits_of(cli, host_index):
    """Bits per second of every limit that the kernel has in a host."""
    lab = read_lab(cli)
    read_end, write_end = os.pipe()

    def look():
        with network.open_netlink(lab, lab.hosts[host_index]) as netlink:
            for queue in netlink.get_qdiscs():
                if queue.get_attr("TCA_KIND") == "tbf":
                    rate = queue.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")["rate"] * 8
                    os.write(write_end, f"{rate} ".encode())

    in_a_child(look)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        return [int(word) for word in pipe.read().split()]


def test_two_labs_run_side_by_side_with_the_same_addresses(cli):
    cli.start("--name", "one", "--hosts", "2", "--nics", "1", "--rate", "40mbit")
    cli.start("--name", "two", "--hosts", "2", "--nics", "1", "--rate", "10mbit")
    assert [line.partition(":")[0] for line in cli.ok("list").splitlines()] == ["one", "two"]
    assert json.loads(cli.ok("counters", "--name", "one", "--json"))["hosts"][0]["tx_bytes"] == 0
    cli.ok("down", "--name", "two")
    assert cli.ok("list").startswith("one:")


def test_a_killed_holder_leaves_nothing_and_its_name_is_free_again(cli, state_directory):
    cli.start("--hosts", "2", "--nics", "1")
    pid = holder_pid(cli)
    namespace = os.stat(f"/proc/{pid}/ns/net").st_ino
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: state.start_time(pid) is None)
    assert namespace not in own_namespaces()
    assert cli.ok("list") == ""
    assert os.listdir(state_directory) == []
    cli.start("--hosts", "2", "--nics", "1")


def own_namespaces():
    """The network namespaces of all processes that may be looked at."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.add(os.stat(f"/proc/{name}/ns/net").st_ino)
            except OSError:
                continue  # it has ended meanwhile, or belongs to somebody else
    return found


def test_a_crash_half_way_through_up_leaves_nothing(cli, state_directory):
    def build_and_die(lab, make_namespace):
        network.build(lab, make_namespace)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match="while it was building"):
        start_or_skip(plan.plan_lab("default", 2, 2, None), build_and_die)
    assert cli.ok("list") == ""
    assert os.listdir(state_directory) == []


def start_or_skip(lab, build):
    try:
        holder.start(lab, build)
    except ForbiddenError as error:
        pytest.skip(str(error))


def test_a_lab_whose_caller_dies_while_it_builds_ends_itself(cli, state_directory):
    def build_slowly(lab, make_namespace):
        time.sleep(0.5)
        return network.build(lab, make_namespace)

    caller = os.fork()
    if caller == 0:
        try:
            holder.start(plan.plan_lab("default", 2, 1, None), build_slowly)
        finally:
            os._exit(0)
    time.sleep(0.2)
    os.kill(caller, signal.SIGKILL)
    os.waitpid(caller, 0)
    time.sleep(1.5)
    assert not state_directory.exists() or os.listdir(state_directory) == []


def test_down_names_what_still_runs_inside_and_leaves_it_alone(cli):
    cli.start("--hosts", "1", "--nics", "1")
    inside = subprocess.Popen([*cli.command, "run", "--host", "0", "--", "sleep", "30"], env=cli.environment)
    host = os.stat(read_lab(cli).hosts[0].net_namespace).st_ino
    wait_until(lambda: os.stat(f"/proc/{inside.pid}/ns/net").st_ino == host)
    done = cli.run("down")
    alive = inside.poll() is None
    inside.kill()
    inside.wait()
    assert alive and done.returncode == 0 and str(inside.pid) in done.stderr


def test_run_returns_the_status_and_forwards_signals(cli):
    cli.start("--hosts", "1", "--nics", "1")
    assert cli.run("run", "--host", "0", "--", "sh", "-c", "exit 7").returncode == 7
    assert cli.run("run", "--", "sh", "-c", 'test "$WEFT_LAB" = default').returncode == 0
    assert cli.run("run", "--", "no-such-command").returncode == 127
    running = subprocess.Popen([*cli.command, "run", "--host", "0", "--", "sleep", "30"], env=cli.environment)
    wait_until(lambda: open(f"/proc/{running.pid}/comm").read() == "sleep\n")
    running.terminate()
    assert running.wait(timeout=60) == -signal.SIGTERM


def test_run_with_a_pe_count_becomes_weft_run(cli, tmp_path):
    fake = tmp_path / "weft-run"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    cli.environment["WEFT_RUN"] = str(fake)
    cli.start("--hosts", "1", "--nics", "1")
    assert cli.ok("run", "-n", "8", "--", "program", "-x") == "--lab default -n 8 program -x\n"


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["up"], "is up already"),
        (["up", "--name", "b", "--rate", "quick"], "not a rate"),
        (["up", "--name", "b", "--hosts", "0"], "1 to 255 hosts"),
        (["up", "--name", "b", "--nics", "300"], "room for 1 to 254"),
        (["down", "--name", "b"], "no lab 'b'"),
        (["counters", "--name", "b"], "there is 'default'"),
        (["nic", "down", "5", "0"], "no host '5'"),
        (["nic", "down", "0", "nic9"], "no NIC 'nic9'"),
        (["nic", "rate", "0", "0", "1parsec"], "not a rate"),
        (["run"], "after --"),
        (["run", "--host", "0", "-n", "2", "--", "x"], "give one of them"),
        (["selftest"], "needs two hosts"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_two(one_host_lab, arguments, says):
    done = one_host_lab.run(*arguments)
    assert done.returncode == UserError.exit_status
    assert says in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def one_host_lab(tmp_path_factory):
    made = Cli(tmp_path_factory.mktemp("labs"))
    made.start("--hosts", "1", "--nics", "1")
    yield made
    made.end_all()


def test_refused_namespaces_give_status_three_and_name_the_settings():
    message = str(namespaces.forbidden("user namespace", PermissionError(1, "Operation not permitted")))
    assert ForbiddenError.exit_status == 3
    assert "apparmor_restrict_unprivileged_userns" in message and "unprivileged_userns_clone" in message


def test_counters_table_shows_every_nic(cli):
    cli.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    table = cli.ok("counters")
    assert table.count("40mbit") == 4 and table.count("max/mean") == 2
