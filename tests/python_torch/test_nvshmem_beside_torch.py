"""torch's wheel brings NVIDIA's NVSHMEM. An extension that is linked against Weft's prefix loads beside it, before or after."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "nvshmem" / "programs" / "extension.c"
PROGRAM = """
import ctypes, sys
path, order, mode, call = sys.argv[1:]
for which in order.split():
    if which == "torch":
        import torch
    else:
        ours = ctypes.CDLL(path, getattr(ctypes, mode))
if call == "ours_kernel":
    torch.cuda.set_device(0)
    before = torch.arange(8, device="cuda")
name = ctypes.create_string_buffer(256)
ours.ours_name(name)
assert name.value.startswith(b"Weft"), name.value
assert getattr(ours, call)() == 1
if call == "ours_kernel":
    assert before.sum().item() == 28
held = [line.split()[-1] for line in open("/proc/self/maps") if " r-xp " in line]
assert any(one.endswith("/libweft_nvshmem_host.so.3") for one in held), held
print(*{one.rsplit("/", 1)[1] for one in held if "libnvshmem_host" in one})
"""


@pytest.fixture(scope="module")
def prefix(bin_dir):
    if not (bin_dir / "weft-nvshmem").exists():
        pytest.skip("this build has no NVSHMEM prefix")
    return subprocess.run([bin_dir / "weft-nvshmem", "--prefix"], capture_output=True, text=True, check=True).stdout.strip()


def build(folder, prefix, *compiler):
    subprocess.run([*compiler, "-shared", f"-I{prefix}/include", SOURCE, f"-L{prefix}/lib", "-lnvshmem_host", "-o", folder / "extension.so"], check=True)
    return folder / "extension.so"


def loaded(extension, *words, **variables):
    done = subprocess.run([sys.executable, "-c", PROGRAM, extension, *words], capture_output=True, text=True, timeout=240, env=os.environ | variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
@pytest.mark.parametrize("order", ["torch ours", "ours torch"])
def test_on_memory_of_the_host(prefix, tmp_path, order, mode):
    extension = build(tmp_path, prefix, "gcc", "-fPIC", f"-Wl,-rpath,{prefix}/lib")
    theirs = loaded(extension, order, mode, "ours_job", NVSHMEM_HEAP_KIND="SYSMEM", NVSHMEM_SYMMETRIC_SIZE="16m")
    if not (pathlib.Path(torch.__file__).parent / "lib" / "libtorch_nvshmem.so").exists():
        pytest.skip("it loaded; this torch brings no NVSHMEM")
    assert theirs == "libnvshmem_host.so.3"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
@pytest.mark.parametrize("order", ["torch ours", "ours torch"])
def test_on_a_gpu(prefix, tmp_path, order, mode):
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        pytest.skip("no nvcc")
    extension = build(tmp_path, prefix, nvcc, "-x", "cu", "-std=c++17", "-arch=native", "-Xcompiler=-fPIC", "-Xlinker", f"-rpath={prefix}/lib")
    loaded(extension, order, mode, "ours_kernel", NVSHMEM_SYMMETRIC_SIZE="16m")
