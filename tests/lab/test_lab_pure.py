"""The parts of the lab that need no namespace: rates, addresses, state files, the self-test's plan."""

import json
import os
import stat

import pytest
from weft_lab import cli, holder, plan, rates, selftest, state
from weft_lab.errors import UserError
from weft_lab.nic_counters import max_over_mean


@pytest.mark.parametrize(
    "text, bits_per_s",
    [("40mbit", 40_000_000), ("800kbit", 800_000), ("2.5gbit", 2_500_000_000), ("100000", 100_000), ("10Mbit", 10**7)],
)
def test_a_rate_in_tc_units_is_read(text, bits_per_s):
    assert rates.parse_rate(text) == bits_per_s


@pytest.mark.parametrize("bits_per_s", [None, 10**7, 2_500_000_000, 800_000, 123_456, 1_234_567])
def test_a_formatted_rate_reads_back_to_itself(bits_per_s):
    assert rates.parse_rate(rates.format_rate(bits_per_s)) == bits_per_s


@pytest.mark.parametrize("text", ["", "fast", "-1mbit", "40 mbit", "40mbyte", "1e9", "1bit", "0", "100gbit"])
def test_a_bad_rate_is_a_user_error_that_shows_a_good_one(text):
    with pytest.raises(UserError, match="bit"):
        rates.parse_rate(text)


@pytest.mark.parametrize("bits_per_s", [100_000, 10**7, 4 * 10**7, 25 * 10**7, 10**10])
def test_a_bucket_always_holds_a_frame_and_its_queue_a_bucket(bits_per_s):
    bucket = rates.token_bucket(bits_per_s)
    assert 1514 <= bucket.burst_bytes <= bucket.queue_bytes


def test_addresses_macs_and_port_names_are_unique_in_the_largest_labs():
    for hosts, nics in ((255, 4), (4, 254), (31, 33)):
        lab = plan.plan_lab("a", hosts, nics, None)
        for attribute in ("address", "mac", "port_name"):
            assert len({getattr(nic, attribute) for nic in lab.nics()}) == hosts * nics
        # IFNAMSIZ is 16 with the final zero (netdevice(7)).
        assert all(len(nic.port_name) < 16 for nic in lab.nics())


@pytest.mark.parametrize("hosts, nics", [(0, 4), (-1, 4), (256, 1), (2, 0), (2, 255), (64, 16)])
def test_a_lab_that_does_not_fit_is_a_user_error(hosts, nics):
    with pytest.raises(UserError):
        plan.plan_lab("a", hosts, nics, None)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a" * 64, "a b"])
def test_a_name_that_cannot_be_a_file_is_a_user_error(name):
    with pytest.raises(UserError):
        plan.check_name(name)


def test_hosts_and_nics_are_found_by_index_and_by_name():
    lab = plan.plan_lab("a", 2, 3, None)
    assert plan.find_host(lab, "1") is plan.find_host(lab, "h1") is lab.hosts[1]
    assert plan.find_nic(lab.hosts[1], "2") is plan.find_nic(lab.hosts[1], "nic2") is lab.hosts[1].nics[2]
    with pytest.raises(UserError, match="h0 to h1"):
        plan.find_host(lab, "2")
    with pytest.raises(UserError, match="nic0 to nic2"):
        plan.find_nic(lab.hosts[0], "nic3")


def living_lab(name="a"):
    """A lab whose holder is this very process."""
    lab = plan.plan_lab(name, 2, 2, 10**7)
    lab.holder_pid, lab.holder_start_time = os.getpid(), state.start_time("self")
    return lab


def test_a_state_file_reads_back_to_the_same_lab(state_directory):
    lab = living_lab()
    lab.user_namespace, lab.switch_namespace = "/proc/1/ns/user", "/proc/1/fd/5"
    state.write(lab, replace=False)
    assert state.find("a") == lab
    assert stat.S_IMODE(os.stat(state_directory).st_mode) == 0o700
    assert os.listdir(state_directory) == ["a.json"]


def test_the_state_file_has_the_documented_members(state_directory):
    state.write(living_lab(), replace=False)
    document = json.loads((state_directory / "a.json").read_text())
    assert document["hosts"][1]["nics"][0] == {
        "index": 0,
        "name": "nic0",
        "address": "10.88.1.1",
        "prefix": 16,
        "mac": "02:57:45:46:01:00",
        "rate_bits_per_s": 10**7,
    }
    members = "version name holder_pid holder_start_time user_namespace switch_namespace hosts slurm"
    assert list(document) == members.split()


def test_a_second_state_file_of_the_same_name_is_refused(state_directory):
    state.write(living_lab(), replace=False)
    with pytest.raises(FileExistsError):
        state.write(living_lab(), replace=False)
    assert os.listdir(state_directory) == ["a.json"]


def test_a_recycled_holder_pid_makes_the_state_file_stale(state_directory):
    lab = living_lab()
    lab.holder_start_time += 1
    state.write(lab, replace=False)
    assert state.labs() == []
    assert os.listdir(state_directory) == []


def test_a_lab_whose_holder_has_just_ended_has_nobody_inside():
    lab = living_lab()
    for host in lab.hosts:
        host.net_namespace = "/proc/2147483647/fd/3"
    assert holder.processes_inside(lab, lab.hosts) == []


def test_a_state_directory_of_somebody_else_is_refused(state_directory, tmp_path):
    state_directory.symlink_to(tmp_path)
    with pytest.raises(UserError, match="WEFT_LAB_DIR"):
        state.state_directory()


def test_a_damaged_state_file_is_named(state_directory):
    state.state_directory()
    (state_directory / "a.json").write_text("{")
    with pytest.raises(UserError, match="a.json"):
        state.find("a")


def test_max_over_mean_is_one_when_balanced_and_absent_without_traffic():
    assert max_over_mean([5, 5, 5, 5]) == 1.0
    assert max_over_mean([4, 0, 0, 0]) == 4.0
    assert max_over_mean([0, 0]) is None and max_over_mean([]) is None


def test_max_over_mean_relative_to_capacities():
    assert max_over_mean([5, 10, 10], [1, 2, 2]) == 1.0
    assert max_over_mean([10, 10, 10], [1, 2, 2]) == pytest.approx(5 / 3)
    assert max_over_mean([0, 0], [1, 2]) is None


@pytest.mark.parametrize("hosts, nics, mbit", [(2, 16, 40), (2, 1, 40), (3, 3, 250), (4, 2, 900)])
def test_self_test_rounds_use_each_nic_once_and_hold_every_probe(hosts, nics, mbit):
    lab = plan.plan_lab("a", hosts, nics, mbit * 10**6)
    probes = selftest.all_probes([host.nics for host in lab.hosts])
    rounds = selftest.rounds(probes)
    assert len(probes) == 2 * hosts * nics == sum(len(probes) for probes in rounds)
    for packed in rounds:
        used = [id(nic) for probe in packed for nic in (probe.subject, *probe.partners)]
        assert len(used) == len(set(used))


@pytest.mark.parametrize("words, name", [
    (["up"], "default"), (["up", "--name", "a"], "a"), (["--name", "a", "up"], "a"), (["--name", "a", "nic", "down", "0", "1"], "a"),
    (["nic", "down", "0", "1", "--name", "a"], "a"), (["--name", "a", "down", "--name", "b"], "b")])
def test_the_labs_name_may_stand_before_or_behind_the_command(words, name):
    assert cli.parser().parse_args(words).name == name
