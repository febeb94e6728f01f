"""Symmetric arrays: memory that numpy and others see without a copy, views, and who frees what."""


def test_numpy_and_dlpack_and_memoryview_see_the_same_memory(programs):
    programs.ok(2, """
        with weft.init():
            array = weft.zeros((3, 4), "float32")
            by_buffer, by_dlpack, view = numpy.asarray(array), numpy.from_dlpack(array), memoryview(array)
            assert by_buffer.ctypes.data == by_dlpack.ctypes.data == array.address
            assert by_buffer.shape == by_dlpack.shape == view.shape == (3, 4)
            assert by_buffer.dtype == by_dlpack.dtype == numpy.float32
            by_buffer[1, 2] = 7
            assert by_dlpack[1, 2] == view[1, 2] == 7
    """)


def test_every_element_type_of_numpy_keeps_its_name_and_size(programs):
    programs.ok(1, """
        with weft.init():
            for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                         "float64", "complex64", "complex128", "bool"):
                array = weft.zeros(3, numpy.dtype(name))
                seen = numpy.asarray(array)
                assert seen.dtype == numpy.dtype(name) and array.dtype == name and array.itemsize == seen.itemsize
            assert weft.zeros(2, float).dtype == "float64" and weft.zeros(2, numpy.int16).dtype == "int16"
    """)


def test_types_that_the_buffer_protocol_lacks_say_so(programs):
    done = programs.ok(1, """
        with weft.init():
            array = weft.zeros(4, "bfloat16")
            assert array.nbytes == 8
            try:
                memoryview(array)
            except BufferError as error:
                print(error)
    """)
    assert "has no bfloat16; use torch.from_dlpack" in done.out


def test_views_by_index_slice_and_reshape_share_memory(programs):
    programs.ok(1, """
        with weft.init():
            array = weft.zeros((4, 6), "int32")
            numbers = numpy.asarray(array)
            numbers[:] = numpy.arange(24).reshape(4, 6)
            for key in (0, -1, (1, 2), slice(1, 3), (slice(None), 2), (Ellipsis, 1), (1, Ellipsis), (slice(0, 4, 2), slice(1, 5, 3)),
                        Ellipsis, (slice(3, 1), 0)):
                view = array[key]
                assert view.shape == numbers[key].shape, key
                assert (numpy.asarray(view) == numbers[key]).all(), key
                assert view.is_contiguous == numbers[key].flags.c_contiguous or view.size <= 1, key
            assert array.reshape(2, -1).shape == (2, 12) and array.reshape((24,)).address == array.address
            assert len(array) == 4 and array.nbytes == 96 and array.strides == (6, 1)
    """)


def test_a_peers_memory_is_written_and_read_as_an_array(programs):
    programs.ok(3, """
        with weft.init() as job:
            array = weft.zeros(4, "int64")
            right = (job.pe + 1) % job.pe_count
            assert weft.is_mapped(array, right)
            numpy.asarray(array.peer(right))[:] = job.pe
            weft.barrier_all()
            assert (numpy.asarray(array) == (job.pe - 1) % job.pe_count).all()
            assert array.peer(right).is_peer and array[1:].peer(right).shape == (3,)
    """)


def test_memory_of_numpy_becomes_symmetric_without_a_copy(programs):
    programs.ok(2, """
        with weft.init() as job:
            mine = numpy.zeros(1000)
            assert weft.register(mine) is mine
            weft.put(mine[10:20], numpy.full(10, job.pe + 1.0), 1 - job.pe)
            weft.barrier_all()
            assert (mine[10:20] == 2 - job.pe).all() and mine[:10].sum() == 0
            weft.unregister(mine)
    """)


def test_what_one_pe_cannot_register_no_pe_registers(programs):
    programs.ok(3, """
        with weft.init() as job:
            mine = numpy.zeros(8)
            try:
                weft.register(mine[::2] if job.pe == 1 else mine)
            except weft.Error as error:
                expected = weft.NotContiguous if job.pe == 1 else weft.Mismatch
                assert type(error) is expected and "has gaps" in str(error), repr(error)
            else:
                raise AssertionError("no exception")
            weft.register(mine)
            weft.unregister(mine)
    """)


def test_free_gives_memory_back(programs):
    programs.ok(2, """
        with weft.init():
            for _ in range(20):
                array = weft.empty(1 << 20, "uint8")
                weft.free(array)
                assert array.is_freed
    """)


def test_free_is_refused_on_all_pes_while_one_has_a_view(programs):
    done = programs.ok(3, """
        with weft.init() as job:
            array = weft.zeros(4)
            view = numpy.asarray(array) if job.pe == 1 else None
            try:
                weft.free(array)
            except weft.Error as error:
                say(f"{job.pe} {type(error).__name__}: {error}")
            del view
            weft.free(array)
    """)
    own = "weft.free: 1 numpy arrays, tensors or memory views over the array are alive; delete them first"
    assert done.lines() == [f"0 Mismatch: weft.free: PE 1 could not take part: {own}", f"1 InvalidArgument: {own}",
                            f"2 Mismatch: weft.free: PE 1 could not take part: {own}"]


def test_numpy_arrays_keep_their_contents_after_finalize(programs):
    programs.ok(2, """
        with weft.init() as job:
            array = weft.zeros((100, 100), "int32")
            other = weft.zeros(7, "int8")
            numbers, few = numpy.asarray(array), numpy.from_dlpack(other)
            weft.put(array[5], numpy.full(100, job.pe + 1, "int32"), 1 - job.pe)
            few[:] = 3
        assert numbers[5].sum() == 100 * numbers[5, 0] and numbers[5, 0] in (1, 2)
        numbers[7] = 9
        assert numbers[7].sum() == 900 and few.sum() == 21
        assert array.is_freed
    """)


