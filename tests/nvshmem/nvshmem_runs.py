"""Helpers of the tests of NVSHMEM's front door: commands, where the programs are, and what makes memory of the host symmetric."""
import os
import pathlib
import subprocess

PROGRAMS = pathlib.Path(__file__).parent / "programs"
RING = PROGRAMS / "ring.cu"
HOST_MEMORY = {"NVSHMEM_HEAP_KIND": "SYSMEM", "NVSHMEM_SYMMETRIC_SIZE": "16m"}


def run(*command, timeout=120, **environment):
    """Its output is text; variables are added to this process's own."""
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, env=os.environ | environment)


def well(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout
