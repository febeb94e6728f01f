"""Kernels of numba-cuda, of Triton and of CuTe DSL that call NVSHMEM, run on GPUs: nvshmem.core.device. Each test is a job."""
import pytest
import torch

from nvshmem_jobs import ok

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
SHAPES = pytest.mark.parametrize("pes, node", [(1, 1), (2, 2), (2, 1)], ids=["one_pe", "one_node", "nodes_of_one"])


@pytest.fixture
def jobs(programs, tmp_path):
    """jobs(pes, node, body): PEs on the GPUs there are; on one GPU they share it."""
    def start(pes, node, body):
        ok(programs, tmp_path, pes, BEGIN + body, NVSHMEM_HEAP_KIND="DEVICE", WEFT_DEVICE_SHARED="yes", WEFT_DEVICE_HEAP_SIZE="64M",
           WEFT_NODE_SIZE=str(node), WEFT_NICS="127.0.0.1", MAPPED=str(int(node == pes)), TRITON_CACHE_DIR=str(tmp_path / "triton"))
    return start


BEGIN = """
        torch.cuda.set_device(int(os.environ["WEFT_PE"]) % torch.cuda.device_count())
        me, count = begin()
        after, before, mapped = (me + 1) % count, (me - 1) % count, os.environ["MAPPED"] == "1"

        def symmetric(size, dtype, value=0):
            made = nvshmem.tensor(size, dtype=dtype)
            made.fill_(value)
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            return made

        def end():
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            nvshmem.finalize()
"""
NUMBA = """
        from numba import cuda
        import nvshmem.core.device.numba as device
"""
TRITON = """
        import triton
        import triton.language as tl
        import nvshmem.core.device.triton as device
"""
CUTE = """
        import cutlass
        from cutlass import cute
        from cutlass.cute.runtime import from_dlpack
        import nvshmem.core.device.cute as device
        import nvshmem.core.interop.cute as interop

        def run(launch, *tensors):
            compiled, library = interop.cute_compile_helper(launch, *tensors)
            compiled(*tensors)
            torch.cuda.synchronize()
            return lambda: (compiled(*tensors), torch.cuda.synchronize())

        def shown(*tensors):
            return [from_dlpack(one) for one in tensors]
"""
# The body of a kernel, and what it is called with.
COLLECTIVES = """
            device.reduce_block(Teams.TEAM_WORLD, sums, source, "sum")
            device.barrier_block(Teams.TEAM_WORLD)
            device.reduce_block(Teams.TEAM_WORLD, largest, source, "max")
            device.fcollect_block(Teams.TEAM_WORLD, everywhere, source)
            device.alltoall_block(Teams.TEAM_WORLD, exchanged, parts)
            device.broadcast_block(Teams.TEAM_WORLD, given, source, root)
            device.sync_all_block()
"""
THEIR_MEMORY = """
        sums, source, largest, given = (symmetric(size, torch.float32) for _ in range(4))
        everywhere, exchanged, parts = (symmetric(size * count, torch.float32) for _ in range(3))
        source.fill_(me + 1)
        parts[:] = torch.arange(count, device="cuda").repeat_interleave(size) + 10 * me
        torch.cuda.synchronize()
        nvshmem.barrier_all()
"""


@pytest.fixture
def numba():
    pytest.importorskip("numba.cuda", reason="no numba-cuda")


@pytest.fixture
def triton():
    pytest.importorskip("triton", reason="no Triton")


@pytest.fixture
def cute():
    pytest.importorskip("cutlass.cute", reason="no nvidia-cutlass-dsl")


@SHAPES
def test_a_kernel_of_numba_puts_signals_waits_and_meets(numba, jobs, pes, node):
    jobs(pes, node, NUMBA + """
        @cuda.jit
        def ring(dst, src, word, seen):
            following = (device.my_pe() + 1) % device.n_pes()
            device.put_signal_block(dst, src, word, 5, SignalOp.SIGNAL_ADD, following)
            device.signal_wait_until(word, ComparisonType.CMP_GE, 5)
            for index in range(cuda.threadIdx.x, dst.size, cuda.blockDim.x):
                seen[index] = dst[index]
            device.barrier_all_block()

        dst, src = symmetric(1000, torch.float32), symmetric(1000, torch.float32)
        src[:] = torch.arange(1000, device="cuda") + 10000 * me
        word, seen = symmetric(1, torch.int64), torch.zeros(1000, device="cuda")
        torch.cuda.synchronize()
        nvshmem.barrier_all()
        for turn in range(1, 4):
            word.zero_()
            seen.zero_()
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            ring[1, 128](*(cuda.as_cuda_array(one) for one in (dst, src, word, seen)))
            cuda.synchronize()
            assert word.item() == 5, word.item()
            assert torch.equal(seen, torch.arange(1000, device="cuda") + 10000.0 * before), seen
            src += 0.0
        end()
    """)


