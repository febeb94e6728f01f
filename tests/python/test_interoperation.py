"""With JAX and mpi4py themselves, where they are installed."""
import shutil
import subprocess

import pytest


def needs(programs, *packages):
    for package in packages:
        found = subprocess.run([programs.python, "-c", f"import {package}"], capture_output=True, check=False)
        if found.returncode != 0:
            pytest.skip(f"{package} is missing; pip install {package}")


def test_arrays_of_jax_are_sources_and_see_symmetric_memory_without_a_copy(programs):
    needs(programs, "jax")
    programs.ok(2, """
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax, jax.numpy as jnp
        with weft.init() as job:
            inbox = weft.zeros(1024, "float32")
            weft.put(inbox, jnp.full(1024, job.pe + 1.0, jnp.float32), 1 - job.pe)
            weft.barrier_all()
            seen = jax.dlpack.from_dlpack(inbox, copy=False)
            assert seen.unsafe_buffer_pointer() == inbox.address
            assert (seen == 2 - job.pe).all() and jnp.sum(seen * 2) == 2048 * (2 - job.pe)
            half = jnp.arange(8, dtype=jnp.bfloat16)
            narrow = weft.zeros(8, "bfloat16")
            weft.put(narrow, half, 1 - job.pe)
            weft.barrier_all()
            assert (jax.dlpack.from_dlpack(narrow) == half).all()
            try:
                weft.get(jnp.zeros(1024), inbox, 0)
            except weft.InvalidArgument as error:
                assert "dest cannot be written to" in str(error)
            else:
                raise AssertionError("an array of JAX was written to")
            weft.barrier_all()
            del seen
    """)


def test_a_communicator_of_mpi4py_itself_becomes_the_job(programs):
    needs(programs, "mpi4py")
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("mpirun is missing; install openmpi-bin")
    program = programs.write("""
        from mpi4py import MPI
        half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank // 2, -MPI.COMM_WORLD.rank)
        with weft.init(group=half) as job:
            assert (job.pe, job.pe_count) == (half.rank, 2)
            inbox = weft.zeros(1, "int64")
            weft.put(inbox, numpy.array([MPI.COMM_WORLD.rank]), 1 - job.pe)
            weft.barrier_all()
            say(MPI.COMM_WORLD.rank, job.pe, numpy.asarray(inbox)[0])
        MPI.COMM_WORLD.barrier()
    """)
    done = programs.run(mpirun, "--allow-run-as-root", "--oversubscribe", "-n", 4, programs.python, program)
    assert done.status == 0 and done.lines() == ["0 1 1", "1 0 0", "2 1 3", "3 0 2"], done.out + done.err
