"""Every way in which Slurm's users start a job: the PEs of one launcher are one job, and their bytes are right."""
import shutil

import pytest
from slurm_cluster import HOST_COUNT

PE_COUNT = 2 * HOST_COUNT
STEP = ["-Q", "-N", HOST_COUNT, "--ntasks-per-node=2"]  # quiet: where hosts are still busy, srun says that it waits


def assert_one_job(output, method, pe_count=PE_COUNT):
    """The probe's lines say that all PEs met and that every byte was right."""
    lines = [line for line in output.splitlines() if "probe:" in line]
    for pe in range(pe_count):
        assert sum(f"PE {pe} of {pe_count} by {method}: ok" in line for line in lines) == 1, output
    assert len(lines) == pe_count, output


@pytest.fixture
def probe(bin_dir):
    return [bin_dir / "bootstrap_probe", 1000, 3]


def test_srun_with_pmix(cluster, probe):
    assert_one_job(cluster.ok("srun", "--mpi=pmix", *STEP, *probe), "pmix")


def test_srun_with_pmi2(cluster, probe):
    assert_one_job(cluster.ok("srun", "--mpi=pmi2", *STEP, *probe), "pmi")


def test_plain_srun_on_several_hosts_takes_a_secret(cluster, probe):
    assert_one_job(cluster.ok("srun", "--mpi=none", *STEP, *probe, WEFT_JOB_SECRET="of this test"), "slurm")


def test_plain_srun_on_several_hosts_without_a_secret_says_what_to_do(cluster, probe):
    status, output, _ = cluster.run("srun", "--mpi=none", *STEP, *probe)
    assert status == 3
    lines = [line for line in output.splitlines() if "probe:" in line]
    assert len(lines) == PE_COUNT
    assert all("srun --mpi=pmi2" in line and "WEFT_JOB_SECRET" in line for line in lines)


def test_plain_srun_on_one_host_needs_nothing(cluster, probe):
    assert_one_job(cluster.ok("srun", "--mpi=none", "-N1", "-n3", *probe), "slurm", 3)


def test_tasks_are_jobs_of_their_own_only_if_the_user_says_so(cluster, probe):
    output = cluster.ok("srun", "--mpi=none", *STEP, *probe, WEFT_BOOTSTRAP="single")
    assert output.count("PE 0 of 1 by single: ok") == PE_COUNT


def test_hosts_with_different_numbers_of_tasks(cluster, probe):
    for mpi, method in (("pmix", "pmix"), ("pmi2", "pmi")):
        output = cluster.ok("srun", f"--mpi={mpi}", "-N2", "-n4", "-m", "plane=3", *probe)
        assert_one_job(output, method)


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_the_whole_interface_works(cluster, bin_dir, mpi):
    output = cluster.ok("srun", f"--mpi={mpi}", *STEP, bin_dir / "api_tour", WEFT_JOB_SECRET="of this test")
    assert "every function did what it says" in output


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_a_program_may_finalize_and_initialize_again(cluster, bin_dir, mpi):
    program = [bin_dir / "openshmem_init_again", "again"]
    output = cluster.ok("srun", f"--mpi={mpi}", *STEP, *program, WEFT_JOB_SECRET="of this test")
    assert output == "again\n" * PE_COUNT
    output = cluster.ok("srun", f"--mpi={mpi}", *STEP, bin_dir / "again", 3, WEFT_JOB_SECRET="of this test")
    assert sorted(output.splitlines()) == [f"PE {pe} of {PE_COUNT}, 3 times" for pe in range(PE_COUNT)]


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_global_exit_gives_srun_its_status(cluster, bin_dir, tmp_path, mpi):
    command = ["srun", f"--mpi={mpi}", *STEP, bin_dir / "torchrun_pe", tmp_path / "up", "exit", 7]
    status, output, _ = cluster.run(*command, WEFT_JOB_SECRET="of this test")
    # PMIx_Abort lets Slurm kill the others, and srun returns the largest status of all.
    assert status in ((7, 137) if mpi == "pmix" else (7,)), output
    assert cluster.is_empty()


