"""scripts/bench gives no verdict on measurements that cannot bear one."""
import json
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def report(project):
    sys.path.insert(0, str(project / "bench"))
    from harness import report as module

    yield module
    sys.path.remove(str(project / "bench"))


class Settings:
    def __init__(self, runs=3):
        self.runs, self.seconds = runs, 1.0


def test_a_steady_and_repeated_comparison_is_judged(report):
    good = report.Result("x", 1.0, 0.95, samples=[[5.0, 5.1, 4.9], [5.0, 5.0, 5.2]])
    assert report.verdict(good, Settings()) == "yes"
    short = report.Result("x", 0.6, 0.95, samples=[[3.0, 3.1, 3.0], [5.0, 5.0, 5.2]])
    assert report.verdict(short, Settings()) == "no"


def test_one_run_is_no_verdict(report):
    assert "not repeated" in report.verdict(report.Result("x", 1.99, 0.95, samples=[[3.3], [1.66]]), Settings(runs=1))


@pytest.mark.parametrize("samples", [[1.0, 2.0, 1.0], [[5.0, 5.0, 5.0], [5.0, 1.7, 5.0]], [{"a": [1.0, 3.0]}]])
def test_samples_that_scatter_are_no_verdict(report, samples):
    assert "unsteady" in report.verdict(report.Result("x", 1.99, 0.95, samples=samples), Settings())


def test_a_bound_that_its_control_keeps_too_is_no_verdict(report):
    vacuous = report.Result("x", 0.9, 2.0, at_least=False, control=1.03, samples=[0.9, 0.9, 0.9])
    assert "cannot tell" in report.verdict(vacuous, Settings())
    telling = report.Result("x", 0.9, 2.0, at_least=False, control=40.0, samples=[0.9, 0.9, 0.9])
    assert report.verdict(telling, Settings()) == "yes"


def test_what_a_run_says_of_balance_in_time_goes_into_the_data(report, tmp_path):
    from harness.places import Perf
    from harness.rows import Row

    moments = {"interval_ms": 10, "kernel": {"pe": {"rx": {"mean": 3.98, "worst": 4.0, "intervals": 7}}}}
    balance = {"kind": "balance", "nics": [], "share_of_rails": 0.25, "max_over_mean_per_interval": moments}
    run = Perf([{"kind": "row", "value": 1}, balance])
    assert Perf([{"kind": "row", "value": 1}]).in_time() == {}
    log = report.Log(Settings())
    log.path = tmp_path / "data.jsonl"
    log.add(Row("a", "b", None), report.Result("x", 1.0, 0.95, samples=[1.0, 1.0, 1.0], in_time=[run.in_time()]))
    line = json.loads(log.path.read_text())
    assert line["in_time"] == [{"share_of_rails": 0.25, "max_over_mean_per_interval": moments}]
    assert {"machine", "date", "versions"} <= set(line)


def test_peers_stand_beside_weft_however_their_benchmarks_write_their_names(project, tmp_path):
    row = {"type": "32-bit", "bytes": 128, "pes": 4, "scope": "block", "bench": "alltoall_device"}
    rows = [row | {"peer": peer, "latency_us": value} for peer, value in (("Weft", 2.0), ("nvshmem", 8.0))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    program = project / "bench" / "compare_device.py"
    table = subprocess.run([sys.executable, program, tmp_path / "rows.jsonl"], capture_output=True, text=True, check=True).stdout
    assert "| 128 B | 2 | 8 |  | 4.00 |" in table


def test_a_size_that_is_slower_than_the_next_larger_one_is_named(project, tmp_path):
    rows = [{"type": "32-bit", "bytes": size, "pes": 2, "scope": "grid", "bench": "alltoall_device", "peer": "Weft", "latency_us": time}
            for size, time in ((1024, 4.0), (32768, 9.0), (131072, 6.5), (524288, 6.4))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    program = project / "bench" / "compare_device.py"
    done = subprocess.run([sys.executable, program, "--cliffs", tmp_path / "rows.jsonl"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == "alltoall, 32-bit, grid: 32 KiB takes 9 us, 128 KiB 6.5\n"


PROGRAMS = ("bare_flows.py", "compare_device.py", "record_traffic", "tcp_goodput.py", "tune_collectives", "weft_top_cost.py",
            "weft_top_slowdown.py")


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_says_what_it_is_for(project, name):
    done = subprocess.run([sys.executable, project / "bench" / name, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {name}")
