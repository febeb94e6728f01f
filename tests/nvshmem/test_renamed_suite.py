"""The OpenSHMEM suite by NVSHMEM's host calls, on symmetric memory of the host: its tests load and store what they compare, which
a host cannot do with memory of a GPU."""
import pytest

import renamed_suite
from nvshmem_runs import HOST_MEMORY, run, well

# The suite tests alignments up to half of the heap, and globals, which NVSHMEM does not know.
MEMORY = HOST_MEMORY | {"NVSHMEM_SYMMETRIC_SIZE": "512M", "WEFT_SYMMETRIC_GLOBALS": "yes", "WEFT_PROVIDER": "tcp"}


@pytest.fixture(scope="module")
def suite(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    renamed = renamed_suite.write(prefix, folder)
    well("gcc", "-std=gnu11", "-Wall", "-Wno-unused", "-Werror", f"-I{folder}", f"-I{prefix}/include", *renamed.sources, f"-L{prefix}/lib",
         "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-lpthread", "-o", folder / "suite")
    return renamed, folder / "suite"


def test_half_of_the_suite_has_counterparts(suite):
    """The rest needs what NVSHMEM does not have on the host: atomics, waits, contexts, locks, active sets."""
    renamed, _ = suite
    assert len(renamed.kept) >= 49 and all(renamed.dropped.values())


@pytest.mark.parametrize("pes, options", [(1, []), (2, []), (4, []), (3, ["--node-size", "1"]), (4, ["--node-size", "2"])])
def test_the_openshmem_suite_by_nvshmems_names(suite, prefix, pes, options):
    renamed, program = suite
    done = run(prefix / "bin" / "nvshmrun", "-np", pes, *options, program, **MEMORY)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == f"done: {len(renamed.kept)} tests, 0 failed, {pes} PEs"
    assert sum(line.startswith("skipped ") for line in lines) == (1 if pes < 4 else 0)
