"""A PE that never comes, dies or leaves: the job ends in bounded time, one line names the PE, and nothing is left."""
import re

import pytest
from slurm_cluster import HOST_COUNT

TIMEOUT_S = 2
# Until the launcher has ended all tasks: Slurm waits for KillWait (2 s in the lab), PMIx searches
# for missing PEs, and the machine may be busy.
ENDING_S = 20
PE_COUNT = HOST_COUNT + 1
# Slurm ends the others when a task fails only if it is asked to.
STEP = ["--kill-on-bad-exit", "-N", HOST_COUNT, "-n", PE_COUNT]


def misbehave(cluster, bin_dir, mpi, how):
    command = ["srun", f"--mpi={mpi}", *STEP, bin_dir / "bootstrap_probe", how, 1]
    status, output, seconds = cluster.run(
        *command, WEFT_JOB_SECRET="of this test", WEFT_BOOTSTRAP_TIMEOUT=str(TIMEOUT_S)
    )
    assert status != 0, output
    assert seconds < 2 * TIMEOUT_S + ENDING_S, output
    assert cluster.is_empty()
    return output


def words(output):
    return [line for line in output.splitlines() if line.startswith("probe:")]


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
@pytest.mark.parametrize("how", ["die", "leave"])
def test_a_pe_that_is_lost_is_named(cluster, bin_dir, mpi, how):
    output = misbehave(cluster, bin_dir, mpi, how)
    if mpi == "pmix" and not words(output):
        # Slurm was faster: it ends the step when the first task fails, whichever that is, and what
        # tasks said may be lost.
        assert re.search(r"task \d+: Exited with exit code [1-9]", output), output
    else:
        assert any("PE 1" in line for line in words(output)), output


@pytest.mark.parametrize("mpi", ["pmix", "none"])
def test_a_pe_that_never_comes_is_named(cluster, bin_dir, mpi):
    output = misbehave(cluster, bin_dir, mpi, "hang")
    assert any(f"PE 1 did not come within {TIMEOUT_S} s" in line for line in words(output)), output


def test_with_pmi_the_number_of_pes_is_named_that_should_come(cluster, bin_dir):
    output = misbehave(cluster, bin_dir, "pmi2", "hang")
    assert any(f"not all of the {PE_COUNT} PEs came" in line for line in words(output)), output


def test_a_pmix_without_a_security_plugin_is_told_what_to_set(cluster, bin_dir):
    command = ["srun", "--mpi=pmix", "-N", HOST_COUNT, bin_dir / "bootstrap_probe"]
    status, output, _ = cluster.run(*command, PMIX_MCA_psec="munge")
    if status == 0:
        pytest.skip("a munged answers here")
    assert words(output) and all("set PMIX_MCA_psec=native" in line for line in words(output)), output