@SHAPES
def test_a_kernel_of_numba_puts_gets_and_updates(numba, jobs, pes, node):
    jobs(pes, node, NUMBA + """
        @cuda.jit
        def move(inbox, source, got, after):
            device.p(inbox, source[0] + 0.5, after)
            device.put(inbox[1:3], source[1:3], after)
            device.put_nbi(inbox[3:4], source[3:4], after)
            device.quiet()
            got[0] = device.g(source, after)
            device.get(got[1:4], source[1:4], after)
            device.barrier_all()

        @cuda.jit
        def update(words, old, after):
            old[0] = device.atomic_fetch_add(words, 7, after)
            device.atomic_inc(words, after)
            device.atomic_or(words[1:], 6, after)
            old[1] = device.atomic_compare_swap(words[2:], 0, 9, after)
            old[2] = device.atomic_swap(words[3:], 11, after)
            device.quiet()
            old[3] = device.atomic_fetch(words[3:], after)
            old[4] = device.team_n_pes(Teams.TEAM_WORLD)
            device.barrier_all()

        for dtype in (torch.float64, torch.float16, torch.int32):
            inbox, source, got = symmetric(4, dtype), symmetric(4, dtype), torch.zeros(4, dtype=dtype, device="cuda")
            source[:] = torch.arange(4, device="cuda") + 4 * me
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            move[1, 1](*(cuda.as_cuda_array(one) for one in (inbox, source, got)), after)
            cuda.synchronize()
            first = 4 * before + (0 if dtype == torch.int32 else 0.5)
            assert inbox.tolist() == [first] + [4 * before + index for index in (1, 2, 3)], (dtype, inbox)
            assert got.tolist() == [4 * after + index for index in range(4)], (dtype, got)
        words, old = symmetric(4, torch.int64), torch.full((5,), -1, device="cuda")
        update[1, 1](cuda.as_cuda_array(words), cuda.as_cuda_array(old), after)
        cuda.synchronize()
        nvshmem.barrier_all()
        assert words.tolist() == [8, 6, 9, 11] and old.tolist() == [0, 0, 0, 11, count], (words, old)
        end()
    """)


@SHAPES
def test_collectives_in_kernels_of_numba(numba, jobs, pes, node):
    jobs(pes, node, NUMBA + """
        @cuda.jit
        def calls(sums, source, largest, everywhere, exchanged, parts, given, root):
""" + COLLECTIVES + """
        def of(values):
            return cuda.as_cuda_array(values)

        size = 8
""" + THEIR_MEMORY + """        calls[1, 64](of(sums), of(source), of(largest), of(everywhere), of(exchanged), of(parts), of(given), count - 1)
        cuda.synchronize()
        assert sums.tolist() == [count * (count + 1) / 2] * 8 and largest.tolist() == [count] * 8, (sums, largest)
        assert everywhere.tolist() == [pe + 1 for pe in range(count) for _ in range(8)], everywhere
        assert exchanged.tolist() == [10 * pe + me for pe in range(count) for _ in range(8)], exchanged
        assert given.tolist() == [count] * 8, given
        end()
    """)


def test_a_kernel_of_numba_stores_to_a_peers_array(numba, jobs):
    jobs(2, 2, NUMBA + """
        @cuda.jit
        def store(array, pe):
            device.get_peer_array(array, pe)[cuda.threadIdx.x] = 100 * pe + cuda.threadIdx.x

        array = symmetric(32, torch.int32)
        store[1, 32](cuda.as_cuda_array(array), after)
        cuda.synchronize()
        nvshmem.barrier_all()
        assert array.tolist() == [100 * me + index for index in range(32)], array
        end()
    """)


