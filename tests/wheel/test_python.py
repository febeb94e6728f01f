"""`import weft` out of the wheel, in an environment that has nothing else."""
import os
import pathlib
import subprocess
import sys
import sysconfig

from test_wheel import assert_ring

RING = pathlib.Path(__file__).parent / "ring.py"
HEAP = os.environ | {"WEFT_HEAP_SIZE": "8M"}


def test_a_job_of_symmetric_arrays(environment, run):
    assert_ring(run(environment / "weft-run", "-n", 4, "--", environment / "python", RING, env=HEAP), 4)


def test_a_job_of_one_pe_needs_no_launcher(environment, run):
    assert_ring(run(environment / "python", RING, env=HEAP), 1)


def test_import_brings_neither_numpy_nor_torch(environment, run):
    program = "import sys, weft; weft.put; print(sorted({'numpy', 'torch', 'asyncio'} & set(sys.modules)))"
    assert run(environment / "python", "-c", program) == "[]\n"


def test_the_doctor_finds_nothing_wrong(environment, run):
    lines = run(environment / "python", "-m", "weft.doctor", env=HEAP).splitlines()
    for name in ("python", "weft", "module", "job", "weft-run"):
        assert any(line.split()[:2] == ["ok", name] for line in lines), lines
    assert any("1 PE puts to itself" in line for line in lines), lines
    assert any("2 PEs on 1 node put to each other" in line and "weft-run" in line for line in lines), lines


def test_what_the_build_passes_the_wheel_passes(environment, project, tmp_path):
    """tests/python with the interpreter of the environment; numpy alone comes from the one that runs pytest. Of weft.moe the example
    alone (moe/tests/python has the rest): its cases take two minutes, and test an engine that is the same in both."""
    variables = os.environ | {"PYTHON_WITH_WEFT": str(environment / "python"), "PYTHONPATH": sysconfig.get_path("platlib")}
    done = subprocess.run([sys.executable, "-m", "pytest", project / "tests" / "python", "--quiet", "-p", "no:cacheprovider",
                           "--basetemp", tmp_path / "pytest"], env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
