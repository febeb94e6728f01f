"""What compilers that work at run time need: headers that NVRTC compiles, the device library as LTO IR (nvJitLink) and as LLVM
bitcode with every name that kernels may call, and that it links into kernels of Triton and of numba. No GPU: machine code is
made and looked at."""
import os
import re
import shutil
import sys

import pytest

import test_names
from nvshmem_runs import run, well
from run_time_compilers import link, nvrtc, open_library, symbols

STATE_BYTES = "88"
QUERIES = """nvshmem_my_pe nvshmem_n_pes nvshmem_ptr nvshmemx_mc_ptr nvshmem_team_my_pe nvshmem_team_n_pes nvshmem_team_translate_pe nvshmem_fence
    nvshmem_quiet nvshmem_global_exit""".split()
EACH_FAMILY = """
extern "C" __global__ void each_family(int* words, uint64_t* signal, float* reals, __half* halves) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  nvshmem_int_p(words, nvshmem_team_my_pe(NVSHMEM_TEAM_SHARED), next);
  nvshmemx_putmem_signal_nbi_block(words, words + 8, 64, signal, 1, NVSHMEM_SIGNAL_ADD, next);
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
  nvshmem_int_iput(words, words, 1, 2, 3, next);
  words[1] = nvshmem_int_g(words, next) + nvshmem_int_atomic_fetch_add(words, 1, next) + nvshmem_int_test(words, NVSHMEM_CMP_EQ, 1);
  nvshmem_fence();
  nvshmem_quiet();
  nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, reals, reals + 8, 8);
  nvshmemx_half_max_reduce_warp(NVSHMEM_TEAM_WORLD, halves, halves + 8, 8);
  nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, words, words + 8, 4);
  nvshmemx_barrier_all_block();
}
"""


@pytest.fixture(scope="module")
def rtc(cuda_include):
    return open_library(cuda_include, "libnvrtc") or pytest.skip("no NVRTC")


@pytest.fixture(scope="module")
def linker(cuda_include):
    found = open_library(cuda_include, "libnvJitLink") or pytest.skip("no nvJitLink")
    return lambda *arguments: link(found, cuda_include, *arguments)


@pytest.fixture(scope="module")
def library(prefix):
    """library("bc")"""
    def find(kind):
        file = prefix / "lib" / f"libnvshmem_device.{kind}"
        return file if file.exists() else pytest.skip(f"this build has no {file.name}")
    return find


@pytest.fixture(scope="module")
def llvm():
    """A tool of LLVM, of a version that reads what the build's clang wrote."""
    def find(name):
        for version in ("22", "21", "20", "19"):
            if shutil.which(f"{name}-{version}"):
                return f"{name}-{version}"
        return pytest.skip(f"no {name}-19 or later")
    return find


def includes(prefix, cuda_include):
    return [f"-I{prefix}/include", f"-I{cuda_include}", f"-I{cuda_include}/cccl"]


def test_nvrtc_compiles_a_kernel_with_each_family(rtc, prefix, cuda_include, tmp_path):
    source = "#include <nvshmem.h>\n#include <nvshmemx.h>\n" + EACH_FAMILY
    cubin = nvrtc(rtc, source, "--gpu-architecture=sm_90", "-std=c++17", *includes(prefix, cuda_include))
    found = symbols(cubin, tmp_path, well)
    assert [line[2] for line in found] == [STATE_BYTES]


def test_nvrtc_compiles_calls_of_weft_itself(rtc, prefix, cuda_include, tmp_path):
    source = """#include <weft/device.cuh>
        __global__ void ring(int* word) { weft::device::p(word, weft::device::pe(), (weft::device::pe() + 1) % weft::device::pe_count()); }"""
    assert len(symbols(nvrtc(rtc, source, "--gpu-architecture=sm_90", "-std=c++17", *includes(prefix, cuda_include)), tmp_path, well)) == 1


@pytest.mark.parametrize("kind", ["bc", "ltoir"])
def test_no_path_of_the_machine_that_built_it_is_inside(library, project, kind):
    assert str(project).encode() not in library(kind).read_bytes()


