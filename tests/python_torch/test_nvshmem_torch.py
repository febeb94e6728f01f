"""weft.nvshmem with tensors of torch, on memory of the CPU and of GPUs; each test is a job."""
import pytest
import torch

from nvshmem_jobs import ok


def test_tensors_are_symmetric_and_freed(programs, tmp_path):
    ok(programs, tmp_path, 2, """
        me, count = begin()
        dest, source = nvshmem.tensor((3, 4), dtype=torch.bfloat16), nvshmem.tensor((3, 4), dtype=torch.bfloat16)
        source.fill_(me + 1)
        nvshmem.barrier_all()
        nvshmem.put(dest, source, remote_pe=1 - me)
        nvshmem.barrier_all()
        assert (dest == 2 - me).all()
        buffer, size, kind = nvshmem.tensor_get_buffer(dest)
        assert (buffer.handle, size, kind) == (dest.data_ptr(), 24, "torch.bfloat16")
        theirs = nvshmem.get_peer_tensor(source, 1 - me)
        assert theirs.shape == (3, 4) and (theirs == 2 - me).all()
        del theirs, buffer
        column = nvshmem.tensor((3, 4), morder="F")
        assert column.shape == (3, 4) and column.stride() == (1, 3)
        out = nvshmem.tensor(2 * 4)
        part = nvshmem.tensor(4)
        part.fill_(me)
        nvshmem.fcollect(Teams.TEAM_WORLD, out, part)
        assert out.tolist() == [0.0] * 4 + [1.0] * 4
        nvshmem.sync_all()
        for one in (dest, source, out, part):
            nvshmem.free_tensor(one)
        assert nvshmem.bytetensor((5,), dtype=torch.float32).numel() == 20
        try:
            nvshmem.free_tensor(torch.zeros(3))
        except nvshmem.NvshmemInvalid:
            pass
        else:
            raise AssertionError("freed what is not symmetric")
        nvshmem.finalize()
    """)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_tensors_of_gpus_and_streams(programs, tmp_path):
    """On one GPU the PEs share it."""
    ok(programs, tmp_path, 2, """
        import torch.cuda
        torch.cuda.set_device(int(os.environ["WEFT_PE"]) % torch.cuda.device_count())
        me, count = begin()
        stream = torch.cuda.Stream()
        queue = nvshmem.NvshmemStream(stream)
        with torch.cuda.stream(stream):
            dest, source, sums = (nvshmem.tensor(1000, dtype=torch.float32) for _ in range(3))
            word = nvshmem.buffer(8)
            bits = torch.from_dlpack(word)
            bits.zero_()
            source.fill_(me + 1)
        nvshmem.barrier_all(stream=queue)
        nvshmem.put_signal(dest, source, word, 3, SignalOp.SIGNAL_ADD, remote_pe=1 - me, stream=queue)
        nvshmem.signal_wait(word, 3, ComparisonType.CMP_GE, stream=queue)
        nvshmem.reduce(Teams.TEAM_WORLD, sums, source, "sum", stream=queue)
        nvshmem.barrier(Teams.TEAM_NODE, stream=queue)
        stream.synchronize()
        assert (dest == 2 - me).all().item() and (sums == 3).all().item()
        nvshmem.get(dest, source, remote_pe=me, stream=queue)
        nvshmem.quiet(stream=queue)
        nvshmem.sync_all(stream=stream)
        stream.synchronize()
        assert (dest == me + 1).all().item()
        del bits
        nvshmem.free(word)
        for one in (dest, source, sums):
            nvshmem.free_tensor(one)
        nvshmem.finalize()
    """, NVSHMEM_HEAP_KIND="DEVICE", WEFT_DEVICE_SHARED="yes", WEFT_DEVICE_HEAP_SIZE="64M")
