"""nvshmem.core.device: the names of NVSHMEM4Py's documentation for kernels of numba-cuda, and that kernels with each of them
compile and link for sm_90. No GPU; what runs is in tests/python_torch/test_nvshmem_kernels.py."""
import ast
import sys
import types as python_types

import pytest

import test_names
from nvshmem_runs import run, well
from run_time_compilers import link, open_library, symbols

SCOPES = ("", "_warp", "_block")
# By module, as docs.nvidia.com/nvshmem has them: language_bindings/python/device/numba.
DOCUMENTED = {
    "rma": [f"{verb}{nbi}{scope}" for verb in ("put", "get", "put_signal") for nbi in ("", "_nbi") for scope in SCOPES] + ["p", "g"],
    "collective": [f"{verb}{scope}" for verb in ("sync", "sync_all", "barrier", "barrier_all", "reduce", "reducescatter", "fcollect",
                                                 "broadcast", "alltoall") for scope in SCOPES],
    "amo": """atomic_inc atomic_fetch_inc atomic_fetch atomic_set atomic_add atomic_fetch_add atomic_and atomic_fetch_and atomic_or
        atomic_fetch_or atomic_xor atomic_fetch_xor atomic_swap atomic_compare_swap""".split(),
    "mem": ["get_multicast_array", "get_peer_array"],
    "direct": ["n_pes", "my_pe", "team_n_pes", "team_my_pe", "signal_op", "signal_wait_until"],
}


@pytest.mark.parametrize("module", DOCUMENTED)
def test_the_documented_names_are_there(project, module):
    """Read, not imported: most machines have no numba."""
    tree = ast.parse((project / f"python/weft/nvshmem/core/device/numba/{module}.py").read_text())
    assigned = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
    listed = set(ast.literal_eval(assigned["__all__"]))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert sorted(set(DOCUMENTED[module]) - listed) == [] and sorted(listed - defined) == []


@pytest.fixture(scope="module")
def device(build_dir):
    """The module; numba is told of a GPU, because it compiles what kernels call for the one that is there."""
    cuda = pytest.importorskip("numba.cuda", reason="no numba-cuda")
    if not (build_dir / "python/weft/_weft.abi3.so").exists():
        pytest.skip("this build has no Python module")
    sys.path.insert(0, str(build_dir / "python"))
    import weft.nvshmem
    weft.nvshmem.install()
    import nvshmem.core.device.numba as module
    from numba.cuda import dispatcher
    dispatcher.get_current_device = lambda: python_types.SimpleNamespace(compute_capability=(9, 0))
    assert cuda
    return module


@pytest.fixture
def called(device, monkeypatch):
    """The functions of C that kernels compiled meanwhile call."""
    from weft.nvshmem.core.device.numba import calls
    names, call_c = set(), calls.call_c

    def record(context, builder, name, *others):
        names.add(name)
        return call_c(context, builder, name, *others)
    monkeypatch.setattr(calls, "call_c", record)
    return names


@pytest.fixture
def compiled(device):
    """compiled(kernel, type...): LTO IR for sm_90."""
    from numba import cuda
    from numba.cuda import types

    def compile_kernel(kernel, *arguments):
        code, _ = cuda.compile(kernel, types.void(*arguments), device=False, cc=(9, 0), output="ltoir", abi="numba")
        return code
    return compile_kernel


def of_kernels(names):
    """All of them are documented functions of NVSHMEM, and so in the device library."""
    documented = {name for family in test_names.DEVICE.values() for name in family} | {"nvshmem_team_n_pes"}
    return names <= documented


def array(element):
    from numba.cuda import types
    return types.Array(getattr(types, element), 1, "C")