def test_an_empty_array_is_no_special_case(programs):
    programs.ok(2, """
        with weft.init() as job:
            array = weft.zeros((0, 5))
            assert numpy.asarray(array).shape == (0, 5)
            weft.put(array, numpy.zeros((0, 5), "float32"), 0)
            weft.free(array)
    """)


def test_other_libraries_of_dlpack_are_sources_and_targets(programs):
    programs.ok(1, """
        class Foreign:  # what CuPy and JAX have: DLPack, and no buffer
            def __init__(self, array):
                self.array = array
            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)
            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        with weft.init():
            array = weft.zeros(4, "float32")
            weft.put(array, Foreign(numpy.arange(4, dtype="float32")), 0)
            back = numpy.zeros(4, "float32")
            weft.get(Foreign(back), array, 0)
            assert (back == numpy.arange(4)).all()
    """)


def test_help_shows_the_texts_of_the_stub(programs):
    done = programs.ok(1, """
        for name in ("put", "get_nbi", "quiet", "signal_wait_until", "atomic_fetch_add", "Array", "Team", "Context", "zeros", "init"):
            assert len(getattr(weft, name).__doc__) > 20, name
        assert "source may be reused" in weft.put.__doc__ and "bitwise" in weft.Team.reduce.__doc__
    """)
    assert done.err == ""


def test_other_libraries_arrays_stay_what_they_are(programs):
    """Read-only arrays of numpy are sources and no targets; an array of another byte order moves nowhere."""
    programs.ok(1, """
        with weft.init():
            array = weft.zeros(4, "float32")
            constant = numpy.arange(4, dtype="f")
            constant.flags.writeable = False
            weft.put(array, constant, 0)
            assert (numpy.asarray(array) == constant).all()
            try:
                weft.put(array, constant.astype(">f4"), 0)
            except weft.WrongDtype as error:
                assert "'>f'" in str(error)
            else:
                raise AssertionError("bytes of another order were moved")
    """)


def test_elements_are_read_and_written_as_numbers(programs):
    programs.ok(1, """
        with weft.init():
            array = weft.zeros((2, 3), "int32")
            array[0] = 5
            array[1, :] = [1, 2, 3]
            array[:, 2] = numpy.array([7, 8], "int32")
            assert array.tolist() == [[5, 5, 7], [1, 2, 8]] == numpy.asarray(array).tolist()
            assert array[0, 2].item() == 7 and int(array[1, 0]) == 1 and float(array[1, 1]) == 2.0 and [4, 5, 6][array[1, 0]] == 5
            array[...] = weft.zeros((2, 3), "int32")
            assert array.tolist() == [[0] * 3] * 2
            array[0, 0] = numpy.int64(9)
            assert array[0, 0].item() == 9 and weft.zeros(1).reshape(()).tolist() == 0.0
            for name, value in (("int8", -7), ("int16", -300), ("int64", -1 << 40), ("uint8", 200), ("uint16", 60000), ("uint32", 1 << 31),
                                ("uint64", (1 << 64) - 1), ("float16", 1.5), ("float32", -0.25), ("float64", 1e300), ("complex64", 1 - 2j),
                                ("complex128", 3j), ("bool", True), ("bfloat16", -1.5)):
                array = weft.zeros(3, name)
                array[1] = value
                assert array[1].item() == value and type(array[1].item()) is type(value), name
                assert array.tolist() == [type(value)(0), value, type(value)(0)], name
                assert complex(array[1]) == complex(value)
            gaps = weft.zeros(6, "float32")
            gaps[::2] = numpy.arange(3, dtype="float32")
            assert gaps.tolist() == [0, 0, 1, 0, 2, 0] and gaps[::2].tolist() == [0, 1, 2]
    """)


def test_bfloat16_is_rounded_to_the_nearest(programs):
    programs.ok(1, """
        with weft.init():
            array = weft.zeros(1, "bfloat16")
            for value, rounded in ((1.00390625, 1.0), (1.01171875, 1.015625), (1.0078125, 1.0078125), (float("inf"), float("inf"))):
                array[0] = value
                assert array.item() == rounded, (value, array.item())
            array[0] = float("nan")
            assert array.item() != array.item()
    """)


def test_objects_print_what_they_are(programs):
    programs.ok(2, """
        job = weft.init()
        array = weft.zeros(4, "int64")
        array[2] = 7
        assert repr(array) == "weft.Array([0, 0, 7, 0], shape=(4,), dtype=int64, device=cpu)", repr(array)
        assert repr(weft.zeros(1000)) == "weft.Array(shape=(1000,), dtype=float32, device=cpu)"
        assert repr(weft.zeros(1, "float8_e5m2")) == "weft.Array(shape=(1,), dtype=float8_e5m2, device=cpu)"
        weft.free(array)
        assert repr(array) == "weft.Array(shape=(4,), dtype=int64, device=cpu, freed)"
        assert repr(weft.world) == f"weft.Team(world, PE {job.pe} of 2)"
        part = weft.world.split(0, 1, 1)
        assert repr(part) == ("weft.Team(PE 0 of 1)" if job.pe == 0 else "weft.Team(this PE is no member)")
        part.destroy()
        assert job.pe == 1 or repr(part) == "weft.Team(destroyed)"
        job.finalize()
        assert repr(weft.node) == "weft.Team(node, no job runs)"
    """)
