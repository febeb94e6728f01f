"""A PE that dies, where the others go on (WEFT_ON_PEER_LOST=report): each call that needs it raises weft.PeerLost."""
import pytest

REPORT = {"WEFT_ON_PEER_LOST": "report", "WEFT_NICS": "lo"}

# PE 1 kills itself. The others call what needs it, and then work on without it.
BODY = """
    import signal

    def work(job):
        array, word = weft.zeros(4), weft.zeros(1, "uint64")
        one = numpy.ones(4, "f")
        weft.barrier_all()
        if job.pe == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        calls = {"wait": lambda: weft.signal_wait_until(word, ">=", 1), "barrier_all": weft.barrier_all,
                 "sync": weft.world.sync, "zeros": lambda: weft.zeros(4)}
        if weft.node_count() > 1:  # a put to memory that is mapped still succeeds
            calls["put"] = lambda: (weft.put(array, one, 1), weft.quiet())
        for name, call in calls.items():
            try:
                call()
                say(job.pe, name, "returned")
            except weft.PeerLost as error:
                assert "PE 1 " in str(error) and "is lost" in str(error), error
                say(job.pe, name)
        with weft.Context() as context:
            weft.put(array, one, 2 - job.pe, context=context)
            context.quiet()
        while not (numpy.asarray(array) == 1).all():
            time.sleep(0.01)
        say(job.pe, "goes on")
        time.sleep(0.5)  # the other one hears that this PE leaves only after it has looked
"""
SELF_STARTED = """
    def run(pe, unique_id):
        work(weft.init(pe=pe, pe_count=3, unique_id=unique_id))

    if __name__ == "__main__":
        import multiprocessing
        unique_id = weft.unique_id()
        context = multiprocessing.get_context("spawn")
        others = [context.Process(target=run, args=(pe, unique_id)) for pe in (1, 2)]
        for other in others: other.start()
        run(0, unique_id)
        for other in others: other.join()
        assert [other.exitcode for other in others] == [-9, 0]
"""


def expected(node_size):
    calls = ["barrier_all", "goes on", "sync", "wait", "zeros"] + (["put"] if node_size else [])
    return sorted(f"{pe} {call}" for pe in (0, 2) for call in calls)


@pytest.mark.parametrize("node_size", ["", "1"])
def test_every_call_that_needs_it_raises_and_the_others_go_on(programs, node_size):
    variables = REPORT | ({"WEFT_NODE_SIZE": node_size} if node_size else {})
    done = programs.run(programs.python, programs.write(BODY + SELF_STARTED), **variables)
    assert done.status == 0 and done.lines() == expected(node_size), done.out + done.err


@pytest.mark.parametrize("node_size", ["", "1"])
def test_weft_run_lets_the_others_go_on_and_names_the_one_that_died(programs, node_size):
    variables = REPORT | ({"WEFT_NODE_SIZE": node_size} if node_size else {})
    done = programs.pes(3, BODY + "    work(weft.init())\n", **variables)
    assert done.status == 128 + 9 and done.lines() == expected(node_size), done.out + done.err
    assert "weft-run: PE 1 (pid" in done.err and "was killed by signal 9" in done.err, done.err
