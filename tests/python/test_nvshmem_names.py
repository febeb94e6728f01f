"""weft.nvshmem: the names of NVSHMEM4Py's documentation, on memory of the CPU with numpy; each test is a job."""
import pytest

from nvshmem_jobs import ok


@pytest.fixture
def jobs(programs, tmp_path):
    return lambda count, body: ok(programs, tmp_path, count, body)


def test_the_documented_names_are_there(programs):
    programs.ok(1, """
        import weft.nvshmem
        weft.nvshmem.install()
        import nvshmem.core
        import nvshmem.core.interop.torch
        documented = {
            "core": '''Teams SignalOp InitStatus init init_status finalize get_version get_unique_id my_pe n_pes team_my_pe team_n_pes buffer free
                tensor bytetensor free_tensor get_peer_tensor tensor_get_buffer array bytearray free_array get_peer_array array_get_buffer put get
                put_signal signal_op signal_wait quiet reduce reducescatter alltoall fcollect broadcast barrier sync barrier_all sync_all
                NvshmemError NvshmemInvalid''',
            "core.memory": "buffer get_peer_buffer free", "core.rma": "put get put_signal signal_op signal_wait quiet SignalOp",
            "core.collective": "reduce reducescatter alltoall fcollect broadcast barrier sync barrier_all sync_all collective_on_buffer",
            "core.direct": "ComparisonType SignalOp InitStatus my_pe n_pes team_my_pe team_n_pes init_status",
            "core.interop.torch": "bytetensor tensor free_tensor tensor_get_buffer get_peer_tensor get_multicast_tensor register_external_tensor unregister_external_tensor",
            "core.interop.cupy": "bytearray array free_array array_get_buffer get_peer_array get_multicast_array register_external_array unregister_external_array",
        }
        for module, names in documented.items():
            missing = [name for name in names.split() if not hasattr(sys.modules[f"nvshmem.{module}"], name)]
            assert not missing, (module, missing)
        assert nvshmem.core.get_version().libnvshmem_version == "3.6.5"
    """)


def test_a_job_by_unique_id_puts_and_gets_arrays(jobs):
    jobs(3, """
        assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_NOT_INITIALIZED
        me, count = begin()
        assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_IS_INITIALIZED and count == 3
        dest, source = nvshmem.array((4, 5), dtype="float64"), nvshmem.array((4, 5), dtype="float64")
        dest[:], source[:] = -1, me
        nvshmem.barrier_all()
        nvshmem.put(dest, source, remote_pe=(me + 1) % count)
        nvshmem.barrier(Teams.TEAM_WORLD)
        assert (dest == (me - 1) % count).all()
        nvshmem.get(dest, source, remote_pe=(me + 1) % count)
        assert (dest == (me + 1) % count).all()
        nvshmem.free_array(dest)
        nvshmem.free_array(source)
        nvshmem.finalize()
        assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_NOT_INITIALIZED
    """)


def test_signals_by_buffers(jobs):
    jobs(2, """
        me, count = begin()
        dest, source, signal = nvshmem.array(100, dtype="int32"), nvshmem.array(100, dtype="int32"), nvshmem.array((1,), dtype="uint64")
        word, size, kind = nvshmem.array_get_buffer(signal)
        assert (size, kind) == (8, "uint64")
        signal[:] = 0
        source[:] = numpy.arange(100) + me
        nvshmem.sync_all()
        nvshmem.put_signal(dest, source, word, 1, SignalOp.SIGNAL_SET, remote_pe=1 - me)
        nvshmem.signal_wait(word, 1, ComparisonType.CMP_GE)  # the other one may have added its 4 already
        assert (dest == numpy.arange(100) + 1 - me).all()
        nvshmem.signal_op(word, 4, SignalOp.SIGNAL_ADD, remote_pe=1 - me)
        nvshmem.signal_wait(word, 4, ComparisonType.CMP_GT)
        assert signal[0] == 5
        nvshmem.barrier_all()
        nvshmem.finalize()
    """)


def test_collectives(jobs):
    jobs(3, """
        me, count = begin()
        for dtype in ("float32", "int64"):
            one, all_of, block = (nvshmem.array(size, dtype=dtype) for size in (4, 4 * count, 4))
            one[:] = me + 1
            nvshmem.reduce(Teams.TEAM_WORLD, block, one, "sum")
            assert (block == 6).all()
            nvshmem.reduce(Teams.TEAM_NODE, block, one, "max")
            assert (block == 3).all()
            nvshmem.fcollect(Teams.TEAM_WORLD, all_of, one)
            assert (all_of.reshape(count, 4) == numpy.arange(1, 4)[:, None]).all()
            try:
                nvshmem.reducescatter(Teams.TEAM_WORLD, block, all_of, "sum")
            except nvshmem.NvshmemInvalid as error:
                assert "in CPU memory use reduce" in str(error)
            nvshmem.broadcast(Teams.TEAM_WORLD, block, one, root=2)
            assert (block == 3).all()
            other = nvshmem.array(4 * count, dtype=dtype)
            all_of[:] = 10 * me + numpy.repeat(numpy.arange(count), 4)
            nvshmem.alltoall(Teams.TEAM_WORLD, other, all_of)
            assert (other.reshape(count, 4) == 10 * numpy.arange(count)[:, None] + me).all()
        nvshmem.sync(Teams.TEAM_SHARED)
        assert nvshmem.team_n_pes(Teams.TEAM_NODE) == 3 and nvshmem.team_my_pe(Teams.TEAM_SAME_MYPE_NODE) == 0
        a, b = nvshmem.buffer(4 * count), nvshmem.buffer(4)
        nvshmem.collective_on_buffer("fcollect", Teams.TEAM_WORLD, a, b, dtype="int32")
        nvshmem.barrier_all()
        nvshmem.finalize()
    """)


