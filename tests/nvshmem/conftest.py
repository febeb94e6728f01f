"""What the tests of NVSHMEM's front door share: its prefix in the build tree, compilers, and programs built once."""
import pathlib
import shutil

import pytest

from nvshmem_runs import PROGRAMS, RING, well


@pytest.fixture(scope="session")
def prefix(bin_dir):
    """As a user finds it."""
    if not (bin_dir / "weft-nvshmem").exists():
        pytest.skip("this build has no NVSHMEM prefix")
    return pathlib.Path(well(bin_dir / "weft-nvshmem", "--prefix").strip())


@pytest.fixture(scope="session")
def cuda_include():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = pathlib.Path(nvcc).resolve().parent.parent / "include"
    return folder if (folder / "cuda_runtime.h").exists() else None


@pytest.fixture(scope="session")
def nvcc():
    """Kernels here are compiled and linked, and never run: an nvcc that can leave optimizations out does so, in a fifth of the time."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not found:
        pytest.skip("no nvcc")
    with pytest.MonkeyPatch.context() as patch:
        if "--Ofast-compile" in well(found, "--help"):  # CUDA 12.9
            patch.setenv("NVCC_APPEND_FLAGS", "-Ofc=max")
        yield found


@pytest.fixture(scope="session")
def ring_object(prefix, nvcc, tmp_path_factory):
    """The kernels of ring.cu as relocatable device code, for a program or a shared library."""
    made = tmp_path_factory.mktemp("ring") / "ring.o"
    well(nvcc, "-std=c++17", "-arch=sm_90", "-Xcompiler=-Wall,-fPIC", "-rdc=true", f"-I{prefix}/include", "-c", RING, "-o", made, timeout=300)
    return made


@pytest.fixture(scope="session")
def compiled(prefix, tmp_path_factory):
    """compiled(name, flag...): a program of programs/, by g++ and nothing but the prefix."""
    made = {}

    def build(name, *flags):
        if (name, flags) not in made:
            program = tmp_path_factory.mktemp(name) / name
            well("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", *flags, PROGRAMS / f"{name}.cpp", f"-I{prefix}/include", f"-L{prefix}/lib",
                 "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-ldl", "-o", program)
            made[name, flags] = program
        return made[name, flags]
    return build