DECLARED = """extern "C" __device__ int nvshmem_my_pe(void);
    extern "C" __device__ void nvshmem_int_p(int*, int, int);
    extern "C" __device__ void nvshmemx_barrier_all_block(void);
    extern "C" __global__ void kernel(int* word) { nvshmem_int_p(word, 7, nvshmem_my_pe()); nvshmemx_barrier_all_block(); }"""


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_lto_library_links_with_what_nvrtc_compiles(rtc, linker, library, tmp_path, architecture):
    """By declarations alone: without a header of Weft."""
    kernel = nvrtc(rtc, DECLARED, "-arch=compute_80", "-dlto", "-rdc=true", result="LTOIR")
    found = symbols(linker(architecture, kernel, library("ltoir").read_bytes()), tmp_path, well)
    assert [(line[2], line[4]) for line in found] == [(STATE_BYTES, "GLOBAL")]


def test_a_kernel_without_the_lto_library_does_not_link(rtc, linker):
    kernel = nvrtc(rtc, DECLARED, "-arch=compute_80", "-dlto", "-rdc=true", result="LTOIR")
    with pytest.raises(AssertionError, match="Unresolved extern function 'nvshmem_"):
        linker("sm_90", kernel)


def test_the_lto_library_links_into_a_kernel_of_numba(linker, library, cuda_include, tmp_path):
    """As programs declare functions themselves; with numba's own convention, its default, a call would not find its result."""
    cuda = pytest.importorskip("numba.cuda", reason="no numba-cuda")
    from numba import types
    my_pe = cuda.declare_device("nvshmem_my_pe", "int32()", abi="c")

    def kernel(words):
        words[0] = my_pe()
    code, _ = cuda.compile(kernel, types.void(types.int32[::1]), device=False, cc=(9, 0), output="ltoir", abi="numba")
    assert len(symbols(linker("sm_90", code, library("ltoir").read_bytes()), tmp_path, well)) == 1


def test_the_bitcode_has_each_name_of_kernels_and_asks_for_printf_alone(library, llvm):
    lines = [line.split() for line in well(llvm("llvm-nm"), library("bc")).splitlines()]
    defined = {line[-1] for line in lines if line[-2] == "T"}
    named = {name for names in test_names.DEVICE.values() for name in names} | set(QUERIES)
    assert sorted(named - defined) == []
    assert [line[-1] for line in lines if line[-2] == "U"] == ["vprintf"]


def test_no_tail_call_of_the_bitcode_gets_the_address_of_a_local_variable(library, llvm):
    """The compiler of a kernel would leave out the stores to the variable, as it may for a tail call."""
    text = well(llvm("llvm-dis"), library("bc"), "-o", "-")
    found = []
    for function in re.findall(r"^define .*\{\n(?:.*\n)*?\}$", text, re.MULTILINE):
        local = "|".join(re.escape(name) for name in re.findall(r"^ +(%\S+) = alloca ", function, re.MULTILINE))
        if local:
            found += re.findall(rf"^ .*\btail call [^@\n]*@.*\(.*(?:{local})[,)].*$", function, re.MULTILINE)
    assert found == []


def test_the_bitcode_is_bound_to_no_compiler(library, llvm):
    text = well(llvm("llvm-dis"), library("bc"), "-o", "-")
    assert 'target triple = "nvptx64-nvidia-cuda"' in text and "@weft_device_state_of_module = " in text
    assert not re.search(r'"target-(cpu|features)"|llvm\.module\.flags|llvm\.(compiler\.)?used', text)
    # LLVM of Triton 3.6 ends with an assertion in functions that take structs by value.
    assert re.findall(r"^define [^@\n]*@(?!nvshmem)[^\n]*\bbyval\(", text, re.MULTILINE) == []
    # libNVVM, with which CuTe DSL compiles, refuses functions with an alignment.
    assert re.findall(r"^define .*\) .*\balign \d+ \{$", text, re.MULTILINE) == []


