"""How jobs of Python programs end: an exception, sys.exit, Ctrl-C, fork and spawn, init and finalize again."""
import os
import shutil
import signal
import time

import pytest


def wait_for(path, limit_s=30):
    end = time.monotonic() + limit_s
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.02)


def test_a_pe_that_raises_ends_the_job_with_its_traceback_on_top(programs):
    done = programs.pes(3, """
        job = weft.init()
        if job.pe == 1:
            raise ValueError("this PE has enough")
        weft.barrier_all()
        weft.barrier_all()
    """)
    assert done.status == 1
    lines = done.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[3] == "ValueError: this PE has enough", done.err
    assert "PE 1" in lines[4] and "ends the job" in lines[4], done.err
    assert done.err.count("Traceback") == 1, done.err


def test_an_exception_in_the_block_of_init_ends_the_job_too(programs):
    done = programs.pes(2, """
        with weft.init() as job:
            if job.pe == 0:
                raise KeyError("gone")
            weft.barrier_all()
    """)
    assert done.status == 1 and "KeyError: 'gone'" in done.err and done.err.count("Traceback") == 1, done.err


@pytest.mark.parametrize("others", ["end", "report"])
def test_a_pe_that_ends_because_another_is_lost_says_so_in_a_line(programs, others):
    """Unless it was to go on: then its program has not handled what it asked to hear."""
    done = programs.pes(1, """
        def work():
            raise weft.PeerLost("PE 1 is lost")
        weft.init()
        work()
    """, WEFT_ON_PEER_LOST=others)
    lines = done.err.splitlines()
    assert done.status == 1, done.err
    if others == "end":
        assert lines[0].startswith("weft: PE 0: error: PeerLost: PE 1 is lost (") and lines[0].endswith("in work)"), done.err
        assert "Traceback" not in done.err, done.err
    else:
        assert lines[0] == "Traceback (most recent call last):" and "PeerLost: PE 1 is lost" in done.err, done.err


def test_sys_exit_with_a_status_ends_the_job_with_it(programs):
    done = programs.pes(2, """
        job = weft.init()
        if job.pe == 1:
            sys.exit(7)
        weft.barrier_all()
        weft.barrier_all()
    """)
    assert done.status == 7


def test_a_program_that_ends_without_finalize_is_finalized(programs):
    done = programs.ok(3, """
        job = weft.init()
        array = weft.zeros(4, "int64")
        if job.pe == 0:
            time.sleep(0.3)
            weft.put(array, numpy.full(4, 5), 2)  # the others are at their end already
    """)
    assert done.err == ""


def interrupt(programs, tmp_path, launcher):
    """Ctrl-C at a launcher whose job has one PE that computes and one that waits for it."""
    program = programs.write(f"""
        job = weft.init()
        if job.pe == 0:
            open({str(tmp_path / "ready")!r}, "w").close()
            time.sleep(60)
        weft.barrier_all()
    """)
    process = programs.start(*launcher, programs.python, program)
    wait_for(tmp_path / "ready")
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    done = programs.finish(process, 30)
    assert done.status not in (0, None), done.out + done.err
    with pytest.raises(ProcessLookupError):  # nobody of its session is left
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.1)


def test_ctrl_c_at_weft_run_ends_the_job(programs, tmp_path):
    interrupt(programs, tmp_path, [programs.weft_run, "-n", 2, "--"])


def test_ctrl_c_at_mpirun_ends_the_job(programs, tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is missing; install openmpi-bin")
    interrupt(programs, tmp_path, ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2])


def test_ctrl_c_ends_a_pe_that_waits_in_a_call(programs, tmp_path):
    """Without a launcher: the process itself gets the signal, and Python cannot raise while the library waits."""
    program = programs.write(f"""
        with weft.init():
            signals = weft.zeros(1, "uint64")
            open({str(tmp_path / "ready")!r}, "w").close()
            weft.signal_wait_until(signals, "==", 1)
    """)
    process = programs.start(programs.python, program)
    wait_for(tmp_path / "ready")
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    done = programs.finish(process, 20)
    assert done.status == 130, done.err
    assert "PE 0: interrupted while it waits in weft.signal_wait_until; the job ends" in done.err


