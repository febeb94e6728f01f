"""What Loom says, in one sentence, where something is missing, too old or forbidden, and that nothing hangs."""
import os
import shutil
import subprocess

import pytest


def said(errors):
    return [line for line in errors.splitlines() if line.startswith("loom: ") and "emulated" not in line]


@pytest.fixture
def without_runner(bin_dir, environment):
    """weft-info on a fabric of its own, with these variables."""
    def run(**variables):
        return subprocess.run([bin_dir / "weft-info"], capture_output=True, text=True, timeout=60,
                              env=environment | {"FI_PROVIDER_PATH": str(bin_dir.parent / "lib")} | variables)
    return run


def test_a_persona_that_does_not_exist_is_named_by_the_provider_too(without_runner):
    ended = without_runner(LOOM_PERSONA="ib")
    assert said(ended.stderr)[:1] == ["loom: LOOM_PERSONA is 'ib'; the personas are loom, efa, efa-direct, efa-rdm, cxi, verbs"]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_libfabric_that_is_too_old_is_named(without_runner, tmp_path):
    source = tmp_path / "old.c"
    source.write_text("#include <stdint.h>\nuint32_t fi_version(void) { return (1u << 16) | 15; }\n")
    library = tmp_path / "old.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    ended = without_runner(LOOM_PERSONA="efa", LD_PRELOAD=str(library))
    assert said(ended.stderr)[:1] == ["loom: libfabric 1.15 is too old; Loom needs 1.17 or newer"]


def test_a_runner_without_its_library_says_where_it_looked(bin_dir, environment, tmp_path):
    alone = shutil.copy(bin_dir / "loom", tmp_path / "loom")
    ended = subprocess.run([alone, "run", "--", "true"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "loom: libloom-fi.so was not found beside this program; set LOOM_LIBRARY to its folder\n"


def test_the_runner_needs_no_libfabric(bin_dir):
    if not shutil.which("readelf"):
        pytest.skip("no readelf")
    needed = subprocess.run(["readelf", "-d", bin_dir / "loom"], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" in needed and "libfabric" not in needed


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_a_process_that_may_not_write_to_another_says_what_to_do(loom, bin_dir):
    perf = f"{bin_dir}/weft-perf put_bw -b 64K -e 64K -n 4 --no-counters"
    less = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
    ended = loom("run", "--nodes", 2, "--nics", 1, "--persona", "efa", "--", "sh", "-c",
                 f"[ $RANK = 0 ] && exec {less} timeout 60 {perf}; exec timeout 60 {perf}", status=None,
                 WEFT_PEER_LOST_MS="1000", WEFT_BOOTSTRAP_TIMEOUT="10")
    assert ended.returncode not in (0, 124, 137), ended.stderr
    assert sum("may not write to process" in line and "ptrace_scope=0" in line for line in said(ended.stderr)) == 1
