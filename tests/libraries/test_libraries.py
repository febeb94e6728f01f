"""One binary for all sites: libfabric and libpmix are found at run time, and their lack is said in one line."""
import os
import pathlib
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from clean_run import run

OWN_LIBRARIES = ("libfabric", "libpmix")


@pytest.mark.parametrize("file", ["lib/libweft.so", "lib/libweft_moe.so", "bin/weft-run", "bin/weft-info"])
def test_nothing_is_linked_to_libfabric_or_libpmix(build_dir, file):
    text = subprocess.run(["readelf", "--dynamic", build_dir / file], text=True, capture_output=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", text)
    assert needed
    assert not [name for name in needed if name.startswith(OWN_LIBRARIES)]
    assert "pmix" not in " ".join(re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", text)), text


def test_weft_info_names_the_files_and_their_versions(bin_dir):
    text = run(bin_dir / "weft-info").stdout
    assert re.search(r"libfabric \d+\.\d+: .*\n  opened: /\S*libfabric\.so\.1\n", text), text
    assert re.search(r"libpmix: /\S*libpmix\.so\.2 \(.*\d\.\d", text), text


def test_the_loaders_path_decides(bin_dir, newer):
    text = run(bin_dir / "weft-info", LD_LIBRARY_PATH=str(newer)).stdout
    assert "libfabric 2.5: rails use tcp;" in text
    assert f"opened: {newer}/libfabric.so.1" in text
    assert f"libpmix: {newer}/libpmix.so.2 (OpenPMIx 5.0.11" in text


def test_the_settings_name_files(bin_dir, newer):
    text = run(bin_dir / "weft-info", WEFT_LIBFABRIC=f"{newer}/libfabric.so.1",
               WEFT_LIBPMIX=f"{newer}/libpmix.so.2").stdout
    assert f"opened: {newer}/libfabric.so.1" in text
    assert f"libpmix: {newer}/libpmix.so.2 (OpenPMIx 5.0.11" in text


def size_of_rxm_buffers(*command, **variables):
    """As libfabric logs it when it starts; None if nobody has set it."""
    text = run(*command, FI_LOG_LEVEL="info", FI_LOG_PROV="ofi_rxm", **variables).stdout
    assert "ofi_rxm:core" in text, text
    found = re.search(r"var buffer_size=(\d+)", text)
    return int(found.group(1)) if found else None


def is_before_native_tcp(bin_dir):
    major, minor = re.search(r"libfabric (\d+)\.(\d+): ", run(bin_dir / "weft-info").stdout).groups()
    return (int(major), int(minor)) < (1, 18)


class TestBuffersOfRxm:
    @pytest.fixture(autouse=True)
    def old(self, bin_dir):
        if not is_before_native_tcp(bin_dir):
            pytest.skip("this system's libfabric has native tcp endpoints")

    def test_an_old_libfabric_is_started_with_smaller_ones(self, bin_dir):
        assert size_of_rxm_buffers(bin_dir / "weft-info") == 8192

    def test_the_users_choice_stands(self, bin_dir):
        assert size_of_rxm_buffers(bin_dir / "weft-info", FI_OFI_RXM_BUFFER_SIZE="32768") == 32768

    def test_they_stay_as_they_are_with_a_newer_libfabric(self, bin_dir, newer):
        assert size_of_rxm_buffers(bin_dir / "weft-info", LD_LIBRARY_PATH=str(newer)) is None

    def test_they_stay_as_they_are_on_a_machine_with_rdma_devices(self, bin_dir, tmp_path):
        (tmp_path / "infiniband" / "mlx5_0").mkdir(parents=True)
        script = f'mount --bind {tmp_path} /sys/class && exec "$@"'
        assert size_of_rxm_buffers(*own_mounts(), "sh", "-c", script, "sh", bin_dir / "weft-info") is None


def own_mounts():
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def two_nodes(bin_dir, *words, **variables):
    return run(bin_dir / "weft-run", "-n", 2, *words, bin_dir / "api_tour", WEFT_NODE_SIZE="1", WEFT_NICS="lo",
               WEFT_HEAP_SIZE="8M", **variables)


def test_two_nodes_over_the_newer_libfabric(bin_dir, newer):
    done = two_nodes(bin_dir, LD_LIBRARY_PATH=str(newer))
    assert done.returncode == 0, done.stdout
    assert "every function did what it says" in done.stdout


@pytest.mark.parametrize("file, reason", [
    ("/nowhere/libfabric.so.1", "No such file"), ("libm.so.6", "this is not libfabric")])
def test_a_file_that_does_not_serve_is_named_with_the_reason(bin_dir, file, reason):
    done = two_nodes(bin_dir, WEFT_LIBFABRIC=file)
    assert done.returncode != 0
    assert re.search(f"WEFT_LIBFABRIC={file}: .*{reason}", done.stdout), done.stdout


def test_a_libpmix_that_does_not_serve_is_named_with_the_reason(bin_dir):
    done = run(bin_dir / "api_tour", WEFT_LIBPMIX="/nowhere/libpmix.so.2", PMIX_RANK="0", PMIX_NAMESPACE="job")
    assert done.returncode != 0
    assert re.search(r"WEFT_LIBPMIX=/nowhere/libpmix.so.2: .*No such file", done.stdout), done.stdout


# A hook of a container engine puts the host's library over the image's.
def test_a_library_that_was_replaced_is_the_one_used(bin_dir, newer, tmp_path):
    found = run(bin_dir / "weft-info").stdout
    file = pathlib.Path(re.search(r"opened: (\S+)", found).group(1)).resolve()
    script = f'mount --bind {newer}/libfabric.so.1 {file} && exec "$@"'
    text = run(*own_mounts(), "sh", "-c", script, "sh", bin_dir / "weft-info", LD_LIBRARY_PATH=f"{newer}/../..").stdout
    assert "libfabric 2.5: " in text, text
    assert f"opened: {newer}" not in text


def free_port():
    """The port behind is the one that PE 0 takes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1] - 1


class TestASystemWithoutBoth:
    def test_weft_info_says_what_was_tried(self, bare):
        done = bare.run("/bin/weft-info")
        assert done.returncode == 0, done.stdout
        assert "libfabric: none could be opened, so PEs reach only those of their own node" in done.stdout
        assert "refused: libfabric.so.1: cannot open shared object file" in done.stdout
        assert "libpmix: none could be opened; only launchers with PMIx need it" in done.stdout

    def test_one_node_works(self, bare):
        done = bare.run("/bin/weft-run", "-n", 2, "/bin/api_tour", WEFT_HEAP_SIZE="8M")
        assert done.returncode == 0, done.stdout
        assert "every function did what it says" in done.stdout

    def test_two_nodes_give_one_line(self, bare):
        done = bare.run("/bin/weft-run", "-n", 2, "/bin/api_tour", WEFT_NODE_SIZE="1", WEFT_HEAP_SIZE="8M")
        assert done.returncode != 0
        said = [line for line in done.stdout.splitlines() if "libfabric" in line]
        assert said, done.stdout
        assert all("none could be opened" in line and "WEFT_LIBFABRIC" in line for line in said), done.stdout

    def test_pes_meet_by_tcp_though_no_file_names_localhost(self, bare):
        common = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": "test", "WEFT_JOB_SECRET": "of this test",
                  "WEFT_HEAP_SIZE": "8M"}
        with ThreadPoolExecutor() as pool:
            jobs = [pool.submit(bare.run, "/bin/api_tour", RANK=str(rank), **common) for rank in range(2)]
        for done in (job.result() for job in jobs):
            assert done.returncode == 0, done.stdout

    def test_the_doctor_says_what_to_do(self, bare):
        text = bare.run("/bin/weft-info", "--doctor").stdout
        assert "libfabric cannot be opened" in text and "install libfabric" in text, text

    def test_a_launcher_with_pmix_is_refused_with_what_is_missing(self, bare):
        done = bare.run("/bin/api_tour", PMIX_RANK="0", PMIX_NAMESPACE="job", OMPI_COMM_WORLD_SIZE="2")
        assert done.returncode != 0
        assert "OMPI_COMM_WORLD_SIZE=2" in done.stdout and "libpmix cannot be opened" in done.stdout, done.stdout
