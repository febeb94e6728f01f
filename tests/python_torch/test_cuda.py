"""Symmetric arrays in GPU memory, streams, graphs and torch.compile. Needs a GPU, torch that sees it, and the wheel for GPUs.

With the wheel installed beside torch, from the root of the repository:
PYTHON_WITH_WEFT=$(which python) python -m pytest tests/python_torch/test_cuda.py
On one GPU the PEs share it: WEFT_DEVICE_SHARED=yes is set here.
"""
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
SHARED = {"WEFT_DEVICE_SHARED": "yes", "WEFT_DEVICE_HEAP_SIZE": "64M", "WEFT_DEVICE_HEAP_MAX": "1G"}


def gpus(programs, count, body, **more):
    return programs.ok(count, "torch.cuda.set_device(int(os.environ.get('WEFT_PE', 0)) % torch.cuda.device_count())\n" + body,
                       **SHARED, **more)


def test_torch_sees_gpu_memory_without_a_copy(programs):
    gpus(programs, 2, """
with weft.init() as job:
    array = weft.zeros((4, 8), "bfloat16", "cuda")
    tensor = torch.from_dlpack(array)
    assert tensor.is_cuda and tensor.data_ptr() == array.address and array.device == str(tensor.device)
    inbox = weft.torch.zeros(1000, device="cuda")
    weft.put(inbox, torch.full((1000,), job.pe + 1.0, device="cuda"), 1 - job.pe)
    weft.barrier_all(stream=torch.cuda.current_stream())
    assert inbox.sum().item() == 1000 * (2 - job.pe)
    back = torch.zeros(1000, device="cuda")
    weft.get(back, inbox, 1 - job.pe)
    torch.cuda.synchronize()
    assert (back == job.pe + 1).all().item()
    weft.barrier_all()
    if weft.is_mapped(array, 1 - job.pe):
        handle = weft.torch.rendezvous(inbox)
        handle.get_buffer(1 - job.pe).fill_(9 + job.pe)
        handle.barrier()
        assert (inbox == 10 - job.pe).all().item()
""")


def test_streams_of_torch_and_numbers(programs):
    gpus(programs, 2, """
with weft.init() as job:
    inbox, signals = weft.torch.zeros(64, device="cuda"), weft.torch.zeros(2, dtype=torch.uint64, device="cuda")
    stream, other = torch.cuda.Stream(), 1 - job.pe
    with torch.cuda.stream(stream):
        source = torch.full((64,), job.pe + 1.0, device="cuda")
        weft.put_signal(inbox, source, signals[0], other, value=1, operation="add")  # the current stream: this one
    weft.signal_wait_until(signals[0], ">=", 1, stream=stream.cuda_stream)
    with torch.cuda.stream(stream):
        got = inbox * 1
    stream.synchronize()
    assert (got == other + 1).all().item()
    weft.quiet(stream=stream)
    weft.barrier_all(stream=stream)
    stream.synchronize()
    if torch.cuda.device_count() > 1:
        far = torch.cuda.Stream(device=(inbox.get_device() + 1) % torch.cuda.device_count())
        try:
            weft.put(inbox, source, other, stream=far)
        except weft.WrongDevice as error:
            assert "give a stream of the array's device" in str(error)
        else:
            raise AssertionError("no exception")
""")


@pytest.mark.parametrize("before", ["nothing", "host memory"])
def test_puts_and_signals_between_nodes(programs, before):
    """Each PE a node, so that the proxy carries them. Before the GPU's heap starts, the PEs may have talked over the same rails."""
    gpus(programs, 2, f"""
with weft.init() as job:
    other = 1 - job.pe
    if {before!r} == "host memory":
        words = weft.zeros(1000, "int64")
        for turn in range(50):
            weft.put(words, numpy.full(1000, turn), other)
            weft.barrier_all()
    inbox, signals = weft.torch.zeros(1000, device="cuda"), weft.torch.zeros(1, dtype=torch.uint64, device="cuda")
    for turn in range(20):
        source = torch.full((1000,), 10.0 * turn + job.pe, device="cuda")
        weft.put_signal(inbox, source, signals[0], other, value=1, operation="add")
        weft.signal_wait_until(signals[0], ">=", turn + 1)
        got = inbox.clone()
        weft.barrier_all(stream=torch.cuda.current_stream())
        torch.cuda.synchronize()  # while a copy to the host waits for a kernel, CUDA holds back the proxy's copies of torch's memory
        assert (got == 10.0 * turn + other).all().item(), (turn, got)
""", WEFT_NODE_SIZE="1", WEFT_NICS="127.0.0.1")


def test_collectives_on_a_stream(programs):
    gpus(programs, 2, """
with weft.init() as job:
    n, me = job.pe_count, job.pe
    source, dest = weft.torch.zeros(n, 16, device="cuda"), weft.torch.zeros(n, 16, device="cuda")
    source[:] = torch.arange(n, device="cuda")[:, None] * 10.0 + me
    weft.world.alltoall(dest, source)
    assert torch.equal(dest.cpu(), (me * 10.0 + torch.arange(n))[:, None].expand(n, 16))
    weft.world.sync(stream=torch.cuda.current_stream())
    weft.world.fcollect(dest, source[1])
    assert torch.equal(dest.cpu(), (10.0 + torch.arange(n))[:, None].expand(n, 16))
    weft.world.sync(stream=torch.cuda.current_stream())
    weft.world.reduce(dest, source)
    assert dest[1].cpu().tolist() == [20.0 + 1] * 16 if n == 2 else True
    weft.world.sync(stream=torch.cuda.current_stream())
    weft.world.reduce_scatter(dest[0], source)
    assert dest[0].cpu().tolist() == [me * 20.0 + 1] * 16 if n == 2 else True
    own = torch.randn(n, 4, device="cuda", requires_grad=True)
    weft.torch.all_to_all(own).square().sum().backward()
    assert torch.allclose(own.grad, 2 * own)
""")


