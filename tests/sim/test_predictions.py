"""What weft-sim says of faults, leaves, patterns and large jobs; and that the limit it names is the right one."""
import pytest

P5 = ("--machine", "p5.48xlarge", "--sizes", "64K")


def share(row):
    return float(row["share_of_rails"])


@pytest.mark.parametrize("policy", ["balanced", "offset", "coupled"])
def test_a_sample_says_what_all_peers_take(rows, policy):
    words = ("alltoall", "--machine", "p5en.48xlarge", "--sizes", "64K", "--nodes", 16, "--policy", policy, "--windows", 1)
    (full,) = rows(*words)
    (sampled,) = rows(*words, "--sample", "32,96")
    assert float(sampled["latency_us"]) == pytest.approx(float(full["latency_us"]), rel=0.02)
    assert share(sampled) == pytest.approx(share(full), rel=0.02)
    assert sampled["sample"] == "from 32 and 96 of 120 peers" and full["sample"] == ""


def test_fewer_nodes_stand_for_a_thousand(rows):
    (row,) = rows("alltoall", *P5, "--nodes", 1024, "--policy", "offset", "--library", "nvshmem", "--sample", "8,24")
    assert row["sample"] == "from 8 and 24 of 8184 peers, 64 nodes"
    assert float(row["bytes"]) == 8192 * 65536
    at_best = 8184 * 65536 / 48.88 / 1e3  # us, on four NICs
    assert at_best < float(row["latency_us"]) < 1.2 * at_best


def test_a_slow_plane_is_found_and_carries_less(rows):
    words = ("alltoall", *P5, "--nodes", 4, "--window", 4, "--policy", "balanced,offset", "--slow", "nic0@all:0.5")
    balanced, offset = rows(*words, "--windows", 4, "--warm-up", 40)
    assert int(balanced["slow_rails"]) == 32
    assert share(balanced) > 1.3 * share(offset)
    assert offset["limit"].startswith(("TX of NIC 0", "RX of NIC 0"))


def test_a_dead_nic_costs_a_timeout_of_each_peer_that_uses_it(rows):
    words = ("alltoall", *P5, "--nodes", 2, "--policy", "balanced", "--window", 64, "--windows")
    (row,) = rows(*words, 1, "--fail", "n1.g2.nic1@100us")
    assert 500e3 < float(row["latency_us"]) < 900e3, "the operations on it fail after 500 ms, and are sent again"
    assert int(row["links_down"]) >= 4, "of those who sent to it, to each of their NICs"
    (after,) = rows(*words, 40, "--fail", "n1.g2.nic1@100us")
    assert float(after["latency_us"]) * 40 < 8 * 500e3, "its 8 peers find out by themselves, and go on without it"


def test_a_peer_without_any_nic_is_named(weft_sim):
    status, _, errors = weft_sim("alltoall", "--machine", "gh200", "--nodes", 2, "--fail", "n1.g0.nic0@1us")
    assert status == 2 and "the simulated job does not end: PE 0 waits for a NIC to PE 4, and 0 of their 1 links are up" in errors


def test_leaves_that_are_oversubscribed_are_the_limit(rows):
    words = ("alltoall", *P5, "--nodes", 8, "--leaf", 2, "--policy", "offset")
    (free,) = rows(*words)
    (row,) = rows(*words, "--oversubscribe", 4)
    assert row["limit"].startswith(("uplink of a leaf", "downlink of a leaf"))
    assert share(row) < 0.5 * share(free)


def test_the_limit_is_named(rows):
    limits = {policy: rows("alltoall", "--machine", "p5.48xlarge", "--nodes", 4, "--sizes", "1M", "--policy", policy)[0]["limit"]
              for policy in ("single", "coupled")}
    assert limits["single"].startswith("TX of NIC 0")
    assert limits["coupled"].startswith("RX of NIC") and "its others 0 %" in limits["coupled"]
    (row,) = rows("alltoall", "--machine", "p5.48xlarge", "--nodes", 4, "--sizes", "1K")
    assert row["limit"].startswith("proxy")
    (row,) = rows("alltoall", "--machine", "p5.48xlarge", "--nodes", 4, "--library", "nvshmem", "--policy", "single", "--totals", "128")
    assert row["limit"] == "start of the call"
    (row,) = rows("alltoall", "--machine", "p5.48xlarge", "--nodes", 4, "--library", "nvshmem", "--policy", "offset", "--totals", "256M")
    assert row["limit"] == "copies to PEs of the node"


@pytest.mark.parametrize("words, worse_than", [
    (("incast",), 1), (("pairs",), 1), (("pareto", "--sizes", "1M"), 1), (("random", "--window", 4), 1),
    (("alltoall", "--shuffled"), 1), (("alltoall", "--start-apart", 50), 1)])
def test_patterns_run_and_no_policy_beats_the_nics(rows, words, worse_than):
    for row in rows(*words, "--machine", "p5.48xlarge", "--nodes", 4, "--policy", "balanced,aligned,offset,coupled,single"):
        assert 0 < share(row) <= worse_than, row


def test_routes_of_experts_follow_their_popularity(rows):
    def one(*words):
        return rows("moe", "--machine", "p5.48xlarge", "--nodes", 4, "--sizes", "7K", *words)[0]
    even, hot = one("--zipf", 0), one("--zipf", 1.2)
    assert float(hot["latency_us"]) > 1.3 * float(even["latency_us"]), "all wait for the PEs with the popular experts"
    by_token, by_node = one("--by", "token"), one("--by", "node")
    assert float(by_node["bytes"]) < float(by_token["bytes"]), "a token crosses the network once for each node"


def test_the_same_command_prints_the_same(weft_sim):
    words = ("pareto", *P5, "--nodes", 2, "--window", 4, "--seed", 7)
    assert weft_sim(*words) == weft_sim(*words)
    assert weft_sim(*words)[1] != weft_sim(*words[:-1], 8)[1]
