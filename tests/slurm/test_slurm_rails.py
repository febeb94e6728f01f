"""A job of srun uses the NICs of its hosts as one of weft-run does: all of them, evenly, by the kernel's own counters."""
import json

import pytest
from slurm_cluster import HOST_COUNT, running_cluster

NIC_COUNT = 4
RATE = "100mbit"
STEP = ["-N", HOST_COUNT, "--ntasks-per-node=2"]
# Fixed numbers of steps and bytes, so that two jobs can be compared.
PERF = ["alltoall_latency", "-b", "1M", "-e", "1M", "-n", 16, "-w", 4, "--nic-rate", RATE, "--json"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    yield from running_cluster(tmp_path_factory.mktemp("wide"), NIC_COUNT, RATE)


def balance_of(output):
    return next(row for row in map(json.loads, output.splitlines()) if row.get("kind") == "balance")


def of_host(balance, host, counter):
    return [nic[counter] for nic in balance["nics"] if nic["node"] == host]


def assert_even(balance):
    for host in range(HOST_COUNT):
        for direction in ("tx", "rx"):
            counts = of_host(balance, host, f"{direction}_bytes_kernel")
            assert len(counts) == NIC_COUNT
            assert max(counts) <= 1.05 * sum(counts) / NIC_COUNT, balance["nics"]


@pytest.fixture(scope="module")
def by_weft_run(wide, bin_dir):
    perf = map(str, [bin_dir / "weft-perf", *PERF])
    wide.cli.environment["WEFT_RUN"] = str(bin_dir / "weft-run")
    balance = balance_of(wide.cli.ok("run", "-n", str(2 * HOST_COUNT), "--", *perf))
    assert_even(balance)
    return balance


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_all_nics_of_both_hosts_carry_the_same(wide, bin_dir, by_weft_run, mpi):
    perf = [bin_dir / "weft-perf", *PERF]
    output = wide.ok("srun", f"--mpi={mpi}", *STEP, *perf, WEFT_JOB_SECRET="of this test", WEFT_HEAP_SIZE="64M")
    balance = balance_of(output)
    assert_even(balance)
    assert balance["share_of_rails"] > 0
    for host in range(HOST_COUNT):
        for counter in ("tx_bytes_library", "rx_bytes_library"):
            sent = sum(of_host(balance, host, counter))
            assert sent == pytest.approx(sum(of_host(by_weft_run, host, counter)), rel=0.02)
