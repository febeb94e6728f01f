"""put, get, signals, atomics, order, teams and collectives from Python; each test is a job."""
import pytest


def test_put_and_get_move_what_numpy_holds(programs):
    programs.ok(3, """
        with weft.init() as job:
            inbox = weft.zeros((job.pe_count, 5), "float64")
            right, left = (job.pe + 1) % job.pe_count, (job.pe - 1) % job.pe_count
            weft.put(inbox[job.pe], numpy.full(5, job.pe + 0.5), right)
            weft.barrier_all()
            assert (numpy.asarray(inbox)[left] == left + 0.5).all()
            copy = numpy.zeros((job.pe_count, 5))
            weft.get(copy, inbox, right)
            assert (copy[job.pe] == job.pe + 0.5).all()
            weft.put_nbi(inbox[left], numpy.full(5, 9.0), right)
            weft.quiet()
            weft.get_nbi(copy, inbox, right)
            weft.quiet()
            assert (copy[left] == 9).all()
    """)


def test_a_signal_says_that_the_data_is_there(programs):
    programs.ok(2, """
        with weft.init() as job:
            data, signals = weft.zeros(1000, "int32"), weft.zeros(4, "uint64")
            if job.pe == 0:
                weft.put_signal(data, numpy.arange(1000, dtype="int32"), signals[2], 1, value=7)
                weft.put_signal_nbi(data[:10], numpy.zeros(10, "int32"), signals[3], 1, value=2, operation="add")
                weft.quiet()
                weft.signal_post(signals[1], 1, value=5, operation="add")
            else:
                assert weft.signal_wait_until(signals[2], "==", 7) == 7
                assert weft.signal_wait_until(signals[1], ">", 4) == 5
                assert weft.signal_wait_until(signals[3], "!=", 0) == 2 == weft.signal_fetch(signals[3])
                assert numpy.asarray(data)[10:].sum() == sum(range(10, 1000)) and numpy.asarray(data)[:10].sum() == 0
            weft.barrier_all()
    """)


@pytest.mark.parametrize("nodes", [{}, {"WEFT_NODE_SIZE": "1", "WEFT_NICS": "127.0.0.1"}])
def test_a_list_of_pairs_is_one_put_with_one_signal(programs, nodes):
    programs.ok(2, """
        with weft.init() as job:
            pages, signals = weft.zeros((64, 300), "int32"), weft.zeros(2, "uint64")
            mine = numpy.arange(64 * 300, dtype="int32").reshape(64, 300)
            table = [(i * 37 + 5) % 64 for i in range(64)]
            pairs = [(pages[table[i]], mine[i]) for i in range(50)] + [(pages[table[50]][:7], mine[50][:7])]
            if job.pe == 0:
                weft.putv_signal(pairs, signals[0], 1, value=3)
                weft.putv_signal_nbi([], signals[1], 1, value=1, operation="add")
                weft.putv_nbi([(pages[table[51]], mine[51])], 1)
                weft.putv([(pages[table[52]], mine[52])], 1)
                weft.quiet()
            else:
                weft.signal_wait_until(signals[0], "==", 3)
                here = numpy.asarray(pages)
                assert all((here[table[i]] == mine[i]).all() for i in range(50))
                assert (here[table[50]][:7] == mine[50][:7]).all() and (here[table[50]][7:] == 0).all()
                weft.signal_wait_until(signals[1], "==", 1)
            weft.barrier_all()
            here = numpy.asarray(pages)
            assert all((here[table[i]] == (mine[i] if job.pe else 0)).all() for i in (51, 52))
            for wrong, words in [([(pages[0], mine[0]), (mine[1], mine[1])], "weft.putv: segment 1 of 2: "),
                                 ([(pages[0], mine[0][:5])], "weft.putv: pair 0: "), ([pages[0]], "is not (dest, source)")]:
                try:
                    weft.putv(wrong, 1)
                    raise AssertionError(words)
                except weft.Error as error:
                    assert words in str(error), error
            weft.barrier_all()
    """, **nodes)


def test_atomics_of_all_pes_on_one_word_add_up(programs):
    programs.ok(3, """
        with weft.init() as job:
            for name in ("int32", "int64", "uint32", "uint64"):
                words = weft.zeros(2, name)
                for _ in range(100):
                    weft.atomic_add(words[0], 2, 0)
                    weft.atomic_inc(words[0], 0)
                seen = weft.atomic_fetch_add(words[1], 1, 0)
                assert 0 <= seen < job.pe_count
                weft.barrier_all()
                assert weft.atomic_fetch(words[0], 0) == 300 * job.pe_count
                weft.barrier_all()
                if job.pe == 0:
                    assert weft.atomic_swap(words[1], 6, 0) == job.pe_count
                    assert weft.atomic_compare_swap(words[1], 6, 12, 0) == 6
                    assert weft.atomic_fetch_and(words[1], 8, 0) == 12 and weft.atomic_fetch_or(words[1], 1, 0) == 8
                    assert weft.atomic_fetch_xor(words[1], 1, 0) == 9 and weft.atomic_fetch_inc(words[1], 0) == 8
                    weft.atomic_set(words[1], 5, 0)
                    weft.atomic_and(words[1], 4, 0), weft.atomic_or(words[1], 3, 0), weft.atomic_xor(words[1], 1, 0)
                    weft.quiet()
                    assert weft.atomic_fetch(words[1], 0) == 6
                weft.barrier_all()
            real = weft.zeros(1, "float64")
            assert weft.atomic_swap(real, 1.5, job.pe) == 0 and weft.atomic_fetch(real, job.pe) == 1.5
    """)