@pytest.mark.parametrize("element", ["float32", "float16", "int8", "uint64"])
def test_kernels_with_each_put_and_get_compile(device, compiled, called, element):
    from nvshmem.core import SignalOp

    def kernel(dst, src, signal, pe):
        device.put(dst, src, pe)
        device.put_warp(dst, src, pe)
        device.put_block(dst, src, pe)
        device.put_nbi(dst, src, pe)
        device.put_nbi_warp(dst, src, pe)
        device.put_nbi_block(dst, src, pe)
        device.get(dst, src, pe)
        device.get_warp(dst, src, pe)
        device.get_block(dst, src, pe)
        device.get_nbi(dst, src, pe)
        device.get_nbi_warp(dst, src, pe)
        device.get_nbi_block(dst, src, pe)
        device.put_signal(dst, src, signal, 1, SignalOp.SIGNAL_ADD, pe)
        device.put_signal_warp(dst, src, signal, 1, SignalOp.SIGNAL_ADD, pe)
        device.put_signal_block(dst, src, signal, 1, SignalOp.SIGNAL_SET, pe)
        device.put_signal_nbi(dst, src, signal, 1, 9, pe)
        device.put_signal_nbi_warp(dst, src, signal, 1, 10, pe)
        device.put_signal_nbi_block(dst, src, signal, 1, 10, pe)
        device.p(dst, src, pe)
        device.p(dst, src[1], pe)
        dst[0] = device.g(src, pe)
    from numba.cuda import types
    compiled(kernel, array(element), array(element), array("int64"), types.int64)
    copies = {f"{verb}mem{end}{nbi}" for verb, end in (("put", ""), ("get", ""), ("put", "_signal")) for nbi in ("", "_nbi")}
    scoped = {f"nvshmem_{one}" for one in copies} | {f"nvshmemx_{one}{scope}" for one in copies for scope in ("_warp", "_block")}
    name = {"float32": "float", "float16": "uint16"}.get(element, element)
    assert called == scoped | {f"nvshmem_{name}_p", f"nvshmem_{name}_g"} and of_kernels(called)


@pytest.mark.parametrize("element", ["float64", "float16", "int32"])
def test_kernels_with_each_collective_compile(device, compiled, called, element):
    from nvshmem.core import Teams

    def kernel(dst, src):
        device.sync(Teams.TEAM_WORLD)
        device.sync_warp(0)
        device.sync_block(0)
        device.sync_all()
        device.sync_all_warp()
        device.sync_all_block()
        device.barrier(Teams.TEAM_NODE)
        device.barrier_warp(0)
        device.barrier_block(0)
        device.barrier_all()
        device.barrier_all_warp()
        device.barrier_all_block()
        device.reduce(Teams.TEAM_WORLD, dst, src, "sum")
        device.reduce_warp(Teams.TEAM_WORLD, dst, src, "prod")
        device.reduce_block(Teams.TEAM_WORLD, dst, src, "min")
        device.reducescatter(0, dst, src, "max")
        device.reducescatter_warp(0, dst, src, "max")
        device.reducescatter_block(0, dst, src, "max")
        device.fcollect(0, dst, src)
        device.fcollect_warp(0, dst, src)
        device.fcollect_block(0, dst, src)
        device.broadcast(0, dst, src)
        device.broadcast_warp(0, dst, src, 1)
        device.broadcast_block(0, dst, src, root=1)
        device.alltoall(0, dst, src)
        device.alltoall_warp(0, dst, src)
        device.alltoall_block(0, dst, src)
    compiled(kernel, array(element), array(element))
    name = {"float64": "double", "float16": "half", "int32": "int32"}[element]
    typed = {f"nvshmem_{name}_sum_reduce", f"nvshmemx_{name}_prod_reduce_warp", f"nvshmemx_{name}_min_reduce_block",
             f"nvshmem_{name}_max_reducescatter", f"nvshmemx_{name}_max_reducescatter_warp", f"nvshmemx_{name}_max_reducescatter_block"}
    assert typed <= called and of_kernels(called)  # numba keeps what has no element type from one kernel to the next


@pytest.mark.parametrize("element", ["int32", "int64", "uint32", "uint64"])
def test_a_kernel_with_each_atomic_compiles_and_links(device, compiled, prefix, cuda_include, tmp_path, element):
    def kernel(dst, old, pe):
        device.atomic_inc(dst, pe)
        old[0] = device.atomic_fetch_inc(dst, pe)
        old[1] = device.atomic_fetch(dst, pe)
        device.atomic_set(dst, 3, pe)
        device.atomic_add(dst, 3, pe)
        old[2] = device.atomic_fetch_add(dst, 3, pe)
        device.atomic_and(dst, 3, pe)
        old[3] = device.atomic_fetch_and(dst, 3, pe)
        device.atomic_or(dst, 3, pe)
        old[4] = device.atomic_fetch_or(dst, 3, pe)
        device.atomic_xor(dst, 3, pe)
        old[5] = device.atomic_fetch_xor(dst, 3, pe)
        old[6] = device.atomic_swap(dst, 3, pe)
        old[7] = device.atomic_compare_swap(dst, 3, 4, pe)
    from numba.cuda import types
    code = compiled(kernel, array(element), array(element), types.int64)
    library = open_library(cuda_include, "libnvJitLink") or pytest.skip("no nvJitLink")
    cubin = link(library, cuda_include, "sm_90", code, (prefix / "lib/libnvshmem_device.ltoir").read_bytes())
    assert len(symbols(cubin, tmp_path, well)) == 1


