"""./demo's drawing and its reading of weft-perf's output."""
import json
import sys

import pytest


@pytest.fixture(scope="module", autouse=True)
def demo_path(project):
    sys.path.insert(0, str(project / "tools" / "demo"))
    yield
    sys.path.remove(str(project / "tools" / "demo"))


def test_the_busiest_bar_fills_the_line_and_all_lines_have_80_columns():
    import bars

    lines = bars.draw([("h0", "nic0", 4_000_000), ("h0", "nic1", 1_000_000), ("h1", "nic15", 0)]).splitlines()
    assert {len(line) for line in lines} == {80}
    assert lines[0].count("█") == 4 * lines[1].count("█") or abs(lines[0].count("█") / 4 - lines[1].count("█")) < 1
    assert "█" not in lines[2]


def test_colour_marks_what_is_far_above_the_mean():
    import bars

    lines = bars.draw([("h0", "nic0", 4), ("h0", "nic1", 0), ("h0", "nic2", 0)], colour=True).splitlines()
    assert bars.RED in lines[0]
    assert bars.GREEN in lines[1]


def test_nothing_received_is_no_division_by_zero():
    import bars

    assert "0.0 MB" in bars.draw([("h0", "nic0", 0)])


def test_sizes_are_read_as_weft_perf_reads_them():
    import demo

    assert demo.parse_size("256K") == 262144
    assert demo.parse_size("100") == 100
    for wrong in ("", "K", "0", "1.5M", "-1"):
        with pytest.raises(demo.Failure):
            demo.parse_size(wrong)


def test_the_last_row_and_the_balance_are_taken_and_other_lines_ignored():
    import demo

    lines = [json.dumps({"kind": "row", "value": 1}), "a warning", json.dumps({"kind": "balance", "nics": []})]
    assert demo.read_results("coupled", "\n".join(lines))["row"]["value"] == 1
    with pytest.raises(demo.Failure):
        demo.read_results("coupled", lines[0])


def results_of(policy, milliseconds, share, rx, in_time):
    moments = {"kernel": {"pe": {"rx": {"mean": in_time}}}} if in_time else None
    balance = {"policy": policy, "share_of_rails": share, "rx_max_over_mean_kernel": rx,
               "max_over_mean_per_interval": moments}
    return {"row": {"value": milliseconds * 1e3}, "balance": balance}


def test_policies_are_compared_by_time_and_by_nic():
    import demo

    runs = [results_of("coupled", 219.04, 0.25, 3.98, 3.97), results_of("offset", 80.0, None, 1.0, None)]
    head, coupled, offset = demo.compare(runs, demo.LabPlace("x")).splitlines()
    assert head.split() == "policy ms a step share of the rails RX max/mean: in all in 10 ms".split()
    assert coupled.split() == ["coupled", "219.0", "0.25", "3.98", "3.97"]
    assert offset.split() == ["offset", "80.0", "-", "1.00", "-"]
    assert len(head) == len(coupled) == len(offset) <= 80


def test_the_default_is_what_weft_takes_when_nobody_names_a_policy(monkeypatch):
    import demo

    started = []

    class Process:
        returncode = 0

        def __init__(self, command, env, **_):
            started.append((command, env))

        def communicate(self, timeout):
            return json.dumps({"kind": "row"}) + "\n" + json.dumps({"kind": "balance"}), None

        def poll(self):
            return 0

    monkeypatch.setattr(demo.subprocess, "Popen", Process)
    monkeypatch.setenv("WEFT_RAIL_POLICY", "single")
    monkeypatch.setattr(sys, "argv", ["demo"])
    arguments = demo.parse_arguments()
    for policy in demo.POLICIES:
        demo.run_policy(demo.LabPlace("x"), policy, arguments)
    assert [command[command.index("--policy") + 1] for command, _ in started[:2]] == ["coupled", "offset"]
    assert "--policy" not in started[2][0]
    assert all("WEFT_RAIL_POLICY" not in environment for _, environment in started)


def test_the_judge_wants_the_problem_and_the_cure():
    import demo

    demo.judge(coupled_rx=3.9, balanced_rx=1.01)
    with pytest.raises(demo.Failure, match="did not show"):
        demo.judge(coupled_rx=1.0, balanced_rx=1.0)
    with pytest.raises(demo.Failure, match="more than"):
        demo.judge(coupled_rx=4.0, balanced_rx=1.2)