@SHAPES
def test_a_kernel_of_triton_puts_signals_waits_and_meets(triton, jobs, pes, node):
    jobs(pes, node, TRITON + """
        @device.jit
        def ring(dst, src, word, seen, size: tl.constexpr):
            following = (device.my_pe() + 1) % device.n_pes()
            device.putmem_signal_block(dst, src, size * 4, word, 5, 10, following)
            device.signal_wait_until(word, 5, 5)
            offsets = tl.arange(0, size)
            tl.store(seen + offsets, tl.load(dst + offsets))
            device.barrier_all_block()

        dst, src = symmetric(1024, torch.float32), symmetric(1024, torch.float32)
        src[:] = torch.arange(1024, device="cuda") + 10000 * me
        word, seen = symmetric(1, torch.int64), torch.zeros(1024, device="cuda")
        for turn in range(3):
            word.zero_()
            seen.zero_()
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            ring[(1,)](dst, src, word, seen, 1024)
            torch.cuda.synchronize()
            assert word.item() == 5, word.item()
            assert torch.equal(seen, torch.arange(1024, device="cuda") + 10000.0 * before), seen
        end()
    """)


@SHAPES
def test_a_kernel_of_triton_puts_gets_and_reduces(triton, jobs, pes, node):
    jobs(pes, node, TRITON + """
        @device.jit
        def calls(inbox, source, got, sums, everywhere, word, numbers, after):
            device.putmem_nbi_block(inbox, source, 4096, after)
            device.quiet()
            device.getmem_block(got, source, 4096, after)
            device.barrier_all_block()
            device.float_sum_reduce_block(0, sums, source, 1024)
            device.fcollectmem_block(0, everywhere, source, 4096)
            device.signal_set(word, 3, after)
            device.signal_wait_until(word, 0, 3)
            tl.store(numbers, device.my_pe())
            tl.store(numbers + 1, device.team_n_pes(0))
            device.sync_all_block()

        inbox, source, got, sums = (symmetric(1024, torch.float32) for _ in range(4))
        everywhere, word, numbers = symmetric(1024 * count, torch.float32), symmetric(1, torch.int64), torch.zeros(2, dtype=torch.int32, device="cuda")
        source.fill_(me + 1)
        torch.cuda.synchronize()
        nvshmem.barrier_all()
        calls[(1,)](inbox, source, got, sums, everywhere, word, numbers, after)
        torch.cuda.synchronize()
        assert (inbox == before + 1).all().item() and (got == after + 1).all().item(), (inbox, got)
        assert (sums == count * (count + 1) / 2).all().item(), sums
        assert torch.equal(everywhere, torch.arange(1, count + 1, device="cuda").repeat_interleave(1024).float()), everywhere
        assert numbers.tolist() == [me, count], numbers
        end()
    """)


def test_a_kernel_of_triton_stores_to_a_peers_memory(triton, jobs):
    jobs(2, 2, TRITON + """
        @device.jit
        def store(array, pe):
            theirs = device.ptr(array, pe).to(tl.pointer_type(tl.int32))
            offsets = tl.arange(0, 32)
            tl.store(theirs + offsets, 100 * pe + offsets)

        array = symmetric(32, torch.int32)
        store[(1,)](array, after)
        torch.cuda.synchronize()
        nvshmem.barrier_all()
        assert array.tolist() == [100 * me + index for index in range(32)], array
        end()
    """)


@SHAPES
def test_a_kernel_of_cute_puts_signals_waits_and_meets(cute, jobs, pes, node):
    jobs(pes, node, CUTE + """
        @cute.kernel
        def ring(dst: cute.Tensor, src: cute.Tensor, word: cute.Tensor, seen: cute.Tensor):
            thread, _, _ = cute.arch.thread_idx()
            following = (device.my_pe() + 1) % device.n_pes()
            device.put_signal_block(dst, src, word, 5, SignalOp.SIGNAL_ADD, following)
            device.signal_wait_until(word, ComparisonType.CMP_GE, 5)
            for turn in cutlass.range_constexpr(8):
                seen[thread + 128 * turn] = dst[thread + 128 * turn]
            device.barrier_all_block()

        @cute.jit
        def launch(dst: cute.Tensor, src: cute.Tensor, word: cute.Tensor, seen: cute.Tensor):
            ring(dst, src, word, seen).launch(grid=[1, 1, 1], block=[128, 1, 1])

        @cute.kernel
        def copy(dst: cute.Tensor, src: cute.Tensor):
            thread, _, _ = cute.arch.thread_idx()
            for turn in cutlass.range_constexpr(8):
                dst[thread + 128 * turn] = src[thread + 128 * turn]

        @cute.jit
        def launch_copy(dst: cute.Tensor, src: cute.Tensor):
            copy(dst, src).launch(grid=[1, 1, 1], block=[128, 1, 1])

        dst, src = interop.tensor((1024,), cutlass.Float32), symmetric(1024, torch.float32)
        src[:] = torch.arange(1024, device="cuda") + 10000 * me
        word, seen = symmetric(1, torch.int64), torch.zeros(1024, device="cuda")
        again = run(launch, dst, *shown(src, word, seen))
        for turn in range(3):
            assert word.item() == 5, word.item()
            assert torch.equal(seen, torch.arange(1024, device="cuda") + 10000.0 * before), seen
            word.zero_()
            seen.zero_()
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            again()
        if mapped:
            run(launch_copy, *shown(seen), interop.get_peer_tensor(dst, after))
            assert torch.equal(seen, torch.arange(1024, device="cuda") + 10000.0 * me), seen
            nvshmem.barrier_all()
        interop.free_tensor(dst)
        end()
    """)


