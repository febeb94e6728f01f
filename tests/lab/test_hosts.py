"""Jobs between two hosts whose networks administrators build in their ways: bridges for VMs, addresses on the loopback
interface, none at all; and a host that vanishes."""
import re
import sys

import hosts
import pytest

RUN = "weft-run -n 2 --timeout 100 --hosts 10.77.0.1,10.77.0.2 --ssh-command ./ssh"
TOUR = "api_tour: every function did what it says"


@pytest.fixture
def between(bin_dir, tmp_path):
    """between(network, script): on the first host, with the built programs in PATH."""
    def run(network, script):
        return hosts.run(network, f"export PATH={bin_dir}:$PATH\n{script}\n", tmp_path)

    return run


def rails(errors):
    return set(re.findall(r"rail \d+ is (\S+ \(\S+),", errors))


def test_a_bridge_over_a_nic_is_a_rail_and_one_to_containers_is_none(between):
    status, output, errors = between(hosts.BRIDGES, f"WEFT_LOG=info on hA {RUN} -- api_tour")
    assert status == 0 and TOUR in output, errors
    assert rails(errors) == {"br0 (10.77.0.1", "br0 (10.77.0.2"}


def test_a_bridge_to_containers_is_a_rail_where_it_is_named(between):
    status, output, errors = between(hosts.BRIDGES, "on hA weft-info; WEFT_NICS=docker0 on hA weft-info")
    assert status == 0, errors
    assert re.findall(r"^  (rail 0|not used) +(br0|docker0) ", output, re.MULTILINE) == [
        ("rail 0", "br0"), ("not used", "docker0"), ("not used", "br0"), ("rail 0", "docker0")], output


def test_the_doctor_leaves_out_bridges_to_containers(between):
    status, output, errors = between(hosts.BRIDGES, f"on hA {RUN} -- weft-info --doctor")
    assert "docker0" not in output, output + errors
    assert "rail 0 br0 (10.77.0.1)" in output, output + errors


@pytest.mark.parametrize(("nics", "name"), [("", "lo"), ("10.77.0.0/24", "lo"), ("10.77.0.0/24,eth0", None)])
def test_an_address_on_the_loopback_interface_is_a_rail_where_no_nic_has_one(between, nics, name):
    status, output, errors = between(hosts.ADDRESS_ON_LOOPBACK,
                                     f"WEFT_LOG=info WEFT_NICS={nics} on hA {RUN} -- api_tour")
    if name is None:
        assert "no NIC, address or network 'eth0' here; there are: lo (127.0.0.1), " in errors
        return
    assert status == 0 and TOUR in output, errors
    assert rails(errors) == {f"{name} (10.77.0.{i}" for i in (1, 2)}


def test_a_network_names_the_nics_with_an_address_in_it(between):
    more = "ip -n hA addr add 10.88.0.1/24 dev eth0; ip -n hB addr add 10.88.0.2/24 dev eth0\n"
    status, output, errors = between(hosts.PLAIN + more, f"WEFT_LOG=info WEFT_NICS=10.88.0.0/16 on hA {RUN} -- api_tour")
    assert status == 0 and TOUR in output, errors
    assert rails(errors) == {"eth0 (10.88.0.1", "eth0 (10.88.0.2"}


def test_two_machines_on_127_0_0_1_fail_at_once_and_say_so(between):
    status, _, errors = between("", f"on hA {RUN} --rendezvous unix:/run/rendezvous -- api_tour")
    assert status not in (0, 124)
    assert re.search(r"the only rail of this PE \([01]\) is lo with the address 127\.0\.0\.1, which PE [01] on \S+ cannot reach; "
                     "bring a NIC up", errors), errors
    assert "was not reached" not in errors


def test_a_host_that_vanishes_does_not_keep_a_job_from_its_end(between):
    serve = f"on hB {sys.executable} {hosts.HERE / 'ssh_stand_in.py'} --serve >/dev/null 2>&1 & sleep 1\n"
    script = serve + """
on hA weft-run -n 2 --hosts localhost,10.77.0.2 --rendezvous 10.77.0.1:0 --ssh-command ./ssh-tcp --timeout 20 --grace 0.3 -- \\
  sh -c 'touch up.$WEFT_PE; exec sleep 1000' & job=$!
while kill -0 $job && ! { [ -e up.0 ] && [ -e up.1 ]; }; do sleep 0.1; done
ip -n hB link set eth0 down
status=0; wait $job || status=$?
ip netns pids hB | xargs kill -9
exit $status
"""
    status, output, errors = between(hosts.PLAIN, script)
    assert status == 124, output + errors
    assert "did not end within 20 s (--timeout); PE" in errors
    assert re.search(r"'10\.77\.0\.2' did not end PE 1 within 5\.3 s; they may still run there", errors), errors
