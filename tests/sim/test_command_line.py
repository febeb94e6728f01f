"""weft-sim as a user calls it: machines, calibration, and one clear line for each bad input."""
import json

import pytest

ALLTOALL = ("alltoall", "--machine", "p5.48xlarge", "--nodes", 4)


@pytest.fixture
def machine_file(tmp_path):
    def write(**changes):
        machine = {"name": "mine", "pes_per_node": 2, "nics_per_pe": 2,
                   "values": {"nic_gb_per_s": {"value": 25, "source": "data sheet"}}} | changes
        path = tmp_path / "machine.json"
        path.write_text(json.dumps(machine))
        return path
    return write


def test_every_value_of_every_machine_has_a_source(weft_sim):
    status, text, _ = weft_sim("machines")
    assert status == 0
    names = [line.split()[0] for line in text.splitlines()]
    assert {"p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "gh200", "loom"} <= set(names)
    for name in names:
        machine = json.loads(weft_sim("machines", name)[1])
        assert machine["values"]["nic_gb_per_s"]["value"] > 0
        assert all(value["source"] for value in machine["values"].values()), name


def test_a_machine_can_be_a_file(rows, machine_file):
    (row,) = rows("alltoall", "--machine", machine_file(), "--sizes", "1M")
    assert 0.6 < float(row["share_of_rails"]) <= 1


def test_three_commands_calibrate_a_machine(weft_sim, tables, tmp_path):
    bare, fitted = tmp_path / "bare.json", tmp_path / "fitted.json"
    bare.write_text(json.dumps({"name": "mine", "pes_per_node": 8, "nics_per_pe": 4,
                                "values": {"nic_gb_per_s": {"value": 12.5, "source": "data sheet"},
                                           "latency_us": {"value": 0, "source": "in the start of the call"}}}))
    bandwidths, times = tables / "put-bw-p5-nvshmem-3.6.5-with-fix.csv", tables / "alltoall-p5-4x8-nvshmem-3.5.21.csv"
    words = ("--library", "nvshmem", "--policy", "single")
    status, text, _ = weft_sim("put_bw", "--machine", bare, *words, "--calibrate", bandwidths, "--write", fitted)
    assert status == 0 and "error: mean 1.2 %" in text
    status, text, _ = weft_sim("alltoall", "--machine", fitted, "--nodes", 4, *words, "--calibrate", times, "--write", fitted)
    assert status == 0, text
    values = json.loads(fitted.read_text())["values"]
    assert values["nic_gb_per_s"]["value"] == pytest.approx(12.22, abs=0.01)
    assert values["nvshmem.proxy_ns"]["value"] == pytest.approx(749, abs=1)
    assert 0.85 < values["efficiency"]["value"] < 0.95 and "fitted to" in values["efficiency"]["source"]
    status, text, _ = weft_sim("alltoall", "--machine", fitted, "--nodes", 4, *words, "--compare", times)
    assert status == 0 and float(text.rpartition("error: mean ")[2].split()[0]) < 5


def test_a_table_that_does_not_fit_is_refused(weft_sim, tables):
    words = ("--library", "nvshmem", "--policy", "single", "--calibrate", tables / "alltoall-gh200-2x4-nvshmem-3.4.5.csv")
    status, text, errors = weft_sim("alltoall", "--machine", "p5.48xlarge", "--nodes", 16, "--rows", "scope=block", *words)
    assert status in (1, 2) and "does not fit" in errors, (status, text, errors)


def test_what_weft_perf_prints_is_a_table(weft_sim, tmp_path):
    table = tmp_path / "perf.txt"
    table.write_text("#alltoall_latency\nsize(B)      count      type       scope      latency(us)\n"
                     "2097152      65536      uint32     none      282.0\nsome other line\n")
    status, text, _ = weft_sim(*ALLTOALL, "--library", "nvshmem", "--policy", "single", "--compare", table)
    assert status == 0 and "282.000" in text


@pytest.mark.parametrize("changes, says", [
    ({"values": {}}, "has no rate: set \"nic_gb_per_s\""),
    ({"values": {"nic_gb_per_s": 25}}, 'must be {"value": NUMBER, "source"'),
    ({"values": {"nic_gbps": {"value": 1, "source": "x"}}}, 'a value "nic_gbps", which weft-sim does not know'),
    ({"pes_per_node": 0}, 'needs "pes_per_node"'),
])
def test_bad_machines(refused, machine_file, changes, says):
    assert says in refused("alltoall", "--machine", machine_file(**changes))


@pytest.mark.parametrize("words, says", [
    (("alltoall", "--machine", "p7"), "no such file, and the machines that weft-sim knows are"),
    ((*ALLTOALL, "--policy", "best"), "--policy best: use single, coupled"),
    ((*ALLTOALL, "--library", "nvshmem", "--policy", "balanced"), "NVSHMEM has no policy 'balanced'"),
    ((*ALLTOALL, "--sizes", "64Q"), "'64Q' is not a size"),
    ((*ALLTOALL, "--sizes", "1M:64K"), "begin above 0 and end no lower"),
    ((*ALLTOALL, "--slow", "nic0"), "write nic0@all:0.5"),
    ((*ALLTOALL, "--slow", "nic0@all:0"), "a factor above 0, or --fail"),
    ((*ALLTOALL, "--slow", "n9.g0.nic0:0.5"), "names a PE that does not exist"),
    ((*ALLTOALL, "--slow", "nic7@all:0.5"), "names NIC 7, and PEs have 4"),
    ((*ALLTOALL, "--fail", "n0.g9.nic0@2ms"), "a node has 8 GPUs"),
    ((*ALLTOALL, "--sample", "32,96"), "32 PEs have 24 on other nodes"),
    ((*ALLTOALL, "--sample", "8,16", "--oversubscribe", "2"), "--sample says nothing about links between leaves"),
    (("incast", *ALLTOALL[1:], "--sample", "8,16"), "--sample is for alltoall"),
    (("alltoall", "--machine", "p5.48xlarge", "--nodes", 4096), "--sample 32,96 simulates only"),
    (("alltoall", "--machine", "p5.48xlarge", "--nodes", 1), "use --nodes 2 or more"),
    (("moe", *ALLTOALL[1:], "--experts", 8), "do not give each of 32 PEs one"),
    (("moe", *ALLTOALL[1:], "--top-k", 300), "choose a --top-k from 1 to 256"),
    ((*ALLTOALL, "--compare", "/nonexistent.csv"), "cannot be read"),
    (("alltoall", "--bogus"), "weft-sim alltoall --help"),
])
def test_bad_input(refused, words, says):
    assert says in refused(*words)


def test_bandwidths_are_not_compared_with_times(refused, tables):
    assert "only put_bw can be compared" in refused(*ALLTOALL, "--compare", tables / "put-bw-p5-nvshmem-3.6.5-with-fix.csv")