def test_buffers_of_peers_and_what_is_wrong(jobs):
    jobs(2, """
        me, count = begin()
        buffer = nvshmem.buffer(64)
        assert buffer.size == 64 and buffer.handle % 64 == 0
        mine = numpy.from_dlpack(buffer)
        mine[:] = me
        nvshmem.barrier_all()
        theirs = nvshmem.get_peer_buffer(buffer, 1 - me)
        seen = numpy.from_dlpack(theirs)
        assert seen.nbytes == 64 and (seen == 1 - me).all()
        del seen
        nvshmem.free(theirs)  # does nothing
        nvshmem.barrier_all()
        del mine
        nvshmem.free(buffer)
        for wrong, kind in ((lambda: nvshmem.free(buffer), nvshmem.NvshmemError), (lambda: nvshmem.free(7), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.put(numpy.zeros(3), numpy.zeros(3), remote_pe=0), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.put(numpy.zeros(3), numpy.zeros(3)), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.signal_op(nvshmem.array(1, dtype="uint64"), 1, 3, 0), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.team_n_pes(9), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.get_multicast_array(Teams.TEAM_WORLD, None), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.init(initializer_method="ssh"), nvshmem.NvshmemInvalid),
                            (lambda: nvshmem.init(initializer_method="uid", rank=0), nvshmem.NvshmemInvalid)):
            try:
                wrong()
            except kind:
                continue
            raise AssertionError("nothing was raised")
        nvshmem.finalize()
    """)


def test_libraries_in_c_are_in_the_job(jobs):
    """As pplx-kernels: C++ that calls nvshmem_malloc, in a program that has called nvshmem.core.init."""
    jobs(2, """
        import ctypes
        from weft.nvshmem.core import prefix
        me, count = begin()
        library = ctypes.CDLL(prefix.library("libnvshmem_host.so.3"))
        library.nvshmem_malloc.restype = ctypes.c_void_p
        assert (library.nvshmem_my_pe(), library.nvshmem_n_pes(), library.nvshmemx_init_status()) == (me, count, 2)
        library.nvshmem_init()  # counted
        address = library.nvshmem_malloc(ctypes.c_size_t(8))
        words = (ctypes.c_int * 2).from_address(address)
        words[0] = 7 + me
        library.nvshmem_barrier_all()
        library.nvshmem_int_p(ctypes.c_void_p(address + 4), 20 + me, 1 - me)
        library.nvshmem_barrier_all()
        assert list(words) == [7 + me, 21 - me]
        library.nvshmem_free(ctypes.c_void_p(address))
        library.nvshmem_finalize()
        one, other = nvshmem.array(4, dtype="int32"), nvshmem.array(4, dtype="int32")
        one[:] = me
        nvshmem.barrier_all()
        nvshmem.put(other, one, remote_pe=1 - me)
        nvshmem.barrier_all()
        assert (other == 1 - me).all()
        nvshmem.finalize()
        assert library.nvshmemx_init_status() == 0
    """)


def test_an_array_of_numpy_becomes_symmetric(jobs):
    jobs(2, """
        me, count = begin()
        mine = numpy.full(8, me, dtype="int32")
        nvshmem.register_external_array(mine)
        nvshmem.put(mine[:4], numpy.full(4, 7 + me, dtype="int32"), remote_pe=1 - me)
        nvshmem.barrier_all()
        assert list(mine) == [8 - me] * 4 + [me] * 4
        nvshmem.unregister_external_array(mine)
        nvshmem.finalize()
    """)


def test_modules_for_kernels_are_loaded_where_a_program_imports_them(programs):
    programs.ok(1, """
        import weft.nvshmem
        weft.nvshmem.install()
        import nvshmem.core.device
        assert nvshmem.core.device is sys.modules["weft.nvshmem.core.device"] and "numba" not in sys.modules and "triton" not in sys.modules
        for name in ("numba", "triton", "cute"):
            try:
                found = __import__(f"nvshmem.core.device.{name}", fromlist=["jit"])
            except ImportError as error:
                assert name in str(error), error
            else:
                assert found is sys.modules[f"weft.nvshmem.core.device.{name}"] and found.__spec__.name == f"weft.nvshmem.core.device.{name}"
    """)


def test_the_names_shadow_no_other_package(programs):
    done = programs.pes(1, """
        import types
        import weft.nvshmem
        sys.modules["nvshmem"] = types.ModuleType("nvshmem")
        weft.nvshmem.install()
    """)
    assert done.status != 0 and "nvshmem is loaded already" in done.err
