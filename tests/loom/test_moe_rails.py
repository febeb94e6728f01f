"""weft.moe on emulated NICs that reorder: random cases against the reference (tests/python/moe_reference.py)."""
import sys

import pytest


@pytest.mark.parametrize("persona, first, shape", [("efa", 50000, (3, 1)), ("cxi", 51000, (3, 1)), ("efa", 52000, (2, 2)), ("cxi", 53000, (2, 2))])
def test_random_cases_on_emulated_nics_equal_the_reference(loom, build_dir, project, persona, first, shape):
    nodes, pes = shape
    done = loom("run", "--nodes", nodes, "--pes-per-node", pes, "--persona", persona, "--shredded", 1, "--", sys.executable,
                project / "tests" / "python" / "moe_cases.py", first, 20, 2, PYTHONPATH=str(build_dir / "python"),
                WEFT_HEAP_SIZE="2G")
    assert all(f"PE {pe}: 20 cases" in done.stdout for pe in range(nodes * pes)), done.stdout + done.stderr
