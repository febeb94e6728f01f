"""What ./test counts, and that scripts/setup does nothing, quickly, when nothing is missing."""
import subprocess
import sys
import time

import pytest

CTEST = """<testsuite>
<testcase name="unit.A" status="run"/>
<testcase name="unit.B" status="fail"><failure message="Failed"/></testcase>
<testcase name="unit.C" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
<testcase name="unit.D" status="notrun"><skipped message="Unable to find executable: d"/></testcase>
</testsuite>"""
PASSED = '<testsuites><testsuite><testcase name="a"/><testcase name="b"/></testsuite></testsuites>'


@pytest.fixture
def summarize(project, tmp_path):
    """summarize(steps, {name: xml}) -> (exit status, lines of the summary)"""

    def run(steps, results):
        for name, xml in results.items():
            (tmp_path / f"{name}.xml").write_text(xml)
        done = subprocess.run([sys.executable, project / "scripts" / "test_summary.py", tmp_path], input=steps,
                              capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    return run


def test_results_of_all_steps_are_added_up(summarize):
    status, lines = summarize("unit 8 3\npython 0 1\n", {"unit": CTEST, "python": PASSED})
    assert (status, lines[-1]) == (1, "3 passed, 2 failed, 1 skipped")
    assert any("FAILED unit: unit.B" in line for line in lines)


def test_a_crash_that_printed_nothing_is_named_by_its_signal(summarize):
    crash = """<testsuite><testcase name="multi.A"><failure message="SEGFAULT"/>
<system-out>[==========] Running 1 test\n[ RUN      ] A\n</system-out></testcase></testsuite>"""
    lines = summarize("multi 8 3\n", {"multi": crash})[1]
    assert lines[lines.index("  FAILED multi: multi.A") + 1].strip() == "SEGFAULT"


def test_a_good_run_ends_with_status_0(summarize):
    assert summarize("python 0 1\n", {"python": PASSED})[0] == 0


@pytest.mark.parametrize("steps", ["build-dev 1 5\n", "unit not-run 0\n", "python 139 2\n"])
def test_a_step_that_failed_without_a_failing_test_counts_as_one_failure(summarize, steps):
    status, lines = summarize(steps, {"python": PASSED})
    assert status == 1
    assert ", 1 failed, " in lines[-1]


def test_setup_does_nothing_when_nothing_is_missing(project):
    subprocess.run([project / "scripts" / "setup"], check=True, capture_output=True)
    start = time.monotonic()
    done = subprocess.run([project / "scripts" / "setup"], check=True, capture_output=True, text=True)
    print(f"{time.monotonic() - start:.3f} s")  # shown with --capture=no; times are never asserted
    assert done.stdout == done.stderr == ""


def test_test_names_the_suites_when_one_does_not_exist(project):
    done = subprocess.run([project / "test", "nothing"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "conformance" in done.stderr