def test_a_batch_script(cluster, bin_dir, probe):
    script = cluster.directory / "job.sh"
    words = " ".join(map(str, probe))
    script.write_text(
        "#!/bin/bash\n"
        f"{bin_dir}/weft-info | grep -A1 ^bootstrap:\n"
        f"srun --mpi=pmi2 {words}\n"
        f"{bin_dir}/weft-run -n {PE_COUNT} {words}\n"
    )
    output = cluster.directory / "job.out"
    cluster.ok("sbatch", *STEP, "-o", output, script)
    assert cluster.is_empty()
    text = output.read_text()
    assert "bootstrap: single" in text and "srun" not in text
    steps = text.splitlines()
    assert_one_job("\n".join(line for line in steps if "pmi" in line), "pmi")
    assert_one_job("\n".join(line for line in steps if "tcp" in line), "tcp")


def test_weft_run_in_an_allocation_takes_its_nodes(cluster, bin_dir, probe):
    output = cluster.ok("salloc", "-Q", *STEP, bin_dir / "weft-run", "-n", PE_COUNT, "--", *probe)
    assert_one_job(output, "tcp")
    where = ["sh", "-c", "echo $WEFT_PE on $SLURMD_NODENAME"]
    output = cluster.ok("salloc", "-Q", *STEP, bin_dir / "weft-run", "-n", 3, "--", *where)
    assert sorted(output.splitlines()) == ["0 on h0", "1 on h0", "2 on h1"]


def test_weft_run_in_an_allocation_takes_its_tasks(cluster, bin_dir, probe):
    run = [bin_dir / "weft-run", "--", *probe]
    assert_one_job(cluster.ok("salloc", "-Q", *STEP, *run), "tcp")
    assert_one_job(cluster.ok("salloc", "-Q", "-N2", "-n3", *run), "tcp", 3)
    where = [bin_dir / "weft-run", "--", "sh", "-c", "echo $WEFT_PE on $SLURMD_NODENAME"]
    assert sorted(cluster.ok("salloc", "-Q", "-N2", *where).splitlines()) == ["0 on h0", "1 on h1"]
    output = cluster.ok("salloc", "-Q", "-N2", where[0], "--ppn", 2, *where[1:])
    assert sorted(output.splitlines()) == ["0 on h0", "1 on h0", "2 on h1", "3 on h1"]


def test_weft_run_in_an_allocation_passes_the_status_on(cluster, bin_dir):
    command = [bin_dir / "weft-run", "-n", PE_COUNT, "--", "sh", "-c", "test $WEFT_PE != 3 || exit 6"]
    status, output, _ = cluster.run("salloc", "-Q", *STEP, *command)
    assert status == 6 and "weft-run: PE 3" in output
    assert cluster.is_empty()


def test_mpirun_in_an_allocation(cluster, probe):
    if not shutil.which("mpirun"):
        pytest.skip("OpenMPI's mpirun is not installed")
    mpirun = ["mpirun", "-n", PE_COUNT, "--map-by", "ppr:2:node"]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert_one_job(cluster.ok("salloc", "-Q", *STEP, *mpirun, *probe, **allowed), "pmix")


# What torchrun's agent, one task a node, sets for each of its two workers.
TORCHRUN = """
for local in 0 1; do
  RANK=$((2 * SLURM_PROCID + local)) LOCAL_RANK=$local WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h0 MASTER_PORT=29500 \
    TORCHELASTIC_RUN_ID=test "$@" &
done
wait
"""


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_torchrun_inside_srun(cluster, probe, mpi):
    agents = ["srun", f"--mpi={mpi}", "-N", HOST_COUNT, "--ntasks-per-node=1", "bash", "-c", TORCHRUN, "torchrun"]
    assert_one_job(cluster.ok(*agents, *probe, WEFT_JOB_SECRET="of this test"), "torchrun")
