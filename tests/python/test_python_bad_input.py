"""Bad input: one exception each, of the class that docs/PYTHON.md names, whose text says what to do."""
import os
import shutil
import subprocess

import pytest

from jobs import Programs, programs_of

# What is wrong: the call, the class, words of the text. `a` is a symmetric array of 4 float32, `s`
# one of 4 uint64.
CASES = {
    "the element types differ": ("weft.put(a, numpy.zeros(4), 0)", "WrongDtype", "dest is of float32 and source of float64; convert"),
    "a type that is none": ("weft.zeros(4, 'float31')", "WrongDtype", "give one of int8"),
    "a list is no array": ("weft.put(a, [1, 2, 3, 4], 0)", "WrongDtype", "source is a list; give a weft.Array"),
    "None is no source": ("weft.put(a, None, 0)", "WrongDtype", "weft.put: source is a NoneType; give a weft.Array"),
    "None is no dest": ("weft.get_nbi(None, a, 0)", "WrongDtype", "weft.get_nbi: dest is a NoneType; give a weft.Array"),
    "None is no signal": ("weft.put_signal(a, a, None, 0)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None is no signal to wait for": ("weft.signal_wait_until(None, '==', 1)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None is no word": ("weft.atomic_add(None, 1, 0)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None are no words": ("weft.wait_until_all(None, '==', 0)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None is no side of a strided put": ("weft.iput(a[::2], None, 0)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None is no part of a pair": ("weft.putv([(a, None)], 0)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "None is no side of a collective": ("weft.world.reduce(a, None)", "WrongDtype", "is a NoneType; give a weft.Array"),
    "many elements are no number": ("int(a)", "TypeError", "an array of shape (4,) is not one number; take one of its elements"),
    "a number that does not fit": ("s[0] = -1", "InvalidArgument", "Array[...] = -1: this is no uint64"),
    "an assignment of another size": ("a[:] = [1, 2]", "WrongShape", "2 values for an array of shape (4,)"),
    "an assignment of another type": ("a[:] = numpy.zeros(4)", "WrongDtype", "the array is of float32 and the value of float64"),
    "an assignment of None": ("a[0] = None", "WrongDtype", "is a NoneType; give a weft.Array"),
    "an item of a freed array": ("weft.free(a); a[0].item()", "Freed", "freed by weft.free"),
    "objects of numpy are no numbers": ("weft.put(a, numpy.array(['x'] * 4), 0)", "WrongDtype", "which Weft does not move"),
    "the sizes differ": ("weft.put(a, numpy.zeros(3, 'f'), 0)", "WrongShape", "dest has 4 elements and source 3; slice"),
    "a negative shape": ("weft.zeros((2, -3))", "WrongShape", "that are not negative"),
    "a shape of floats": ("weft.zeros((2.5,))", "WrongShape", "give an integer or a tuple of integers"),
    "a view with gaps": ("weft.put(a[::2], numpy.zeros(2, 'f'), 0)", "NotContiguous", "dest is a view with gaps; give a contiguous one"),
    "a source with gaps": ("weft.put(a, numpy.zeros((4, 2), 'f')[:, 0], 0)", "NotContiguous", "source is a view with gaps"),
    "an array that is not symmetric": ("weft.put(numpy.zeros(4, 'f'), a, 0)", "NotSymmetric", "make it with weft.empty"),
    "a source of get that is not symmetric": ("weft.get(a, numpy.zeros(4, 'f'), 0)", "NotSymmetric", "make it with weft.empty"),
    "a collective on what is not symmetric": ("weft.world.broadcast(a, numpy.zeros(4, 'f'))", "NotSymmetric", "make it with weft.empty"),
    "a target that is read-only": ("weft.get(b'1234' * 4, a.reshape(4), 0)", "InvalidArgument", "cannot be written to"),
    "no such PE": ("weft.put(a, a, 1)", "InvalidArgument", "there is no PE 1; PEs are 0 to 0"),
    "a negative PE": ("weft.get(a, a, -1)", "InvalidArgument", "there is no PE -1"),
    "a peer that does not exist": ("a.peer(5)", "InvalidArgument", "there is no PE 5; PEs are 0 to 0"),
    "a stream for memory of the CPU": ("weft.put(a, a, 0, stream=0)", "WrongDevice", "stream= is for arrays in GPU memory"),
    "a device that is none": ("weft.zeros(4, device='tpu')", "WrongDevice", "give \"cpu\", \"cuda\""),
    "no CUDA": ("weft.zeros(4, device='cuda')", "NoCuda", "no NVIDIA driver was found"),
    "a signal of another type": ("weft.signal_wait_until(a[0], '==', 0)", "WrongDtype", "a signal is one element of uint64"),
    "many signals": ("weft.signal_fetch(s)", "WrongShape", "give one: signals[i]"),
    "a comparison that is none": ("weft.signal_wait_until(s[0], '=', 0)", "InvalidArgument", "it is one of ==, !="),
    "a signal's operation that is none": ("weft.signal_post(s[0], 0, operation='mul')", "InvalidArgument", "it is 'set' or 'add'"),
    "an atomic on floats": ("weft.atomic_add(a[0], 1, 0)", "WrongDtype", "this atomic is for int32"),
    "an atomic on many": ("weft.atomic_add(s, 1, 0)", "WrongShape", "an atomic is on one: array[i]"),
    "an atomic of a number that does not fit": ("weft.atomic_add(s[0], -1, 0)", "InvalidArgument", "the value -1"),
    "a strided put of another shape": ("weft.iput(a[::2], numpy.zeros((1, 2), 'f'), 0)", "WrongShape", "dest has the shape (2) and source (1, 2)"),
    "a strided put of another type": ("weft.iput(a[::2], numpy.zeros(2), 0)", "WrongDtype", "dest is of float32 and source of float64; convert"),
    "a strided put backward": ("weft.iput(a, numpy.zeros(4, 'f')[::-1], 0)", "InvalidArgument", "give a view whose strides are positive"),
    "a strided put from a list": ("weft.iput(a, [1, 2, 3, 4], 0)", "WrongDtype", "source is a list; give a weft.Array"),
    "a strided put to what is not symmetric": ("weft.iput(numpy.zeros(8, 'f')[::2], a, 0)", "NotSymmetric", "make it with weft.empty"),
    "a strided get to what is read-only": ("weft.iget(numpy.frombuffer(b'1234' * 4, 'f'), a, 0)", "InvalidArgument", "cannot be written to"),
    "a strided put to no PE": ("weft.iput(a[::2], a[::2], 3)", "InvalidArgument", "there is no PE 3"),
    "a wait for floats": ("weft.wait_until_any(a, '==', 0)", "WrongDtype", "waits are for int32, int64, uint32 and uint64"),
    "a wait for what is not symmetric": ("weft.wait_until_all(numpy.zeros(2, 'u8'), '==', 0)", "NotSymmetric", "make it with weft.empty"),
    "a wait for a value that does not fit": ("weft.wait_until_all(s, '==', -1)", "InvalidArgument", "the value -1"),
    "a wait with half of a mask": ("weft.wait_until_some(s, '==', 0, done=[1, 0])", "WrongShape", "done has 2 elements for 4 words"),
    "a dest without room": ("weft.world.collect(a[:2], a)", "WrongShape", "the PEs bring 4 elements, and dest of PE 0 has room for 2"),
    "a reduction that is none": ("weft.world.reduce(a, a, 'mean')", "InvalidArgument", "it is one of sum"),
    "a reduction over half floats": ("h = weft.zeros(2, 'float16'); weft.world.reduce(h, h)", "WrongDtype", "no reduction over float16"),
    "a dest too small": ("weft.world.fcollect(a, s)", "WrongDtype", "convert one of them"),
    "a team that does not fit": ("weft.world.split(0, 1, 7)", "InvalidArgument", ""),
    "a freed array": ("weft.free(a); weft.put(a, a, 0)", "Freed", "the array was freed by weft.free; allocate another"),
    "a view of a freed array": ("v = a[1:]; weft.free(a); v.peer(0)", "Freed", "freed by weft.free"),
    "freed twice": ("weft.free(a); weft.free(a)", "Freed", "freed already"),
    "a view cannot be freed": ("weft.free(a[1:])", "InvalidArgument", "free the array that weft.empty"),
    "numpy cannot be freed": ("weft.free(numpy.zeros(3))", "InvalidArgument", "give the weft.Array"),
    "after finalize": ("job.finalize(); weft.put(a, a, 0)", "NotInitialized", "left its job by weft.finalize; call weft.init() again"),
    "an array after finalize": ("job.finalize(); weft.init(); weft.put(a, a, 0)", "Freed", "freed by weft.finalize"),
    "finalized twice": ("job.finalize(); weft.finalize()", "NotInitialized", "call weft.init()"),
    "initialized twice": ("weft.init()", "Error", "in a job already; call weft.finalize() first"),
    "a closed context": ("c = weft.Context(); c.close(); weft.put(a, a, 0, context=c)", "InvalidArgument", "make another weft.Context()"),
    "the heap is full": ("weft.zeros(1 << 40)", "OutOfMemory", ""),
    "a group that is none": ("job.finalize(); weft.init(group=3)", "InvalidArgument", "give a process group of torch.distributed"),
    "half of an id": ("job.finalize(); weft.init(pe=0)", "InvalidArgument", "belong together; give all three"),
    "an id that is none": ("job.finalize(); weft.init(pe=0, pe_count=1, unique_id=b'x')", "InvalidArgument", "give the one that weft.unique_id"),
    "a pickle": ("import pickle; pickle.dumps(a)", "InvalidArgument", "cannot be pickled"),
    "a tensor of a GPU that this PE has not taken": ("t = type('T', (), {'device': 'cuda:0', 'data_ptr': None})(); weft.register(t)", "WrongDevice",
                                                     "the memory is on cuda:0, and this PE has taken no GPU; make an array"),
    "an array of a GPU that this PE has not taken": ("t = type('T', (), {'__cuda_array_interface__': {}})(); weft.register(t)", "WrongDevice", "this PE has taken no GPU"),
    "a tensor of no known device": ("t = type('T', (), {'device': 'mps', 'data_ptr': None})(); weft.register(t)", "WrongDevice", "there is no device 'mps'"),
    "a negative step": ("a[::-1]", "InvalidArgument", "goes forward"),
}


@pytest.fixture(scope="module")
def answers(request, tmp_path_factory):
    """{case: what it raised}: one program runs all of them, each in a job of its own."""
    programs = programs_of(Programs, request, tmp_path_factory.mktemp("bad_input"))
    done = programs.run(programs.python, programs.write(f"""
for name, call in {[(name, case[0]) for name, case in CASES.items()]!r}:
    job = weft.init()
    a, s = weft.zeros(4, "float32"), weft.zeros(4, "uint64")
    try:
        exec(call)
    except (weft.Error, TypeError) as error:
        say(name, "|", type(error).__name__, "|", error)
    if weft.initialized():
        weft.finalize()
"""))
    assert done.status == 0, done.err
    return {name: rest for name, _, rest in (line.partition(" | ") for line in done.lines())}


@pytest.mark.parametrize("name", CASES)
def test_one_exception_says_what_to_do(answers, name):
    _, kind, words = CASES[name]
    line = answers[name]
    raised, _, text = line.partition(" | ")
    assert raised == kind and words in text, line
    assert text.startswith(("weft.", "weft: ", "Array", "Team", "a symmetric", "this PE", "int: ")), text


def test_without_torch_only_its_module_is_missed(programs):
    done = programs.ok(1, """
        sys.modules["torch"] = None  # as if it were not installed
        with weft.init():
            weft.zeros(4)
            try:
                import weft.torch
            except weft.NoTorch as error:
                say(error)
    """)
    (line,) = done.lines()
    assert "pip install torch" in line, line


def test_before_init_every_call_says_to_call_init(programs):
    done = programs.ok(1, """
        calls = {"put": (1, 2, 0), "zeros": (4,), "barrier_all": (), "pe": (), "quiet": (), "signal_fetch": (1,), "atomic_inc": (1, 0),
                 "finalize": (), "Context": ()}
        for name, arguments in calls.items():
            try:
                getattr(weft, name)(*arguments)
            except weft.NotInitialized as error:
                assert "call weft.init() first" in str(error)
                say(name)
    """)
    assert len(done.lines()) == 9, done.out


def test_different_shapes_are_named_on_all_pes(programs):
    done = programs.ok(3, """
        with weft.init() as job:
            try:
                weft.zeros((8,) if job.pe == 1 else (4, 2))
            except weft.Mismatch as error:
                say(error)
            assert weft.zeros(3).shape == (3,)  # and the job goes on
    """)
    assert set(done.lines()) == {"weft.zeros: the PEs differ: weft.zeros of (4, 2) of float32 on cpu on PE 0, 2; weft.zeros of (8,) of "
                                 "float32 on cpu on PE 1; call it with the same arguments on all PEs"}
    assert len(done.lines()) == 3


@pytest.mark.parametrize("dtype, shown", [("'float31'", "'float31'"), ("numpy.dtype('>i4')", "dtype('>i4')")])
def test_a_wrong_argument_on_one_pe_is_heard_on_all(programs, dtype, shown):
    done = programs.ok(2, f"""
        with weft.init() as job:
            try:
                weft.zeros(4, {dtype} if job.pe == 1 else "float32")
            except weft.Error as error:
                say(job.pe, type(error).__name__, error)
    """)
    first, second = done.lines()
    assert first.startswith(f"0 Mismatch weft.zeros: PE 1 could not take part: weft.zeros: there is no element type {shown}")
    assert second.startswith(f"1 WrongDtype weft.zeros: there is no element type {shown}; give one of")


# What PE 1 calls, what the others do, and what all raise.
DIFFERENT = {
    "another root": ("weft.world.broadcast(d, s, root=1)", "weft.world.broadcast(d, s)",
                     "Team.broadcast of 8 int64, root 0 on PE 0, 2; Team.broadcast of 8 int64, root 1 on PE 1"),
    "another number of elements": ("weft.world.reduce(d[:4], s[:4])", "weft.world.reduce(d, s)",
                                   "Team.reduce (sum) of 8 int64 on PE 0, 2; Team.reduce (sum) of 4 int64 on PE 1"),
    "another reduction": ("weft.world.reduce(d, s, 'max')", "weft.world.reduce(d, s)",
                          "Team.reduce (sum) of 8 int64 on PE 0, 2; Team.reduce (max) of 8 int64 on PE 1"),
    "another type of as many bytes": ("weft.world.fcollect(e, f)", "weft.world.fcollect(d[:6], s[:2])",
                                      "Team.fcollect of 2 int64 on PE 0, 2; Team.fcollect of 2 float64 on PE 1"),
    "another collective": ("weft.world.alltoall(d[:6], s[:6])", "weft.world.exclusive_scan(d, s)",
                           "Team.exclusive_scan (sum) of 8 int64 on PE 0, 2; Team.alltoall of 6 int64 on PE 1"),
    "a barrier": ("weft.barrier_all()", "weft.world.inclusive_scan(d, s)",
                  "Team.inclusive_scan (sum) of 8 int64 on PE 0, 2; weft.barrier_all on PE 1"),
    "an allocation": ("weft.zeros(4)", "weft.world.sync()", "Team.sync on PE 0, 2; weft.zeros of (4,) of float32 on cpu on PE 1"),
    "the end": ("weft.finalize()", "weft.barrier_all()", "weft.barrier_all on PE 0, 2; weft.finalize on PE 1"),
    "another team": ("weft.world.split_2d(1)", "weft.world.split_2d(2)", "PE 1 of the parent passed a different range than PE 0"),
    "a refused call": ("weft.world.reduce(d, s[:2])", "weft.world.reduce(d, s)", "PE 1 could not take part: its arguments of Team.reduce"),
    "a list": ("weft.world.fcollect([0] * 6, s[:2])", "weft.world.fcollect(d[:6], s[:2])", "PE 1 could not take part: its arguments of Team.fcollect"),
    "a freed array": ("weft.world.fcollect(d[:6], g)", "weft.world.fcollect(d[:6], s[:2])", "PE 1 could not take part: its arguments of Team.fcollect"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_collectives_are_named_on_all_pes(programs, what):
    of_one, of_others, words = DIFFERENT[what]
    done = programs.ok(3, f"""
        job = weft.init()
        d, s, e, f = weft.zeros(8, "int64"), weft.zeros(8, "int64"), weft.zeros(6, "float64"), weft.zeros(2, "float64")
        g = weft.zeros(2, "int64")
        weft.free(g)
        for turn in range(2):  # the job goes on
            try:
                {of_one} if job.pe == 1 else {of_others}
            except weft.Error as error:
                say(job.pe, turn, type(error).__name__, error)
            weft.world.reduce(d, s)
    """)
    lines = done.lines()
    assert len(lines) == 6, lines
    refused = words.startswith("PE 1 could not")
    for line in lines:
        pe, _, kind, text = line.split(" ", 3)
        assert (kind == "Mismatch" and words in text) or (refused and pe == "1"), line


def test_teams_compare_on_their_own(programs):
    done = programs.ok(4, """
        with weft.init() as job:
            pair = weft.world.split_2d(2)[0]
            d, s = weft.zeros(8), weft.zeros(8)
            weft.barrier_all()
            try:
                pair.broadcast(d, s, root=1 if job.pe == 3 else 0)
            except weft.Mismatch as error:
                say(job.pe, error)
    """)
    text = "Team.broadcast: the PEs of the team differ: Team.broadcast of 8 float32, root 0 on PE 0; Team.broadcast of 8 float32, " \
           "root 1 on PE 1; call it with the same arguments on all PEs"
    assert done.lines() == [f"2 {text}", f"3 {text}"]


def test_between_nodes_collectives_compare_if_asked_to(programs):
    body = """
        with weft.init() as job:
            d, s = weft.zeros(8), weft.zeros(8)
            try:
                weft.world.reduce(d, s, "max" if job.pe else "sum")
            except weft.Mismatch as error:
                say(error)
            weft.barrier_all()
    """
    assert len(programs.ok(2, body, WEFT_NODE_SIZE="1", WEFT_CHECK_COLLECTIVES="yes").lines()) == 2
    assert programs.ok(2, body, WEFT_NODE_SIZE="1").lines() == []
    assert programs.ok(2, body, WEFT_CHECK_COLLECTIVES="no").lines() == []


def test_a_peer_that_is_on_another_node_is_not_mapped(programs):
    done = programs.ok(2, """
        with weft.init() as job:
            array = weft.zeros(4)
            assert not weft.is_mapped(array, 1 - job.pe)
            try:
                array.peer(1 - job.pe)
            except weft.NotMapped as error:
                say(error)
            weft.put(array, numpy.full(4, job.pe + 1, "f"), 1 - job.pe)
            weft.barrier_all()
            assert (numpy.asarray(array) == 2 - job.pe).all()
    """, WEFT_NODE_SIZE="1")
    assert done.lines()[0] == "Array.peer: the memory of PE 0 is not mapped here; reach it with weft.put and weft.get " \
                              "(weft.is_mapped tells beforehand)"


def test_a_pe_that_dies_is_named_and_nobody_hangs(programs):
    """Of PEs that nobody but themselves ends: with a launcher, the launcher ends the job.

    Who notices first speaks: the barrier as an exception, or the watch beside it that ends the PE.
    """
    done = programs.run(programs.python, programs.write("""
        import multiprocessing, signal

        def work(pe, unique_id):
            weft.init(pe=pe, pe_count=2, unique_id=unique_id)
            if pe == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            weft.barrier_all()

        if __name__ == "__main__":
            unique_id = weft.unique_id()
            multiprocessing.get_context("spawn").Process(target=work, args=(1, unique_id)).start()
            work(0, unique_id)
    """))
    assert done.status == 1, done.err
    assert "PeerLost: weft.barrier_all: PE 1 is lost" in done.err or "PE 0 ends, because its job cannot go on: PE 1 is lost" in done.err


def test_a_library_of_another_version_is_refused(programs, tmp_path):
    empty = tmp_path / "empty.c"
    empty.write_text("int weft_nothing;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libweft.so.0", empty, "-o", tmp_path / "libweft.so.0"], check=True)
    done = programs.run(programs.python, programs.write("weft.init()"), LD_PRELOAD=str(tmp_path / "libweft.so.0"))
    assert "weft.errors.WrongVersion: weft: another libweft than this package's" in done.err, done.err
    assert "LD_LIBRARY_PATH" in done.err


@pytest.mark.skipif("PYTHON_WITH_WEFT" in os.environ, reason="of the build")
def test_another_copy_of_the_library_is_refused(programs, build_dir, tmp_path):
    shutil.copy(build_dir / "lib" / "libweft.so.0", tmp_path)
    done = programs.run(programs.python, programs.write("weft.init()"), LD_PRELOAD=str(tmp_path / "libweft.so.0"))
    assert f"weft.errors.WrongVersion: weft: {tmp_path}/libweft.so.0 was loaded, and this package" in done.err, done.err


@pytest.mark.skipif("PYTHON_WITH_WEFT" in os.environ, reason="of the build")
def test_a_free_threaded_python_without_a_module_imports_and_is_told_what_to_do(programs, build_dir, tmp_path):
    """As such a Python sees the wheel: none of its modules has a name that it looks for."""
    shutil.copytree(build_dir / "python" / "weft", tmp_path / "weft", ignore=shutil.ignore_patterns("*.so*", "lib", "bin"))
    program = programs.write("")
    program.write_text("""
import sysconfig
told = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else told(name)
import weft
print(weft.__version__)
try:
    weft.init()
except weft.Error as error:
    print(error)
""")
    done = programs.run(programs.python, program, PYTHONPATH=str(tmp_path))
    version, sentence = done.out.splitlines()
    assert version[0].isdigit() and "this is a free-threaded Python" in sentence and "use the Python with a GIL" in sentence, done.out + done.err
