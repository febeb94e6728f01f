"""What the wheel for GPUs has in addition. It needs nvcc, and no GPU and no driver; the other tests of this folder run on it too."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import zipfile

import pytest

FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)


@pytest.fixture(scope="module")
def toolkit():
    """The bin folder of the CUDA toolkit, found as scripts/build_wheel finds it."""
    homes = [pathlib.Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    folders = [*(home / "bin" for home in homes), pathlib.Path("/usr/local/cuda/bin")]
    found = shutil.which("nvcc", path=os.pathsep.join([os.environ["PATH"], *map(str, folders)]))
    assert found, "nvcc is missing; install the CUDA toolkit, or set CUDA_HOME"
    return pathlib.Path(found).parent


@pytest.fixture(scope="module")
def library(environment, run):
    return run(environment / "python", "-m", "weft", "--library").strip()


def test_it_has_the_headers_for_kernels(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"weft/include/weft/device.cuh", "weft/include/weft/device/rma.cuh"} <= names


def device_code(data):
    """{("ptx" or "code", 90), ...}: what the fat binaries in a file hold. Their layout is that which fatbinary of CUDA 13 writes."""
    found = set()
    for match in re.finditer(re.escape(FATBIN_MAGIC), data):
        header_size, size = struct.unpack_from("<HQ", data, match.start() + 6)
        at = match.start() + header_size
        end = at + size
        while at < end <= len(data):
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, at)
            (architecture,) = struct.unpack_from("<I", data, at + 28)
            found.add(({1: "ptx", 2: "code"}.get(kind), architecture))
            at += entry_header + entry_size
    return found


def test_it_has_machine_code_for_hopper_and_blackwell_and_ptx_for_others(library):
    assert device_code(pathlib.Path(library).read_bytes()) == {
        ("ptx", 80), ("ptx", 90), ("code", 90), ("code", 100)}


def test_it_is_linked_to_nothing_of_cuda(library, run):
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "--dynamic", library))
    assert needed and not [name for name in needed if "cuda" in name or "nv" in name]


@pytest.mark.parametrize("flags", [[], ["-rdc=true"]], ids=["plain", "rdc"])
def test_an_nvshmem_program_with_a_kernel_builds_on_its_prefix(toolkit, environment, project, run, tmp_path, flags):
    prefix = run(environment / "weft-nvshmem", "--prefix").strip()
    run(toolkit / "nvcc", "-std=c++17", "-arch=sm_90", *flags, f"-I{prefix}/include", project / "tests" / "nvshmem" / "programs" / "ring.cu", "-o", tmp_path / "ring",
        f"-L{prefix}/lib", "-lnvshmem_host", "-lnvshmem_device", "-Xlinker", f"-rpath={prefix}/lib")
    done = subprocess.run([tmp_path / "ring"], env=os.environ | {"NVSHMEM_SYMMETRIC_SIZE": "8M"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 or "no NVIDIA driver was found" in done.stderr, done.stderr


def test_a_program_with_a_kernel_builds_as_the_documentation_says(toolkit, environment, project, run, tmp_path):
    text = (project / "docs" / "GPU.md").read_text()
    (tmp_path / "ring.cu").write_text(re.search(r"```cuda\n(.*?)```", text, re.DOTALL).group(1))
    command = re.search(r"^nvcc .* ring\.cu .*$", text, re.MULTILINE).group(0)
    folder, lib = run(environment / "python", "-m", "weft", "--pkg-config-dir", "--lib-dir").split()
    path = f"{toolkit}:{environment}:{os.environ['PATH']}"
    variables = os.environ | {"PATH": path, "PKG_CONFIG_PATH": folder, "LD_LIBRARY_PATH": lib, "WEFT_HEAP_SIZE": "8M"}
    run("sh", "-c", command, cwd=tmp_path, env=variables)
    done = subprocess.run([tmp_path / "ring"], env=variables, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        assert done.stdout == "PE 0 has the numbers of PE 0\n"
    else:
        assert done.stderr.count("\n") == 1 and "no NVIDIA driver was found" in done.stderr, done.stderr
