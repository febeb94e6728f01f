"""Programs of NVSHMEM's host calls on symmetric memory of the host: every family, set-up by launcher, MPI and unique id,
in several shapes, and what is wrong is said in one sentence. No GPU."""
import os
import shutil
import socket
import subprocess

import pytest

from nvshmem_runs import HOST_MEMORY, PROGRAMS, run, well


@pytest.mark.parametrize("pes, options", [
    (1, []), (2, []), (4, []), (3, []), (2, ["--node-size", "1"]), (4, ["--node-size", "1"]), (4, ["--node-size", "2"])])
def test_every_family_of_host_calls(compiled, prefix, pes, options):
    text = well(prefix / "bin" / "nvshmrun", "-np", pes, *options, compiled("host_tour"), WEFT_PROVIDER="tcp", **HOST_MEMORY)
    assert text == "all well\n"


def test_p2p_off_makes_each_pe_a_node_and_leaves_the_machine_whole(compiled, prefix):
    text = well(prefix / "bin" / "nvshmrun", "-n", 2, "-genv", "NVSHMEM_DISABLE_P2P", "1", compiled("host_tour"), WEFT_PROVIDER="tcp", **HOST_MEMORY)
    assert text == "all well\n"


@pytest.mark.parametrize("pes, options", [(1, []), (2, []), (3, ["--node-size", "1"])])
def test_128_teams_at_a_time_and_again(compiled, prefix, pes, options):
    done = run(prefix / "bin" / "nvshmrun", "-np", pes, *options, compiled("many_teams"), WEFT_PROVIDER="tcp", **HOST_MEMORY)
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr
    assert "at most 132 teams at a time, the predefined ones included" in done.stderr


@pytest.mark.parametrize("pes, options", [(1, []), (2, []), (5, []), (4, ["--node-size", "1"]), (5, ["--node-size", "2"])])
def test_teams_of_any_pes_by_a_unique_id(compiled, prefix, pes, options):
    done = run(prefix / "bin" / "nvshmrun", "-np", pes, *options, compiled("teams_by_id"), WEFT_PROVIDER="tcp", **HOST_MEMORY)
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr
    for text in ("nvshmemx_team_init: needs a unique id", "nvshmemx_team_init: 0x0 is not what nvshmemx_team_get_uniqueid made",
                 "nvshmemx_team_init: index 1 in a team of 1 PEs; use 0 to 0"):
        assert text in done.stderr


@pytest.mark.parametrize("launcher", [["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"]])
def test_under_mpirun(compiled, launcher):
    if not shutil.which(launcher[0]):
        pytest.skip(f"no {launcher[0]}")
    assert well(*launcher, compiled("host_tour"), **HOST_MEMORY) == "all well\n"


