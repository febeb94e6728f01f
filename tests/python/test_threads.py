"""Threads of one PE call at once; each test is a job. Where Python has no GIL, they run in parallel, and Weft must not bring it back.

tests/wheel/test_free_threaded.py runs them with such a Python.
"""

# together(FUNCTION...): runs each in a thread of its own, from the same moment on; raises what one
# of them raised.
TOGETHER = """
import sysconfig, threading

def together(*functions):
    start, failed = threading.Barrier(len(functions)), []
    def run(function):
        start.wait()
        try:
            function()
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if failed: raise failed[0]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()

"""


def jobs_of_threads(programs, count, body):
    return programs.ok(count, TOGETHER + body)


def test_puts_gets_signals_atomics_and_collectives_at_once(programs):
    jobs_of_threads(programs, 2, """
with weft.init() as job:
    other, turns = 1 - job.pe, 200
    rows, signals, words = weft.zeros((2, 256), "int64"), weft.zeros(2, "uint64"), weft.zeros(2, "int64")
    mine = weft.zeros(512, "float32")
    numpy.asarray(mine)[:] = job.pe
    weft.barrier_all()

    def collectives():  # one thread of each PE
        for turn in range(turns // 4):
            array = weft.zeros((turn + 1, 3), "int32")
            weft.put(array, numpy.full((turn + 1, 3), turn, "int32"), other)
            weft.barrier_all()
            assert (numpy.asarray(array) == turn).all() and array._exports == 0
            source, total = weft.empty(4, "int64"), weft.empty(4, "int64")
            numpy.asarray(source)[:] = job.pe + turn
            weft.world.reduce(total, source)
            assert (numpy.asarray(total) == 2 * turn + 1).all()
            for one in (array, source, total): weft.free(one)

    def put_and_wait():  # a word goes to and fro
        for turn in range(1, turns + 1):
            weft.put_signal(rows[0], numpy.full(256, turn), signals[0], other, value=turn)
            assert weft.signal_wait_until(signals[0], ">=", turn) >= turn
            assert numpy.asarray(rows)[0, 255] >= turn

    def post_and_wait_for_any():
        for turn in range(1, turns + 1):
            weft.signal_post(signals[1], other, operation="add")
            assert weft.wait_until_any(signals[1:], ">=", turn) == 0

    def get():
        copy = numpy.empty(512, "float32")
        for turn in range(turns):
            weft.get(copy, mine, other)
            assert (copy == other).all()

    def put_on_a_context():
        for turn in range(turns):
            with weft.Context() as context:
                weft.put_nbi(rows[1, turn:turn + 8], numpy.arange(8), other, context=context)
                context.quiet()

    def count():
        for turn in range(turns):
            weft.atomic_inc(words[0], 0)
            weft.atomic_fetch_add(words[1], 2, 1)

    def be_refused():
        for turn in range(turns):
            for call in (lambda: weft.put(rows[0], numpy.zeros(3), other), lambda: weft.put(rows[9], rows[0], other),
                         lambda: weft.put(rows[0], rows[1], 5)):
                try:
                    call()
                except (weft.Error, IndexError):
                    continue
                raise AssertionError("not refused")

    together(collectives, put_and_wait, post_and_wait_for_any, get, put_on_a_context, count, count, be_refused)
    weft.barrier_all()
    assert weft.atomic_fetch(words[0], 0) == 4 * turns and weft.atomic_fetch(words[1], 1) == 8 * turns
    assert (numpy.asarray(rows)[1, turns - 1:turns + 7] == numpy.arange(8)).all()
""")


def test_a_context_that_threads_close_at_once_is_closed_once(programs):
    jobs_of_threads(programs, 1, """
with weft.init():
    for turn in range(300):
        context = weft.Context()
        together(*[context.close] * 4)
""")


def test_each_thread_has_the_errors_of_its_own_calls(programs):
    jobs_of_threads(programs, 1, """
with weft.init():
    array = weft.zeros(8, "int32")
    def wrong(pe):
        def call():
            for turn in range(500):
                try:
                    weft.put(array, array, pe)
                except weft.InvalidArgument as error:
                    assert f"PE {pe} " in f"{error} ".replace(",", " ").replace(";", " "), error
                else:
                    raise AssertionError("not refused")
        return call
    def right():
        for turn in range(500):
            weft.put(array[4:], array[:4], 0)
    together(wrong(7), wrong(8), wrong(9), right, right)
""")


def test_arrays_may_be_shown_and_let_go_by_many_threads(programs):
    jobs_of_threads(programs, 1, """
with weft.init():
    array = weft.zeros((16, 16), "float64")
    def show():
        for turn in range(300):
            views = [numpy.asarray(array[row]) for row in range(16)], memoryview(array), numpy.from_dlpack(array.reshape(256)), array.peer(0)
            views[0][turn % 16][:] = turn
            assert repr(array) and array[0, 0].shape == ()
    together(*[show] * 6)
    assert array._exports == 0
    weft.free(array)
""")
