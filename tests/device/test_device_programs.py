"""The programs for GPUs as a user starts them: bad input gives one clear message each, and the suite's programs
say why they skip where there is no GPU. What needs a GPU runs on an emulated one elsewhere (tests/emulated_gpu); without nvcc the
rest is skipped."""
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

HAS_GPU = pathlib.Path("/dev/nvidiactl").exists()
PROGRAMS = ["rma", "signal", "putv", "order", "wait", "atomics", "teams", "collectives_exchange", "collectives_reduce", "collectives_large", "on_stream", "heap", "capture"]
EXAMPLES = ["09_ring_exchange", "10_device_alltoall", "11_stencil"]


def runner(bin_dir, environment):
    """run(pes, program, *arguments, **variables) -> the finished process"""
    def run(pes, program, *arguments, **variables):
        words = [bin_dir / "weft-run", "--lab", "none", "--grace", 20, "-n", pes, "--", bin_dir / program, *arguments]
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "WEFT_NICS": "127.0.0.1", **environment, **variables})
    return run


@pytest.fixture(scope="module")
def start(bin_dir):
    if not (bin_dir / "device_bad_input").exists():
        pytest.skip("built without CUDA")
    return runner(bin_dir, {})


@pytest.fixture(scope="module")
def start_on_gpu(bin_dir):
    """start_on_gpu(pes, program, *arguments, **variables): on this machine's GPU, or on an emulated one"""
    run = runner(bin_dir, {} if HAS_GPU else {"EMULATED_GPU_COUNT": "1"})

    def run_one(pes, program, *arguments, **variables):
        name = program if HAS_GPU else "emulated_" + program.removeprefix("device_")
        if not (bin_dir / name).exists():
            pytest.skip("built without CUDA's headers")
        return run(pes, name, *arguments, **variables)
    return run_one


@pytest.fixture(scope="module")
def start_bad_input(start_on_gpu):
    """start_bad_input(pes, case, **variables)"""
    return lambda pes, case, **variables: start_on_gpu(pes, "device_bad_input", case, **variables)


@pytest.mark.parametrize("pes", [1, 2])
def test_without_a_gpu_weft_device_init_says_so_on_every_pe(start, pes):
    done = start(pes, "device_bad_input", "no-gpu", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    words = "no GPU is visible to this process" if HAS_GPU else "no NVIDIA driver was found"
    for pe in range(pes):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"PE {pe}: weft_device_init: -1: ")]
        assert len(lines) == 1 and words in lines[0], done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_suite_skips_with_the_reason(start, name):
    done = start(1, f"device_{name}_test", CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout.count("\n")) == (77, 1), done.stdout + done.stderr
    assert done.stdout.startswith("SKIP all: weft_device_init: no ")