@SHAPES
def test_a_kernel_of_cute_puts_gets_and_updates(cute, jobs, pes, node):
    jobs(pes, node, CUTE + """
        @cute.kernel
        def move(inbox: cute.Tensor, words: cute.Tensor, values: cute.Tensor, source: cute.Tensor, got: cute.Tensor, after: cutlass.Int32):
            device.p(inbox, source[0], after)
            device.put(words, source, after)
            device.put_nbi(values, source, after)
            device.quiet()
            device.get(got, source, after)
            got[0] = device.g(source, after)
            device.barrier_all()

        @cute.jit
        def launch(inbox: cute.Tensor, words: cute.Tensor, values: cute.Tensor, source: cute.Tensor, got: cute.Tensor):
            move(inbox, words, values, source, got, after).launch(grid=[1, 1, 1], block=[1, 1, 1])

        @cute.kernel
        def update(words: cute.Tensor, ored: cute.Tensor, swapped: cute.Tensor, old: cute.Tensor, after: cutlass.Int32):
            old[0] = device.atomic_fetch_add(words, 7, after)
            device.atomic_inc(words, after)
            device.atomic_or(ored, 6, after)
            old[1] = device.atomic_compare_swap(swapped, 0, 9, after)
            device.quiet()
            old[2] = device.atomic_fetch(swapped, after)
            old[3] = cutlass.Int64(device.team_n_pes(0))
            device.barrier_all()

        @cute.jit
        def launch_update(words: cute.Tensor, ored: cute.Tensor, swapped: cute.Tensor, old: cute.Tensor):
            update(words, ored, swapped, old, after).launch(grid=[1, 1, 1], block=[1, 1, 1])

        for dtype in (torch.float64, torch.float16, torch.int32):
            inbox, words, values, source = (symmetric(4, dtype) for _ in range(4))
            got = torch.zeros(4, dtype=dtype, device="cuda")
            source[:] = torch.arange(4, device="cuda") + 4 * me + 1
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            run(launch, *shown(inbox, words, values, source, got))
            theirs, ours = [4 * before + index for index in (1, 2, 3, 4)], [4 * after + index for index in (1, 2, 3, 4)]
            assert inbox.tolist() == [theirs[0], 0, 0, 0], (dtype, inbox)
            assert words.tolist() == theirs and values.tolist() == theirs, (dtype, words, values)
            assert got.tolist() == ours, (dtype, got)
        words, ored, swapped = (symmetric(1, torch.int64) for _ in range(3))
        old = torch.full((4,), -1, device="cuda")
        run(launch_update, *shown(words, ored, swapped, old))
        nvshmem.barrier_all()
        assert [one.item() for one in (words, ored, swapped)] == [8, 6, 9] and old.tolist() == [0, 0, 9, count], (words, ored, swapped, old)
        end()
    """)


@SHAPES
def test_collectives_in_kernels_of_cute(cute, jobs, pes, node):
    jobs(pes, node, CUTE + """
        @cute.kernel
        def calls(sums: cute.Tensor, largest: cute.Tensor, everywhere: cute.Tensor, exchanged: cute.Tensor, given: cute.Tensor,
                  source: cute.Tensor, parts: cute.Tensor, root: cutlass.Int32):
""" + COLLECTIVES + """
        @cute.jit
        def launch(sums: cute.Tensor, largest: cute.Tensor, everywhere: cute.Tensor, exchanged: cute.Tensor, given: cute.Tensor,
                   source: cute.Tensor, parts: cute.Tensor):
            calls(sums, largest, everywhere, exchanged, given, source, parts, count - 1).launch(grid=[1, 1, 1], block=[128, 1, 1])

        size = 512
""" + THEIR_MEMORY + """        run(launch, *shown(sums, largest, everywhere, exchanged, given, source, parts))
        each = torch.arange(count, device="cuda").repeat_interleave(512).float()
        assert (sums == count * (count + 1) / 2).all().item() and (largest == count).all().item(), (sums, largest)
        assert torch.equal(everywhere, each + 1) and torch.equal(exchanged, 10 * each + me), (everywhere, exchanged)
        assert (given == count).all().item(), given
        end()
    """)