def test_contexts_have_their_own_quiet(programs):
    programs.ok(2, """
        with weft.init() as job:
            array = weft.zeros(10, "int64")
            with weft.Context() as context:
                weft.put_nbi(array, numpy.arange(10), 1 - job.pe, context=context)
                weft.fence(context)
                weft.atomic_inc(array[0], 1 - job.pe, context=context)
                context.quiet()
            weft.barrier_all()
            assert numpy.asarray(array).tolist() == [1, *range(1, 10)]
    """)


def test_collectives_over_all_pes(programs):
    programs.ok(4, """
        with weft.init() as job:
            me, n = job.pe, job.pe_count
            source, dest = weft.zeros((n, 3), "int32"), weft.zeros((n, 3), "int32")
            sent, got = numpy.asarray(source), numpy.asarray(dest)
            sent[:] = numpy.arange(n)[:, None] * 10 + me
            weft.barrier_all()
            weft.world.alltoall(dest, source)
            assert (got == me * 10 + numpy.arange(n)[:, None]).all()
            weft.world.sync()
            weft.world.broadcast(dest, source, root=2)
            assert (got == numpy.arange(n)[:, None] * 10 + 2).all()
            weft.world.sync()
            weft.world.fcollect(dest, source[1])
            assert (got == 10 + numpy.arange(n)[:, None]).all()
            weft.world.sync()
            for name, expected in (("sum", numpy.sum), ("max", numpy.max), ("min", numpy.min), ("prod", numpy.prod)):
                weft.world.reduce(dest, source, name)
                assert (got[1] == expected([10 + pe for pe in range(n)])).all(), name
                weft.world.sync()
            weft.world.inclusive_scan(dest, source)
            assert (got[0] == sum(range(me + 1))).all()
            weft.world.exclusive_scan(dest, source)
            assert (got[0] == sum(range(me))).all()
    """)


@pytest.mark.parametrize("node_size", ["0", "1"])
def test_parts_of_different_sizes_are_collected(programs, node_size):
    done = programs.ok(3, """
        with weft.init() as job:
            for scale in (1, 20000):  # short parts travel in another way than long ones
                source, dest = weft.zeros(2 * scale, "int64"), weft.zeros(4 * scale, "int64")
                numpy.asarray(source)[:] = job.pe + 1
                weft.barrier_all()
                counts = weft.world.collect(dest, source[:job.pe * scale])
                assert counts == [0, scale, 2 * scale], counts
                assert numpy.asarray(dest).tolist() == [2] * scale + [3] * 2 * scale + [0] * scale
                weft.barrier_all()
                try:
                    weft.world.collect(dest[:scale] if job.pe == 1 else dest, source)
                except weft.WrongShape as error:
                    say(error)
            try:
                weft.world.collect(dest, weft.zeros(2, "float64" if job.pe else "int64"))
            except weft.Error as error:
                say(type(error).__name__)
    """, WEFT_NODE_SIZE=node_size)
    assert done.lines().count("Team.collect: the PEs bring 6 elements, and dest of PE 1 has room for 1; make dest larger") == 3


