"""The OpenSHMEM suite by NVSHMEM's calls, on symmetric memory of the host: as it is, and as it runs on a GPU
(device_nvshmem_suite_test), by shadows of memory that it cannot load from or store to, by calls of the host and on a stream."""
import dataclasses
import pathlib
import re

import pytest

import renamed_suite
from nvshmem_runs import HOST_MEMORY, run, well

SHADOW = pathlib.Path(__file__).parent / "shadow"
# The suite tests alignments up to half of the heap, and globals, which NVSHMEM does not know.
MEMORY = HOST_MEMORY | {"NVSHMEM_SYMMETRIC_SIZE": "512M", "WEFT_SYMMETRIC_GLOBALS": "yes", "WEFT_PROVIDER": "tcp"}
FORMS = {"plain": {}, "shadows": {"shadows": True}, "on-stream": {"shadows": True, "on_stream": True}}
JOBS = [("plain", 1, []), ("plain", 2, []), ("plain", 4, []), ("plain", 3, ["--node-size", "1"]), ("plain", 4, ["--node-size", "2"]),
        ("shadows", 1, []), ("shadows", 3, ["--node-size", "1"]), ("on-stream", 2, [])]
# What two PEs have not: teams of teams take four.
SKIPPED_BELOW_4 = 1


@dataclasses.dataclass
class Suite:
    renamed: renamed_suite.Renamed
    tests: pathlib.Path  # compiled, without what the shadows are
    program: pathlib.Path


def compiled(prefix, out, folder, *sources):
    well("gcc", "-r", "-std=gnu11", "-Wall", "-Wno-unused", "-Werror", f"-I{folder}", f"-I{SHADOW}", f"-I{prefix}/include", *sources, "-o", out)
    return out


def linked(prefix, program, *sources):
    well("gcc", "-std=gnu11", "-Wall", "-Wno-unused-result", "-Werror", f"-I{SHADOW}", f"-I{prefix}/include", *sources, f"-L{prefix}/lib",
         "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-lpthread", "-o", program)
    return program


@pytest.fixture(scope="module")
def suite(prefix, tmp_path_factory):
    """suite(form): built once."""
    made = {}

    def build(form):
        if form not in made:
            folder = tmp_path_factory.mktemp(form)
            renamed = renamed_suite.write(prefix / "include", folder, **FORMS[form])
            shadows = [SHADOW / "shadow.c", SHADOW / "shadow_host.c"] if form != "plain" else []
            tests = compiled(prefix, folder / "suite.o", folder, *renamed.sources)
            made[form] = Suite(renamed, tests, linked(prefix, folder / "suite", tests, *shadows))
        return made[form]
    return build


def test_a_hundred_tests_have_counterparts(suite):
    """The rest needs what NVSHMEM does not have on the host: atomics, tests of words, contexts, locks, active sets."""
    plain = suite("plain").renamed
    assert len(plain.kept) >= 102 and plain.checks >= 524 and all(plain.dropped.values())
    for form in ("shadows", "on-stream"):
        renamed = suite(form).renamed
        assert set(plain.kept) - set(renamed.kept) == {title for title, names in renamed.dropped.items() if names == ["symmetric globals"]}


@pytest.mark.parametrize("form, pes, options", JOBS)
def test_the_openshmem_suite_by_nvshmems_names(suite, prefix, form, pes, options):
    built = suite(form)
    done = run(prefix / "bin" / "nvshmrun", "-np", pes, *options, built.program, **MEMORY)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == f"done: {len(built.renamed.kept)} tests, 0 failed, {pes} PEs"
    assert sum(line.startswith("skipped ") for line in lines) == (SKIPPED_BELOW_4 if pes < 4 else 0)


def test_calls_on_a_stream_are_those_of_the_suite(suite):
    """Each function with a form on a stream that returns the same is called by it."""
    calls = (suite("on-stream").program.parent / "suite_calls.h").read_text()
    for name in ("nvshmemx_int_put_on_stream", "nvshmemx_barrier_all_on_stream", "nvshmemx_long_sum_reduce_on_stream", "nvshmemx_putmem_signal_on_stream"):
        assert f"{name}(" in calls
        assert f"{name}(" not in (suite("shadows").program.parent / "suite_calls.h").read_text()


def test_shadows_of_memory_that_the_cpu_cannot_reach(prefix, tmp_path):
    linked(prefix, tmp_path / "shadow_test", SHADOW / "shadow.c", SHADOW / "shadow_test.c")
    assert well(tmp_path / "shadow_test", **HOST_MEMORY) == "ok\n"


# Faults of the shadows. As the suite sees it, they are the library's.
FAULTS = {"stores are lost": ("if (memcmp(b->shadow, b->last, b->bytes) != 0) {", "if (b->bytes == 0) {"),
          "what peers wrote is overwritten": ("shadow_merge(b->real, b->shadow, b->last, b->bytes);", "shadow_write(b->real, b->shadow, b->bytes);"),
          "what peers wrote is not seen": ("memcpy(b->shadow, b->last, b->bytes);\n}", "}"),
          "local operands do not come back": ("if (now->local) {", "if (!now->staged) {")}


@pytest.fixture
def faulty(tmp_path):
    """faulty(name): shadow.c with the fault."""
    def write(fault):
        right, wrong = FAULTS[fault]
        text = (SHADOW / "shadow.c").read_text()
        assert text.count(right) == 1
        (tmp_path / "shadow.c").write_text(text.replace(right, wrong))
        return tmp_path / "shadow.c"
    return write


@pytest.mark.parametrize("fault", FAULTS)
def test_the_test_of_shadows_notices(faulty, prefix, tmp_path, fault):
    program = linked(prefix, tmp_path / "shadow_test", faulty(fault), SHADOW / "shadow_test.c")
    done = run(program, **HOST_MEMORY)
    assert done.returncode == 1 and "is not so" in done.stderr, done.stdout + done.stderr


# That peers' bytes are overwritten is a race there.
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "what peers wrote is overwritten"])
def test_the_suite_notices(suite, faulty, prefix, tmp_path, fault):
    program = linked(prefix, tmp_path / "suite", suite("shadows").tests, faulty(fault), SHADOW / "shadow_host.c")
    done = run(prefix / "bin" / "nvshmrun", "-np", 2, program, "9.6", **MEMORY)
    assert re.search(r"_test\.c:\d+: PE 0: ", done.stderr), done.stdout + done.stderr  # the verdict comes by shadows, too