def test_ctrl_c_outside_of_calls_is_keyboard_interrupt(programs, tmp_path):
    program = programs.write(f"""
        with weft.init():
            open({str(tmp_path / "ready")!r}, "w").close()
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                say("interrupted")
    """)
    process = programs.start(programs.python, program)
    wait_for(tmp_path / "ready")
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    done = programs.finish(process, 20)
    assert done.lines() == ["interrupted"] and done.status == 0, done.err


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_other_launchers(programs, launcher, tmp_path):
    body = """
        with weft.init() as job:
            inbox = weft.zeros(1, "int64")
            weft.put(inbox, numpy.array([job.pe]), (job.pe + 1) % job.pe_count)
            weft.barrier_all()
            say(job.pe, job.pe_count, numpy.asarray(inbox)[0])
    """
    program = programs.write(body)
    if launcher == "mpirun":
        if not shutil.which("mpirun"):
            pytest.skip("mpirun is missing; install openmpi-bin")
        done = programs.run("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2, programs.python, program)
        assert done.status == 0 and done.lines() == ["0 2 1", "1 2 0"], done.out + done.err
        return
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [programs.start(programs.python, program, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                                MASTER_PORT=str(port), TORCHELASTIC_RUN_ID="test") for rank in range(2)]
    done = [programs.finish(process) for process in processes]
    assert [(one.status, one.lines()) for one in done] == [(0, ["0 2 1"]), (0, ["1 2 0"])], done


def test_a_forked_child_reads_and_writes_arrays_and_is_refused_calls(programs):
    done = programs.ok(2, """
        import multiprocessing
        job = weft.init()
        array = weft.zeros(4, "int64")
        numbers, me = numpy.asarray(array), job.pe
        def child():
            numbers[me] = 7
            try:
                weft.barrier_all()
            except weft.Forked as error:
                say(error)
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start(), process.join()
        assert process.exitcode == 0 and numbers[me] == 7
        weft.barrier_all()
    """)
    assert len(done.lines()) == 2 and "was forked from a PE, and is none itself; call Weft in the PE" in done.lines()[0]


def test_a_spawned_child_is_refused_to_join_as_the_same_pe(programs):
    done = programs.ok(2, """
        import subprocess
        if len(sys.argv) > 1:
            try:
                weft.init()
            except weft.Error as error:
                say(error)
            sys.exit()
        job = weft.init()
        if job.pe == 1:
            subprocess.run([sys.executable, __file__, "child"], check=True)
        weft.barrier_all()
    """)
    (line,) = done.lines()
    assert "was started by PE 1" in line and "WEFT_BOOTSTRAP=single" in line


def test_a_spawned_process_may_have_sys_exit_as_its_target(programs):
    done = programs.ok(2, """
        import multiprocessing

        if __name__ == "__main__":
            job = weft.init()
            for status in (0, 3):
                child = multiprocessing.get_context("spawn").Process(target=sys.exit, args=(status,))
                child.start()
                child.join()
                assert child.exitcode == status, child.exitcode
            weft.barrier_all()
    """)
    assert "Traceback" not in done.err, done.err


def test_processes_that_start_themselves_meet_by_a_unique_id(programs):
    done = programs.run(programs.python, programs.write("""
        import multiprocessing

        def work(pe, unique_id):
            with weft.init(pe=pe, pe_count=3, unique_id=unique_id) as job:
                inbox = weft.zeros(1, "int64")
                weft.put(inbox, numpy.array([job.pe]), (job.pe + 1) % job.pe_count)
                weft.barrier_all()
                say(job.pe, numpy.asarray(inbox)[0])

        if __name__ == "__main__":
            unique_id = weft.unique_id()
            context = multiprocessing.get_context("spawn")
            others = [context.Process(target=work, args=(pe, unique_id)) for pe in (1, 2)]
            for other in others: other.start()
            work(0, unique_id)
            for other in others: other.join()
    """))
    assert done.status == 0 and done.lines() == ["0 2", "1 0", "2 1"], done.out + done.err


def test_a_communicator_of_mpi4py_becomes_the_job(programs):
    """By the two methods that are used of it."""
    done = programs.run(programs.python, programs.write("""
        class One:
            def Get_rank(self): return 0
            def Get_size(self): return 1
            def bcast(self, value, root): return value
        with weft.init(group=One()) as job:
            say(job)
    """))
    assert done.lines() == ["weft.Job(pe=0, pe_count=1)"], done.err


def test_init_and_finalize_again_and_again_leak_nothing(programs):
    done = programs.run(programs.python, programs.write("""
        import resource
        def open_files():
            return len(os.listdir("/proc/self/fd"))
        def mapped():
            return int(open("/proc/self/statm").read().split()[0])
        for turn in range(1000):
            with weft.init():
                array = weft.zeros(1000)
                numbers = numpy.asarray(array)
                numbers[:] = 1
                del numbers
            if turn == 20:
                files, pages = open_files(), mapped()
        say(open_files() - files, mapped() - pages)
    """))
    assert done.lines() == ["0 0"], done.out + done.err