def test_a_graph_of_puts_signals_and_collectives_replays(programs):
    gpus(programs, 2, """
with weft.init() as job:
    inbox, signals = weft.torch.zeros(256, device="cuda"), weft.torch.zeros(1, dtype=torch.uint64, device="cuda")
    x, other = torch.zeros(256, device="cuda"), 1 - job.pe
    def step():
        torch.ops.weft.put_signal(inbox, x + 1, signals, other, 1, "add")
        torch.ops.weft.barrier_all(inbox)
        return inbox * 2, weft.torch.all_reduce(x)
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        step(), step()
    warm.synchronize()
    weft.barrier_all()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled, total = step()
    for turn in range(1000):
        x.fill_(turn + job.pe)
        graph.replay()
        torch.ops.weft.barrier_all(inbox)
        if turn % 100 == 0:
            assert (doubled == 2 * (turn + other + 1)).all().item() and (total == 2 * turn + 1).all().item()
    torch.cuda.synchronize()
    assert signals.item() == 1002
""")


def test_a_compiled_graph_on_the_gpu(programs):
    gpus(programs, 2, """
with weft.init() as job:
    inbox, signals, other = weft.torch.zeros(256, device="cuda"), weft.torch.zeros(1, dtype=torch.uint64, device="cuda"), 1 - job.pe
    @torch.compile(fullgraph=True)
    def step(inbox, signals, x):
        torch.ops.weft.put_signal(inbox, x * 2, signals, other, 1, "add")
        torch.ops.weft.signal_wait_until(signals, ">=", 1)
        return inbox + 1, weft.torch.all_to_all(x)
    x = torch.full((256,), job.pe + 1.0, device="cuda")
    out, mixed = step(inbox, signals, x)
    assert (out == 2 * (other + 1) + 1).all().item()
    assert mixed[128 * other:][:128].mean().item() == other + 1
    weft.barrier_all(stream=torch.cuda.current_stream())
""")


def test_rows_go_to_experts_on_the_gpu(programs):
    gpus(programs, 2, """
with weft.init() as job:
    source, out = weft.torch.zeros(16, 8, device="cuda"), weft.torch.zeros(64, 8, device="cuda")
    splits = torch.tensor([1, 2, 3, 4], device="cuda")
    source[:10] = torch.arange(10.0, device="cuda")[:, None] + 100 * job.pe
    places = torch.zeros(2, 4, dtype=torch.int64, device="cuda")
    weft.barrier_all(stream=torch.cuda.current_stream())
    weft.torch.all_to_all_vdev_2d(source, out, splits, places, major_align=8)
    first = (1, 2) if job.pe == 0 else (3, 4)
    assert places[0].tolist() == [first[0], first[0], first[1], first[1]] and places[1].tolist() == [0, first[0], 8, 8 + first[1]]
    start = 0 if job.pe == 0 else 3
    assert out[0, 0].item() == start and out[first[0], 0].item() == 100 + start
""")


def test_a_stream_for_host_memory_and_mixed_devices_are_refused(programs):
    gpus(programs, 1, """
with weft.init():
    near, far = weft.torch.zeros(4), weft.torch.zeros(4, device="cuda")
    for words, call in (("copy one of them to the other's device first", lambda: weft.put(far, near, 0)),
                        ("stream= is for arrays in GPU memory", lambda: weft.put(near, near, 0, stream=torch.cuda.current_stream())),
                        ("kernels call", lambda: weft.atomic_add(weft.zeros(1, "int64", "cuda"), 1, 0)),
                        ("this PE uses cuda:", lambda: weft.zeros(4, device="cuda:77"))):
        try:
            call()
        except weft.WrongDevice as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
    try:
        memoryview(weft.zeros(4, device="cuda"))
    except BufferError as error:
        assert "use torch.from_dlpack" in str(error)
""")


def test_registered_tensors_are_sent_from_and_filled(programs):
    gpus(programs, 2, """
with weft.init() as job:
    other, inbox = 1 - job.pe, weft.torch.zeros(100_000, device="cuda")
    source, back = torch.full((100_000,), job.pe + 1.0, device="cuda"), torch.zeros(100_001, device="cuda")[1:]
    assert weft.register(source) is source
    weft.register(back)
    weft.put(inbox, source, other)
    weft.barrier_all(stream=torch.cuda.current_stream())
    assert (inbox == other + 1).all().item()
    weft.get(back, inbox, other)
    torch.cuda.synchronize()
    assert (back == job.pe + 1).all().item()
    for wrong, words in ((source, "overlap the window"), (inbox, "in the device heap"), (source[::2], "has gaps")):
        try:
            weft.register(wrong)
        except weft.Error as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
    weft.unregister(back)
    weft.unregister(source)
    weft.register(source)
    weft.unregister(source)
""")


def test_cupy_sees_gpu_memory_without_a_copy(programs):
    pytest.importorskip("cupy", reason="cupy is missing")
    gpus(programs, 1, """
import cupy
with weft.init():
    array = weft.zeros(8, "float32", "cuda")
    view = cupy.from_dlpack(array)
    assert view.data.ptr == array.address
    weft.put(array, cupy.arange(8, dtype="float32"), 0, stream=cupy.cuda.get_current_stream())
    cupy.cuda.get_current_stream().synchronize()
    assert view.get().tolist() == list(range(8))
""")
