"""The emulated GPU finds what is wrong with a kernel, and its translator reads CUDA C++. What runs on it is the suite `device`."""
import importlib.util
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def kernel(bin_dir):
    """kernel(CASE): the finished process of emulated_bad_kernels"""
    program = bin_dir / "emulated_bad_kernels"
    if not program.exists():
        pytest.skip("built without CUDA's headers")
    return lambda case: subprocess.run([program, case], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def translate():
    spec = importlib.util.spec_from_file_location("translate", HERE / "translate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.translate


def test_a_kernel_without_faults_ends_with_its_result(kernel):
    done = kernel("sum")
    assert (done.returncode, done.stdout, done.stderr) == (0, "error 0, sums 2016 2016\n", "")


def line_of(text):
    """Where the first line of bad_kernels.cu with this text is, as messages name it."""
    lines = (HERE / "bad_kernels.cu").read_text().splitlines()
    return "bad_kernels.cu:" + str(next(number for number, line in enumerate(lines, 1) if text in line))


@pytest.mark.parametrize("case, words", [
    ("two-barriers", ["wait for each other: 32 at ", line_of("__syncthreads();") + " (the first is thread 0); 32 at ",
                      line_of("bar.sync") + " (the first is thread 32)"]),
    ("lane-gone", ["wait for each other: 62 at ", line_of("votes[threadIdx.x] = __ballot_sync(~0U, 1)") + " (the first is thread 0)"]),
    ("not-in-mask", ["block 0: a lane is not in the mask of what it does with its warp"]),
    ("not-awaited", ["block 0,0,0 ended before its bulk copies had read their sources"]),
])
def test_a_fault_ends_the_kernel_and_is_named_with_its_line(kernel, case, words):
    done = kernel(case)
    assert done.returncode == 1 and done.stdout.startswith("error 719"), done.stdout + done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("cuda, cpp", [
    ('asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");',
     "::weft_emulated::ptx::ld_acquire_sys_global_u32((value), (word));"),
    ('asm volatile("bar.sync 15, %0;" ::"n"(kCount) : "memory");', "::weft_emulated::ptx::bar_sync_15((kCount));"),
    ('asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; "\n"st.relaxed.sys.global.b128 [%0], v; }" ::"l"(to), "l"(f(a, b)), "l"(c));',
     "::weft_emulated::ptx::mov_b128_st_relaxed_sys_global_b128((to), (f(a, b)), (c))\n;"),
    ("sum<<<1, 64>>>(memory);", "::weft_emulated::Launcher(1, 64)([=](auto... arguments) { sum(arguments...); }, memory);"),
    ("shape.kernel<<<2, n, 0, stream>>>({a, b}, c);", "::weft_emulated::Launcher(2, n, 0, stream)(+shape.kernel, {a, b}, c);"),
    ("run<Scope><<<1, 1>>>();", "::weft_emulated::Launcher(1, 1)([=](auto... arguments) { run<Scope>(arguments...); });"),
    ("extern __shared__ __align__(16) std::byte memory[];", "std::byte* const memory = ::weft_emulated::dynamic_memory;"),
    ("__shared__ alignas(16) std::byte staged[32];", "alignas(16) __shared__ std::byte staged[32];"),
    ("config.gridDim = gridDim;", "config.gridDim = ::weft_emulated::gridDim();"),
])
def test_what_only_cuda_has_becomes_a_call(translate, cuda, cpp):
    assert translate(cuda) == cpp