KERNEL = """target triple = "nvptx64-nvidia-cuda"
declare i32 @nvshmem_my_pe()
declare void @nvshmem_int_p(ptr, i32, i32)
declare void @nvshmemx_putmem_signal_nbi_block(ptr, ptr, i64, ptr, i64, i32, i32)
declare i64 @nvshmem_signal_wait_until(ptr, i32, i64)
declare i32 @nvshmemx_float_sum_reduce_block(i32, ptr, ptr, i64)
define void @kernel(ptr %words, ptr %signal) {
  %pe = call i32 @nvshmem_my_pe()
  call void @nvshmem_int_p(ptr %words, i32 7, i32 %pe)
  call void @nvshmemx_putmem_signal_nbi_block(ptr %words, ptr %words, i64 64, ptr %signal, i64 1, i32 9, i32 %pe)
  call i64 @nvshmem_signal_wait_until(ptr %signal, i32 5, i64 1)
  call i32 @nvshmemx_float_sum_reduce_block(i32 0, ptr %words, ptr %words, i64 8)
  ret void
}
!nvvm.annotations = !{!0}
!llvm.module.flags = !{!1}
!0 = !{ptr @kernel, !"kernel", i32 1}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
"""


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_bitcode_links_into_a_kernel_that_ptxas_takes(library, llvm, nvcc, tmp_path, architecture):
    (tmp_path / "kernel.ll").write_text(KERNEL)
    linked, better, ptx, cubin = (tmp_path / name for name in ("linked.bc", "better.bc", "kernel.ptx", "kernel.cubin"))
    well(llvm("llvm-link"), "--only-needed", "--internalize", tmp_path / "kernel.ll", library("bc"), "-o", linked)
    names = well(llvm("llvm-nm"), linked)
    assert "nvshmem_signal_wait_until" in names and "nvshmem_double_p" not in names  # what is needed, and no more
    well(llvm("opt"), "-passes=default<O3>", f"-mcpu={architecture}", linked, "-o", better)
    well(llvm("llc"), f"-mcpu={architecture}", "-mattr=+ptx85", better, "-o", ptx)
    well(shutil.which("ptxas") or os.path.join(os.path.dirname(nvcc), "ptxas"), f"-arch={architecture}", ptx, "-o", cubin, timeout=300)
    assert [line[2] for line in symbols(cubin.read_bytes(), tmp_path, well)] == [STATE_BYTES]


TRITON = """
import sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language import core

INT = core.dtype("int32")
LONG = core.dtype("int64")


@core.extern
def my_pe(_semantic=None):
    return core.extern_elementwise("", "", [], {(): ("nvshmem_my_pe", INT)}, is_pure=False, _semantic=_semantic)


@core.extern
def put(dest, source, size, pe, _semantic=None):
    return core.extern_elementwise("", "", [dest, source, size, pe], {(LONG, LONG, LONG, INT): ("nvshmemx_putmem_block", INT)},
                                   is_pure=False, _semantic=_semantic)


@triton.jit
def kernel(dest, source, size):
    put(dest.to(tl.int64), source.to(tl.int64), size.to(tl.int64), my_pe())


made = triton.compile(ASTSource(fn=kernel, signature={"dest": "*fp32", "source": "*fp32", "size": "i32"}), target=GPUTarget("cuda", 90, 32),
                      options={"extern_libs": {"libnvshmem_device": sys.argv[1]}})
open(sys.argv[2], "wb").write(made.asm["cubin"])
"""


def test_triton_links_the_bitcode_into_a_kernel(library, tmp_path):
    pytest.importorskip("triton", reason="no Triton")
    (tmp_path / "program.py").write_text(TRITON)
    done = run(sys.executable, tmp_path / "program.py", library("bc"), tmp_path / "made.cubin", TRITON_CACHE_DIR=str(tmp_path), timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line[2] for line in symbols((tmp_path / "made.cubin").read_bytes(), tmp_path, well)] == [STATE_BYTES]