def test_a_kernel_with_signals_order_and_peers_memory_links(device, compiled, prefix, cuda_include, tmp_path):
    from nvshmem.core import ComparisonType, SignalOp, Teams

    def kernel(signal, array):
        pe = (device.my_pe() + 1) % device.n_pes()
        device.get_peer_array(array, pe)[0] = device.team_my_pe(Teams.TEAM_WORLD) + device.team_n_pes(Teams.TEAM_WORLD)
        device.fence()
        device.signal_op(signal, 1, SignalOp.SIGNAL_ADD, pe)
        array[1] = device.signal_wait_until(signal, ComparisonType.CMP_GE, 1)
        device.quiet()
    code = compiled(kernel, array("uint64"), array("int32"))
    library = open_library(cuda_include, "libnvJitLink") or pytest.skip("no nvJitLink")
    cubin = link(library, cuda_include, "sm_90", code, (prefix / "lib/libnvshmem_device.ltoir").read_bytes())
    assert len(symbols(cubin, tmp_path, well)) == 1


@pytest.mark.parametrize("wrong, words", [
    (lambda device: lambda a, b: device.put(a, b, 0), "dst has float32, src has int32, not the same"),
    (lambda device: lambda a, b: device.put(a[::2], a, 0), "dst has gaps"),
    (lambda device: lambda a, b: device.atomic_inc(a, 0), "there is none for float32"),
    (lambda device: lambda a, b: device.reduce(0, a, a, "mean"), "there is no operation 'mean'"),
    (lambda device: lambda a, b: device.reduce(0, a, a, "xor"), "there is none for float32"),
    (lambda device: lambda a, b: device.signal_op(b, 1, 9, 0), "a signal is an array of int64 or uint64"),
    (lambda device: lambda a, b: device.get_multicast_array(0, a), "Weft has no multicast")])
def test_wrong_arguments_are_named(device, compiled, wrong, words):
    with pytest.raises(Exception, match=words):
        compiled(wrong(device), array("float32"), array("int32"))


def test_calls_on_the_host_are_refused(device):
    with pytest.raises(ValueError, match="put is for kernels of numba.cuda.jit; on the host there is nvshmem.core"):
        device.put(1, 2, 3)


TRITON = """
import sys
import weft.nvshmem
weft.nvshmem.install()
import triton
import triton.language as tl
import nvshmem.core.device.triton as device
from nvshmem.core.device.library import device_library
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@device.jit
def kernel(dest, source, word, numbers, size, pe):
    device.putmem_block(dest, source, size, pe)
    device.putmem_nbi_block(dest, source, size, pe=pe)
    device.getmem_block(dest, source, size, pe)
    device.getmem_nbi_block(dest, source, size, pe)
    device.putmem_signal_block(dest, source, size, word, 1, 10, pe)
    device.putmem_signal_nbi_block(dest, source, size, word, 1, 9, pe)
    device.signal_set(word, 1, pe)
    device.signal_wait_until(word, 5, 1)
    device.fence()
    device.quiet()
    device.barrier_all_block()
    device.sync_block(0)
    tl.store(numbers, device.my_pe() + device.n_pes() + device.team_my_pe(0) + device.team_n_pes(0))
    theirs = device.ptr(numbers, pe).to(tl.pointer_type(tl.int32))
    tl.store(theirs, 1)


signature = {"dest": "*fp32", "source": "*fp32", "word": "*i64", "numbers": "*i32", "size": "i32", "pe": "i32"}
made = triton.compile(ASTSource(fn=kernel, signature=signature), target=GPUTarget("cuda", 90, 32),
                      options={"extern_libs": {"libnvshmem_device": device_library("bc")}})
open(sys.argv[1], "wb").write(made.asm["cubin"])
"""


def test_a_kernel_of_triton_with_each_call_compiles(build_dir, prefix, tmp_path):
    pytest.importorskip("triton", reason="no Triton")
    if not (prefix / "lib/libnvshmem_device.bc").exists():
        pytest.skip("this build has no libnvshmem_device.bc")
    (tmp_path / "program.py").write_text(TRITON)
    done = run(sys.executable, tmp_path / "program.py", tmp_path / "made.cubin", TRITON_CACHE_DIR=str(tmp_path), PYTHONPATH=str(build_dir / "python"),
               timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(symbols((tmp_path / "made.cubin").read_bytes(), tmp_path, well)) == 1