@pytest.mark.parametrize("node_size", ["0", "1"])
def test_columns_travel_as_views_with_gaps(programs, node_size):
    programs.ok(2, """
        with weft.init() as job:
            table, other = weft.zeros((6, 8), "int32"), 1 - job.pe
            mine = numpy.arange(48, dtype="int32").reshape(6, 8) + 100 * job.pe
            expected = numpy.zeros((6, 8), "int32")
            def to(slices):  # what the other PE puts there
                expected[slices] = (numpy.arange(48, dtype="int32").reshape(6, 8) + 100 * other)[slices]
            for slices in (slice(None), 3), (slice(1, None, 2), slice(0, 8, 3)), (slice(0, 1), slice(0, 1)), (2, slice(4, 8)), (5, 7):
                weft.iput(table[slices], mine[slices], other)
                to(slices)
            weft.barrier_all()
            assert (numpy.asarray(table) == expected).all(), numpy.asarray(table)
            weft.barrier_all()

            got = numpy.full((3, 4), -1, "int32")
            weft.iget(got[:, ::2], table[3:, 3:8:4], other)  # columns 3 and 7 of the other, into columns 0 and 2
            theirs = numpy.zeros((6, 8), "int32")
            weft.get(theirs, table, other)
            assert (got[:, ::2] == theirs[3:, 3:8:4]).all() and (got[:, 1::2] == -1).all()

            cube, block = weft.zeros((2, 3, 4), "float64"), numpy.arange(24.0).reshape(4, 3, 2).transpose(2, 1, 0)
            with weft.Context() as context:
                weft.iput(cube, block, other, context=context)
            weft.barrier_all()
            assert (numpy.asarray(cube) == block).all()
            weft.iput(cube[:, :0], block[:, :0], other)  # nothing
            weft.barrier_all()
    """, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("node_size", ["0", "2"])
def test_one_of_several_words_is_waited_for(programs, node_size):
    programs.ok(4, """
        with weft.init() as job:
            signals, data = weft.zeros(job.pe_count, "uint64"), weft.zeros((job.pe_count, 1000), "int64")
            if job.pe == 0:
                done = [True] + [False] * (job.pe_count - 1)
                for pe in 3, 1, 2:
                    weft.signal_post(signals[pe], pe, value=5)
                    assert weft.wait_until_any(signals, ">=", 1, done=done) == pe
                    assert (numpy.asarray(data)[pe] == pe).all()
                    done[pe] = True
                assert weft.wait_until_any(signals, ">=", 1, done=done) is None
                weft.signal_post(signals[0], 0, value=9)
                assert weft.wait_until_some(signals, "!=", 0, done=[1, 0, 0, 0]) == [1, 2, 3]
                assert weft.wait_until_some(signals, "!=", 0, done=[True] * job.pe_count) == []
                weft.wait_until_all(signals, ">=", 1)
                assert weft.signal_fetch(signals[0]) == 9
            else:
                weft.signal_wait_until(signals[job.pe], "==", 5)
                weft.put_signal(data[job.pe], numpy.full(1000, job.pe), signals[job.pe], 0)
            weft.barrier_all()
            for name in ("int32", "int64", "uint32", "uint64"):
                words = weft.zeros(3, name)
                weft.atomic_set(words[2], 4, (job.pe + 1) % job.pe_count)
                weft.atomic_add(words[0], 4, (job.pe + 1) % job.pe_count)
                assert weft.wait_until_any(words, ">", 3) in (0, 2)
                weft.wait_until_all(words, "==", 4, done=numpy.array([0, 1, 0]))
                assert weft.wait_until_some(words, "==", 4) == [0, 2]
                weft.barrier_all()
    """, WEFT_NODE_SIZE=node_size)


def test_teams_number_their_own_pes(programs):
    programs.ok(4, """
        with weft.init() as job:
            assert weft.world.pe == job.pe and weft.node.pe_count == 4
            even = weft.world.split(0, 2, 2)
            assert even.is_member == (job.pe % 2 == 0)
            row, column = weft.world.split_2d(2)
            assert row.pe == job.pe % 2 and column.pe == job.pe // 2
            source, dest = weft.zeros(1, "int64"), weft.zeros(2, "int64")
            numpy.asarray(source)[0] = job.pe
            weft.barrier_all()
            if even.is_member:
                even.fcollect(dest, source)
                assert numpy.asarray(dest).tolist() == [0, 2]
                assert even.translate(1, weft.world) == 2
            column.reduce(source, source)
            weft.barrier_all()
            assert numpy.asarray(source)[0] == 2 * (job.pe % 2) + 2
            for team in (even, row, column):
                team.destroy()
    """)


def test_threads_run_while_one_waits_in_a_call(programs):
    programs.ok(2, """
        import threading
        with weft.init() as job:
            signals = weft.zeros(2, "uint64")
            if job.pe == 0:
                waiter = threading.Thread(target=weft.signal_wait_until, args=(signals[0], "==", 1))
                waiter.start()
                weft.signal_post(signals[1], 1)  # this thread has the GIL while the other waits
                waiter.join()
            else:
                weft.signal_wait_until(signals[1], "==", 1)
                weft.signal_post(signals[0], 0)
    """)


def test_many_threads_put_at_once(programs):
    programs.ok(2, """
        import threading
        with weft.init() as job:
            table = weft.zeros((8, 1000), "int64")
            def fill(row):
                for start in range(0, 1000, 10):
                    weft.put(table[row, start:start + 10], numpy.full(10, row), 1 - job.pe)
            threads = [threading.Thread(target=fill, args=(row,)) for row in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            weft.barrier_all()
            assert (numpy.asarray(table) == numpy.arange(8)[:, None]).all()
    """)


def test_threads_that_make_views_put_and_count_at_once(programs):
    """Of one array, also where Python has no GIL."""
    programs.ok(2, """
        import threading
        with weft.init() as job:
            array, counter = weft.zeros((8, 64), "int64"), weft.zeros(1, "int64")
            weft.barrier_all()
            def work(row):
                for turn in range(300):
                    mine = numpy.asarray(array[row])
                    weft.put(array[row], numpy.full(64, turn), job.pe)
                    assert mine[0] == turn and array._exports >= 1
                    weft.atomic_add(counter, 1, 1 - job.pe)
                    del mine
            failed = []
            threading.excepthook = lambda arguments: failed.append(arguments.exc_value)
            threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            weft.barrier_all()
            assert not failed, failed
            assert numpy.asarray(counter)[0] == 2400 and array._exports == 0
    """)