@pytest.mark.parametrize("element, operations", [("float32", "min max"), ("int32", "and or xor"), ("float64", "sum prod"), ("int32", "sum prod"),
                                                 ("int64", "min max"), ("float16", "sum max"), ("float32", "reducescatter")])
@SHAPES
def test_reductions_in_kernels_of_cute(cute, jobs, pes, node, element, operations):
    """Values of which each operation has another result, exact in each type. Few operations a kernel: each compiles for 10 s."""
    operations = operations.split()
    scatter = operations == ["reducescatter"]
    call, operations = ("reducescatter", ["sum"]) if scatter else ("reduce", operations)
    outs = [f"out_{one}" for one in operations]
    calls = "\n".join(f'            device.{call}_block(Teams.TEAM_WORLD, out_{one}, source, "{one}")\n            device.sync_all_block()' for one in operations)
    annotated = ", ".join(f"{one}: cute.Tensor" for one in [*outs, "source"])
    jobs(pes, node, CUTE + f"""
        @cute.kernel
        def calls({annotated}):
{calls}

        @cute.jit
        def launch({annotated}):
            calls({", ".join([*outs, "source"])}).launch(grid=[1, 1, 1], block=[128, 1, 1])

        import functools, operator
        dtype, each = torch.{element}, 300
        size = each * count if {scatter} else each
        source, outs = symmetric(size, dtype), [symmetric(each, dtype) for _ in range({len(outs)})]

        def values(pe):  # 1 to 13, in another order at each PE
            return [(3 * index + 5 * pe) % 13 + 1 for index in range(size)]
        source[:] = torch.tensor(values(me)).to("cuda").to(dtype)
        torch.cuda.synchronize()
        nvshmem.barrier_all()
        again = run(launch, *shown(*outs, source))
        combine = dict(sum=operator.add, prod=operator.mul, min=min, max=max, xor=operator.xor)
        combine["and"], combine["or"] = operator.and_, operator.or_
        for turn in range(2):
            for name, out in zip({operations!r}, outs):
                expected = [functools.reduce(combine[name], column) for column in zip(*map(values, range(count)))]
                if {scatter}:
                    expected = expected[each * me:each * (me + 1)]
                assert out.cpu().double().tolist() == expected, (name, turn, out)
                out.zero_()
            torch.cuda.synchronize()
            nvshmem.barrier_all()
            if turn == 0:
                again()
        end()
    """)


def test_a_kernel_of_cute_stores_to_a_peers_memory(cute, jobs):
    jobs(2, 2, CUTE + """
        @cute.kernel
        def store(array: cute.Tensor, pe: cutlass.Int32):
            thread, _, _ = cute.arch.thread_idx()
            device.get_peer_tensor(array, pe)[thread] = 100 * pe + thread

        @cute.jit
        def launch(array: cute.Tensor):
            store(array, after).launch(grid=[1, 1, 1], block=[32, 1, 1])

        array = symmetric(32, torch.int32)
        run(launch, *shown(array))
        nvshmem.barrier_all()
        assert array.tolist() == [100 * me + index for index in range(32)], array
        end()
    """)


@pytest.mark.parametrize("kind", ["numba", "triton"])
def test_a_kernel_before_init_is_refused_with_a_sentence(request, jobs, programs, kind):
    request.getfixturevalue(kind)
    kernel = {"numba": "@cuda.jit\n        def kernel(out):\n            out[0] = device.my_pe()",
              "triton": "@device.jit\n        def kernel(out):\n            tl.store(out, device.my_pe())"}[kind]
    start = {"numba": "kernel[1, 1](cuda.as_cuda_array(out))", "triton": "kernel[(1,)](out)"}[kind]
    done = programs.pes(1, f"""
        import weft.nvshmem
        weft.nvshmem.install()
{NUMBA if kind == "numba" else TRITON}
        {kernel}

        out = torch.zeros(1, dtype=torch.int32, device="cuda")
        {start}
    """)
    assert done.status != 0 and "kernels need nvshmem.core.init first" in done.err, done.err
