"""weft.moe on emulated NICs that reorder, and that die: random cases against the reference (moe/tests/python/moe_reference.py)."""
import re
import sys
import time

import pytest


@pytest.mark.parametrize("persona, first, shape", [("efa", 50000, (3, 1)), ("cxi", 51000, (3, 1)), ("efa", 52000, (2, 2)), ("cxi", 53000, (2, 2))])
def test_random_cases_on_emulated_nics_equal_the_reference(loom, build_dir, project, persona, first, shape):
    nodes, pes = shape
    done = loom("run", "--nodes", nodes, "--pes-per-node", pes, "--persona", persona, "--shredded", 1, "--", sys.executable,
                project / "moe" / "tests" / "python" / "moe_cases.py", first, 20, 2, PYTHONPATH=str(build_dir / "python"),
                WEFT_HEAP_SIZE="2G")
    assert all(f"PE {pe}: 20 cases" in done.stdout for pe in range(nodes * pes)), done.stdout + done.stderr


@pytest.fixture
def cases(start, build_dir, project, tmp_path):
    """Starts moe_cases.py on nodes with three NICs for each PE, as job j."""
    def run(nodes, pes, persona, first):
        job = start("--nodes", nodes, "--pes-per-node", pes, "--nics", 3, "--persona", persona, "--shredded", 1, "--timeout-ms", 50,
                    "--job", "j", "--", "env", f"PYTHONPATH={build_dir / 'python'}", "WEFT_HEAP_SIZE=2G", sys.executable,
                    project / "moe" / "tests" / "python" / "moe_cases.py", first, 20, 2)
        end = time.monotonic() + 30
        while not (tmp_path / "loom" / "j.fabric").exists():
            assert time.monotonic() < end and job.poll() is None, job.communicate()[0]
            time.sleep(0.01)
        return job
    return run


@pytest.mark.parametrize("persona, first, shape", [("efa", 54000, (3, 1)), ("cxi", 55000, (2, 2))])
def test_random_cases_while_nics_die_and_come_back_equal_the_reference(loom, cases, persona, first, shape):
    nodes, pes = shape
    job, deadline = cases(nodes, pes, persona, first), time.monotonic() + 60
    nics = re.findall(r"node\d+/\S+", loom("show", "--job", "j").stdout)
    assert len(nics) == 3 * pes * nodes
    cuts, turn = 0, 0
    while job.poll() is None and time.monotonic() < deadline:
        for nic in nics[turn % 3::3]:  # one of each PE
            cuts += loom("cut", nic, "--job", "j", status=None).returncode == 0
        time.sleep(0.1)
        loom("heal", "all", "--job", "j", status=None)
        time.sleep(0.05)
        turn += 1
    output = job.communicate(timeout=60)[0]
    assert job.returncode == 0, output
    assert all(f"PE {pe}: 20 cases" in output for pe in range(nodes * pes)), output
    assert cuts > 3, output
