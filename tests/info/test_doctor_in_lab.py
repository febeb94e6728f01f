"""weft-info --doctor between the hosts of a lab: rails that work, a cable that is pulled, a NIC that is deaf."""

import json

import pytest

NICS = 2


@pytest.fixture
def hosts(lab):
    """A lab of two hosts with two NICs each."""
    lab.start("--hosts", "2", "--nics", str(NICS))
    return lab


@pytest.fixture
def doctor(hosts, bin_dir):
    """doctor("-n", "2", "--", "--json") runs it in the lab; what comes before `--` is for weft-lab run."""

    def run(*arguments):
        split = arguments.index("--")
        return hosts.run("run", *arguments[:split], "--", str(bin_dir / "weft-info"), "--doctor", "--json",
                         *arguments[split + 1:])

    return run


def rails_of(done):
    steps = {step["name"]: step for step in json.loads(done.stdout[done.stdout.index("{"):])["steps"]}
    return steps["rails"]["findings"]


def test_two_hosts_reach_each_other_over_every_pair_of_nics(doctor):
    done = doctor("-n", "2", "--")
    assert done.returncode == 0, done.stdout + done.stderr
    across = [one["figures"] for one in rails_of(done) if "of PE 1 on" in one["text"]]
    assert [(one["nic"], one["peer_rails_reached"]) for one in across] == [("nic0", NICS), ("nic1", NICS)]


def test_a_nic_without_a_cable_is_a_problem_only_where_it_is_wanted(hosts, doctor, bin_dir):
    hosts.ok("nic", "down", "h1", "nic1")
    rest = doctor("--host", "1", "--")
    assert rest.returncode == 0, rest.stdout + rest.stderr
    assert rails_of(rest)[0]["figures"]["rail_count"] == 1
    named = hosts.run("run", "--host", "1", "--", "env", "WEFT_NICS=nic0,nic1", str(bin_dir / "weft-info"), "--doctor")
    assert named.returncode == 1
    assert "1. nic1, named in WEFT_NICS, is down" in named.stdout
    assert "-> ip link set nic1 up" in named.stdout


def test_a_nic_that_does_not_answer_is_named_and_the_others_are_tried(hosts, doctor):
    deaf = "10.88.1.2"  # nic1 of host 1: host 0 sends to an address of Ethernet that nobody has
    for nic in range(NICS):
        hosts.ok("run", "--host", "0", "--", "ip", "neigh", "replace", deaf, "lladdr", "02:00:00:00:00:99", "dev",
                 f"nic{nic}", "nud", "permanent")
    done = doctor("-n", "2", "--", "--step-limit", "24")
    assert done.returncode == 1
    problems = [one for one in rails_of(done) if one["grade"] == "problem"]
    mine = [one for one in problems if not one["text"].startswith("PE 1 on")]
    assert [one["text"] for one in mine] == [f"no rail of this PE reaches rail 1 of PE 1 ({deaf}): nothing answers"]
    assert f"ping -I nic0 {deaf}" in mine[0]["remedy"]
    worked = [one["figures"] for one in rails_of(done) if "of PE 1 on" in one["text"] and one["grade"] == "ok"]
    assert [(one["nic"], one["peer_rails_reached"], one["bytes_per_s"] > 0) for one in worked] == [
        ("nic0", 1, True), ("nic1", 1, True)]


def test_all_nics_are_tried_on_request(hosts, bin_dir):
    ask = ("run", "--host", "0", "--", "env", "WEFT_RAIL_COUNT_MAX=1", str(bin_dir / "weft-info"), "--doctor", "--json")
    assert rails_of(hosts.run(*ask))[0]["figures"]["rail_count"] == 1
    assert rails_of(hosts.run(*ask, "--all-nics"))[0]["figures"]["rail_count"] == NICS
