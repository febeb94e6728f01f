"""weft.nvshmem with tensors of torch, on memory of the CPU; each test is a job."""

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
