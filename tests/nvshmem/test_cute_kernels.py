"""nvshmem.core.device.cute: the names of NVSHMEM4Py's documentation for kernels of CuTe DSL, and that kernels with each of them
compile for sm_90 where nvidia-cutlass-dsl is installed. No GPU; tests/python_torch/test_nvshmem_kernels.py runs some on GPUs."""
import ast
import re
import sys

import pytest

from test_device_library import QUERIES
from test_python_kernels import DOCUMENTED, SCOPES, of_kernels

NAMES = {name for module in ("rma", "collective", "amo", "direct") for name in DOCUMENTED[module]} | {"get_peer_tensor", "get_multicast_tensor"}


def test_the_documented_names_are_there(project):
    """Read, not imported: most machines have no CuTe DSL."""
    tree = ast.parse((project / "python/weft/nvshmem/core/device/cute.py").read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            defined |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
            if ast.unparse(target) == "__all__":
                listed = set(ast.literal_eval(node.value))
    assert sorted(NAMES - listed) == [] and sorted(listed - defined) == [] and sorted(listed - NAMES) == ["fence", "quiet"]


@pytest.fixture(scope="module")
def cute(build_dir):
    """(the module of NVSHMEM's calls, CuTe DSL), for a GPU that is not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUTE_DSL_ARCH", "sm_90a")
        compiler = pytest.importorskip("cutlass", reason="no nvidia-cutlass-dsl")
        if not (build_dir / "python/weft/_weft.abi3.so").exists():
            pytest.skip("this build has no Python module")
        if not (build_dir / "nvshmem/lib/libnvshmem_device.bc").exists():
            pytest.skip("this build has no libnvshmem_device.bc: no clang 19")
        sys.path.insert(0, str(build_dir / "python"))
        import weft.nvshmem
        weft.nvshmem.install()
        import nvshmem.core.device.cute as module
        patch.setattr(module, "device_library", lambda kind: str(build_dir / f"nvshmem/lib/libnvshmem_device.{kind}"))
        yield module, compiler


@pytest.fixture
def called(cute, monkeypatch):
    """The functions of C that kernels compiled meanwhile call."""
    module, _ = cute
    names, prototype = set(), module._prototype

    def record(name, *others):
        names.add(name)
        return prototype(name, *others)
    monkeypatch.setattr(module, "_prototype", record)
    return names


def tensor(kind, size=32):
    from cutlass.cute.runtime import make_fake_compact_tensor
    return make_fake_compact_tensor(kind, (size,))


def compiled(body, *tensors):
    """A kernel of one block whose calls body(tensor...) makes."""
    from cutlass import cute

    @cute.kernel
    def kernel(tensors: list):
        body(*tensors)

    @cute.jit
    def launch(tensors: list):
        kernel(tensors).launch(grid=[1, 1, 1], block=[128, 1, 1])
    return cute.compile(launch, list(tensors))


@pytest.mark.parametrize("element", ["Float32", "Float16", "Int8", "Uint64"])
def test_kernels_with_each_put_and_get_compile(cute, called, element):
    device, cutlass = cute
    from nvshmem.core import ComparisonType, SignalOp

    def body(dst, src, signal):
        pe = device.my_pe()
        for end in (nbi + scope for nbi in ("", "_nbi") for scope in SCOPES):
            getattr(device, "put" + end)(dst, src, pe)
            getattr(device, "get" + end)(dst, src, 1)
            getattr(device, "put_signal" + end)(dst, src, signal, 1, SignalOp.SIGNAL_ADD, pe)
        device.p(dst, src, pe)
        device.p(dst, src[1], pe)
        dst[0] = device.g(src, pe)
        device.fence()
        device.signal_op(signal, 5, SignalOp.SIGNAL_SET, pe)
        device.quiet()
        signal[0] = cutlass.Int64(device.signal_wait_until(signal, ComparisonType.CMP_GE, 5))
        device.get_peer_tensor(dst, pe)[1] = dst[2]
    kind = getattr(cutlass, element)
    compiled(body, tensor(kind), tensor(kind, cutlass.cute.sym_int32()), tensor(cutlass.Int64, 1))
    copies = {f"{verb}mem{end}{nbi}" for verb, end in (("put", ""), ("get", ""), ("put", "_signal")) for nbi in ("", "_nbi")}
    scoped = {f"nvshmem_{one}" for one in copies} | {f"nvshmemx_{one}{scope}" for one in copies for scope in ("_warp", "_block")}
    assert scoped <= called and of_kernels(called - set(QUERIES))


@pytest.mark.parametrize("element", ["Int32", "Uint64", "Float64"])
def test_kernels_with_each_atomic_compile(cute, called, element):
    device, cutlass = cute
    kind = getattr(cutlass, element)

    def body(dst, old):
        device.atomic_set(dst, 3, 1)
        old[0] = device.atomic_fetch(dst, 1)
        old[1] = device.atomic_swap(dst, old[3], 1)
        if element != "Float64":
            device.atomic_inc(dst, 1)
            old[2] = device.atomic_fetch_inc(dst, 1)
            old[3] = device.atomic_compare_swap(dst, 1, old[2], 1)
            for one in ("add", "and", "or", "xor"):
                getattr(device, f"atomic_{one}")(dst, old[1], 1)
                old[4] = getattr(device, f"atomic_fetch_{one}")(dst, 2, 1)
    compiled(body, tensor(kind), tensor(kind))
    assert len(called) == (14 if element != "Float64" else 3) and of_kernels(called - set(QUERIES))


def test_kernels_with_collectives_compile(cute, called):
    device, cutlass = cute

    def body(dst, src):
        for scope in SCOPES:
            getattr(device, "barrier" + scope)(0)
            getattr(device, "sync" + scope)(0)
            getattr(device, "barrier_all" + scope)()
            getattr(device, "sync_all" + scope)()
        device.fcollect_block(0, dst, src)
        device.alltoall_warp(0, dst, src)
        device.broadcast(0, dst, src, 1)
        device.reduce_block(0, dst, src, "sum")
        dst[0] = dst.element_type(device.team_my_pe(0) + device.team_n_pes(0) + device.n_pes())
    compiled(body, tensor(cutlass.Float32), tensor(cutlass.Float32))
    assert len(called) == 12 + 4 + 3 and of_kernels(called - set(QUERIES))


def test_kernels_that_cannot_be_are_refused_with_a_sentence(cute):
    device, cutlass = cute
    floats, words = tensor(cutlass.Float32), tensor(cutlass.Int32)
    for body, sentence in ((lambda a, b: device.put(a, b, 0), "dst has Float32, src has Int32, not the same"),
                           (lambda a, b: device.put_signal(a, a, b, 1, 9, 0), "a signal is a tensor of Int64 or Uint64, not of Int32"),
                           (lambda a, b: device.reduce(0, a, a, "mean"), "there is no operation 'mean'"),
                           (lambda a, b: device.atomic_add(a, 1, 0), "atomic_add: there is none for Float32"),
                           (lambda a, b: device.put(a, 7, 0), "src is a int, not a cute.Tensor"),
                           (lambda a, b: device.get_multicast_tensor(0, a), "Weft has no multicast")):
        with pytest.raises(Exception, match=re.escape(sentence)):
            compiled(body, floats, words)