@pytest.mark.parametrize("name", ["nvshmem_suite", "nvshmem_suite_on_stream"])
def test_the_openshmem_suite_by_nvshmems_names_skips_without_a_gpu(start, bin_dir, name):
    if not (bin_dir / f"device_{name}_test").exists():
        pytest.skip("not built")
    done = start(1, f"device_{name}_test", CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout) == (77, "SKIP all: no GPU\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_without_a_gpu_ends_with_the_message(start, bin_dir, name):
    if not (bin_dir / name).exists():
        pytest.skip("not built")
    done = start(1, name, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1 and done.stdout == ""
    assert "weft_device_init: no " in done.stderr


def promised(text):
    """The lines after the `$ weft-run` in the comment at the top."""
    lines = [line.strip("/ ") for line in text.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("$ weft-run"))
    return lines[first + 1:lines.index("", first)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_promises(start_on_gpu, project, name):
    done = start_on_gpu(2, name, WEFT_DEVICE_SHARED="yes")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = sorted(line for line in done.stdout.splitlines() if not line.startswith("time:"))
    assert printed == promised((project / "examples" / f"{name}.cu").read_text())


def test_calls_before_weft_device_init_are_refused_by_name(start_bad_input):
    done = start_bad_input(1, "before-init")
    for name in ("weft_device_malloc", "weft_device_check"):
        assert f"{name}: this PE has not taken a GPU; call weft_device_init after weft_init" in done.stdout


def test_two_pes_on_one_gpu_are_told_how_to_take_their_own(start_bad_input):
    done = start_bad_input(2, "two-on-one")
    assert "has taken this PE's GPU 0" in done.stdout and "cudaSetDevice(weft_machine_pe())" in done.stdout
    assert start_bad_input(2, "two-on-one", WEFT_DEVICE_SHARED="yes").stdout.count("weft_device_init: 0:") == 2


def test_a_heap_larger_than_the_card_is_refused_with_both_sizes(start_bad_input):
    done = start_bad_input(1, "open", WEFT_DEVICE_HEAP_SIZE="4T")
    assert "weft_device_init: -4: " in done.stdout and "4 TiB" in done.stdout and "GiB" in done.stdout


@pytest.mark.parametrize("setting", [{"WEFT_DEVICE_HEAP_MAX": "0"}, {"WEFT_DEVICE_MEMORY": "ipc"}])
def test_a_heap_that_does_not_grow_says_what_to_raise(start_bad_input, setting):
    done = start_bad_input(1, "large-block", WEFT_DEVICE_HEAP_SIZE="64M", **setting)
    assert "weft_device_malloc: -4: weft_device_malloc: 128 MiB do not fit into the device heap of 64 MiB: 64 MiB are free" \
        in done.stdout, done.stdout + done.stderr
    assert "raise WEFT_DEVICE_HEAP_SIZE" in done.stdout
    assert "weft_device_malloc of 1 MiB: 0:" in done.stdout


def test_a_heap_grows_beyond_the_size_that_it_starts_with(start_bad_input):
    done = start_bad_input(1, "large-block", WEFT_DEVICE_HEAP_SIZE="64M")
    assert "weft_device_malloc: 0:" in done.stdout, done.stdout + done.stderr


def test_device_memory_given_to_host_calls_is_refused_by_name(start_bad_input):
    done = start_bad_input(1, "device-to-host-call")
    for call in ("weft_put dest: -1: weft_put: ", "weft_get dest: -1: weft_get: "):
        assert call in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_host_memory_given_to_device_calls_is_refused_by_name(start_bad_input):
    done = start_bad_input(1, "host-to-device-call")
    assert "is not in the device heap; use memory from weft_device_malloc" in done.stdout
    assert "weft_device_free: -1: weft_device_free: " in done.stdout


@pytest.mark.parametrize("case, words", [
    ("host-to-kernel", "a kernel ended in put (block 0): 16 bytes at 0x"),
    ("own-to-kernel", "are not in the symmetric device heap; use memory from weft_device_malloc"),
    ("list-to-kernel", "a kernel ended in putv (block 0): segment 2 of the list, 12 bytes to 0x"),
    ("no-such-pe", "a kernel ended in put (block 0): there is no PE 1"),
    ("beyond-heap", "a kernel ended in an atomic (block 0): 4 bytes at 0x")])
def test_a_kernel_that_is_wrong_ends_with_a_record(start_bad_input, case, words):
    done = start_bad_input(1, case)
    assert words in done.stdout, done.stdout + done.stderr
    assert "weft_device_check: -1: " in done.stdout


@pytest.mark.parametrize("case, operation", [("killed-waiting", "wait_until"), ("killed-meeting", "sync")])
def test_a_kernel_that_waits_for_a_dead_pe_ends_with_a_record(start_bad_input, case, operation):
    begin = time.monotonic()
    done = start_bad_input(2, case, WEFT_DEVICE_SHARED="yes")
    assert f"PE 0: weft_device_check: -3: a kernel ended in {operation} (block 0): PE 1 is lost" in done.stdout, \
        done.stdout + done.stderr
    assert time.monotonic() - begin < 30


def test_a_call_of_grid_scope_wants_a_cooperative_launch(start_bad_input):
    done = start_bad_input(1, "not-cooperative")
    assert "a call of grid scope in a kernel of 2 blocks that was not launched cooperatively" in done.stdout, done.stdout + done.stderr


def test_a_kernel_that_waits_says_where_and_a_timeout_ends_the_job(start_bad_input):
    begun = time.monotonic()
    done = start_bad_input(2, "waits-for-ever", WEFT_DEVICE_SHARED="yes", WEFT_WAIT_REPORT="1", WEFT_TIMEOUT_S="4")
    assert done.returncode != 0 and time.monotonic() - begun < 60
    assert "a kernel has been waiting in wait_until (block 0) for 1 s: the word at 0x" in done.stderr, done.stderr
    assert "is 0, awaited with 42; WEFT_TIMEOUT_S ends such waits" in done.stderr


def test_a_source_that_nothing_is_at_is_an_error_with_its_address(start_bad_input):
    done = start_bad_input(2, "unreadable-source", WEFT_DEVICE_SHARED="yes", WEFT_NODE_SIZE="1", WEFT_TIMEOUT_S="30")
    assert "from 0x400000000000 failed: " in done.stderr, done.stdout + done.stderr
    assert "WEFT_TIMEOUT_S" not in done.stderr


def ends_of_late(done):
    """What each PE printed of each step: {(pe, step): words}"""
    return {(line.split()[1].rstrip(":"), line.split()[2].rstrip(":")): line.split(": ", 2)[2]
            for line in done.stdout.splitlines() if line.startswith("PE ")}


def test_a_rank_that_is_late_to_a_graph_of_an_exchange_ends_the_kernels_of_all(start_on_gpu):
    done = start_on_gpu(2, "device_moe_late", "graph", WEFT_DEVICE_SHARED="yes")
    seen = ends_of_late(done)
    for pe in "01":
        assert seen[pe, "before"] == "right", done.stdout + done.stderr
        assert seen[pe, "late"].startswith("cudaError") and seen[pe, "after"].startswith("cudaError"), done.stdout + done.stderr
        assert seen[pe, "check"].startswith("-"), done.stdout
    # PE 1 came to the dispatch, which PE 0 had sent; to the combine PE 0 came no more.
    said = [line for line in done.stderr.splitlines() if "nothing came from" in line]
    assert len(said) == 2, done.stderr
    for pe, step in (("0", "dispatch"), ("1", "combine")):
        assert re.search(f"PE {pe}: error: {step} 3: nothing came from PE {1 - int(pe)} of 2 within 2 s, and the exchange is broken; "
                         "look at what these PEs do, or raise the timeout", done.stderr), done.stderr
        assert f"a kernel ended in a {step} of weft.moe" in seen[pe, "device"], done.stdout
    assert "WEFT_TIMEOUT_S" not in done.stderr


def test_a_rank_that_is_late_to_a_graph_with_a_mask_is_said_once(start_on_gpu):
    done = start_on_gpu(2, "device_moe_late", "graph-mask", WEFT_DEVICE_SHARED="yes")
    seen = ends_of_late(done)
    assert (done.returncode, seen["0", "before"], seen["1", "before"]) == (0, "right", "right"), done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if "nothing came from" in line]
    assert len(said) == 2 and "PE 0: warning: dispatch 3: nothing came from PE 1 of 2 within 2 s; the exchange goes on" in done.stderr
    assert seen["0", "late"] == seen["0", "after"] == "wrong", "without the experts of PE 1"


def test_a_rank_that_is_late_is_said_also_if_nobody_asks(start_on_gpu):
    done = start_on_gpu(2, "device_moe_late", "stream", WEFT_DEVICE_SHARED="yes")
    assert "PE 0: error: dispatch 3: nothing came from PE 1 of 2 within 2 s, and the exchange is broken" in done.stderr,         done.stdout + done.stderr
    assert ends_of_late(done)["0", "after"].startswith("weft_moe_dispatch_on_stream: -"), done.stdout


# Whether the kernel still waits when its command is refused is not known, if it waits for that
# command alone.
@pytest.mark.parametrize("case, words", [
    ("beyond-blocks", r"a (command \(1\) to PE 1 failed: invalid argument|kernel ended in put .*: a command of this GPU has been refused)"),
    ("beyond-blocks-waits", r"a kernel ended in wait_until \(block 0\): a command of this GPU has been refused")])
def test_a_command_that_the_proxy_refuses_is_an_error(start_bad_input, case, words):
    done = start_bad_input(2, case, WEFT_DEVICE_SHARED="yes", WEFT_NODE_SIZE="1", WEFT_TIMEOUT_S="60")
    assert re.search("PE 0: weft_device_check: -1: " + words, done.stdout), done.stdout + done.stderr
    assert "PE 0: error: the GPU asked for a command of kind 1 with PE 1, 16384 bytes" in done.stderr
    assert "WEFT_TIMEOUT_S" not in done.stderr


@pytest.mark.parametrize("architecture, words", [("sm_75", "Weft's device code needs a GPU of sm_80 or later"), ("sm_80", None)])
def test_a_kernel_for_a_gpu_that_is_too_old_does_not_compile_and_the_message_says_why(tmp_path, architecture, words):
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        pytest.skip("no nvcc")
    if architecture not in subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout:
        pytest.skip(f"this nvcc no longer knows {architecture}")
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("#include <weft/device.cuh>\n__global__ void kernel(int* word) { weft::device::p(word, 1, 0); }\n")
    include = pathlib.Path(__file__).parents[2] / "include"
    done = subprocess.run([nvcc, "-std=c++17", f"-arch={architecture}", f"-I{include}", "-ptx", str(kernel), "-o", str(tmp_path / "kernel.ptx")],
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == (words is None), done.stderr
    assert words is None or (words in done.stderr and "undefined" not in done.stderr), done.stderr