def test_by_what_torchrun_sets(compiled):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"}
    ranks = [subprocess.Popen([compiled("host_tour")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | HOST_MEMORY | common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
    outputs = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert sorted(out for out, _ in outputs) == ["", "all well\n"]


@pytest.mark.parametrize("worlds, pes, rounds", [(1, 1, 1), (1, 4, 3), (8, 2, 1)])
def test_by_unique_id_with_uninitialized_structs(compiled, worlds, pes, rounds):
    assert well(compiled("by_id"), worlds, pes, rounds, **HOST_MEMORY) == "all well\n"


def test_by_the_communicator_of_open_mpi(compiled):
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun")
    done = run("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", compiled("by_mpi"), "libmpi.so.40", **HOST_MEMORY)
    if done.stdout.startswith("no MPI"):
        pytest.skip("no libmpi.so.40")
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr


def test_by_a_communicator_that_is_an_int(compiled, tmp_path):
    well("gcc", "-shared", "-fPIC", PROGRAMS / "ints_as_handles.c", "-o", tmp_path / "libmpi.so.12")
    assert well(compiled("by_mpi"), tmp_path / "libmpi.so.12", **HOST_MEMORY) == "all well\n"


def test_a_launchers_variables_do_not_matter_to_a_unique_id(compiled):
    launched = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "7", "PMI_RANK": "3", "PMI_SIZE": "9", "SLURM_PROCID": "1", "SLURM_NTASKS": "5",
                "RANK": "1", "WORLD_SIZE": "4"}
    assert well(compiled("by_id"), 1, 2, 1, **launched, **HOST_MEMORY) == "all well\n"


def test_a_job_begins_again_a_hundred_times(compiled):
    assert well(compiled("by_id"), 1, 2, 100, **HOST_MEMORY) == "all well\n"


@pytest.mark.parametrize("case, text", [
    ("before_init", "nvshmem_malloc: called before nvshmem_init or nvshmemx_init_attr"),
    ("no_pe", "nvshmem_putmem: there is no PE 7"),
    ("no_team", "nvshmem_int_sum_reduce: not a team"),
    ("not_symmetric", "nvshmem_putmem: address 0x"),
    ("no_comparison", "nvshmem_signal_wait_until: invalid comparison 17"),
    ("with_shmem", "nvshmemx_init_attr: NVSHMEMX_INIT_WITH_SHMEM is not there"),
    ("no_mpi", "nvshmemx_init_attr: this process has no MPI library"),
    ("half", "nvshmem_half_sum_reduce: half and bfloat16 are reduced on GPUs alone"),
])
def test_bad_input_is_said_by_the_name_that_was_called(compiled, case, text):
    done = run(compiled("bad_input"), case, **HOST_MEMORY)
    lines = [line for line in done.stderr.splitlines() if "weft_global_exit(1): this PE ends the job" not in line]
    assert text in lines[0] and len(lines) == 1 and "weft_" not in lines[0], done.stderr
    assert done.returncode == 1


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_the_reason_is_said(compiled):
    done = run(compiled("bad_input"), "needs_gpu")
    assert done.returncode == 1 and "nvshmem_calloc: " in done.stderr and ("GPU" in done.stderr or "CUDA" in done.stderr)


@pytest.mark.parametrize("value", ["large", "12x", "-1"])
def test_a_wrong_size_ends_the_program(compiled, value):
    done = run(compiled("host_tour"), **HOST_MEMORY | {"NVSHMEM_SYMMETRIC_SIZE": value})
    assert done.returncode == 1 and f"NVSHMEM_SYMMETRIC_SIZE={value} is not a size" in done.stderr


def test_unknown_variables_never_fail_and_are_named_on_request(compiled):
    unknown = {"NVSHMEM_IB_ENABLE_IBGDA": "1", "NVSHMEM_QP_DEPTH": "1024", "NVSHMEM_NEVER_HEARD_OF": "x"}
    assert run(compiled("by_id"), **unknown, **HOST_MEMORY).stderr == ""
    done = run(compiled("by_id"), NVSHMEM_INFO="1", **unknown, **HOST_MEMORY)
    assert all(name in done.stderr for name in unknown) and "ignored" in done.stderr and done.stdout == "all well\n"


def test_wefts_own_variables_go_before(compiled):
    done = run(compiled("by_id"), NVSHMEM_INFO="1", WEFT_HEAP_SIZE="32M", **HOST_MEMORY)
    assert "set by WEFT_ variables, which go before NVSHMEM_ ones: WEFT_HEAP_SIZE" in done.stderr and done.returncode == 0


def test_a_binary_with_the_vendors_device_library_gets_a_sentence(prefix, tmp_path):
    (tmp_path / "x.c").write_text("int nvshmemid_hostlib_init_attr(int); int main(void) { return nvshmemid_hostlib_init_attr(0) == 0; }\n")
    well("cc", tmp_path / "x.c", f"-L{prefix}/lib", "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-o", tmp_path / "x")
    done = run(tmp_path / "x")
    assert done.returncode == 0 and "rebuild it against Weft's headers" in done.stderr
