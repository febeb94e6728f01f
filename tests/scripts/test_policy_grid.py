"""The grid of `scripts/bench policies`, and what its last line says; nothing is measured here."""
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "bench"))

import bare_flows  # noqa: E402: the path above comes first
from harness import grid, policies  # noqa: E402


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_seed_always_draws_the_same_rows_and_nearly_every_pair_of_values_meets(seed):
    rows = grid.draw(seed, 48)
    assert rows == grid.draw(seed, 48) and len(set(rows)) == 48
    assert rows[:9] == list(grid.FIXED) and rows != grid.draw(seed + 1, 48)
    met, possible = grid.covered_share(rows)
    assert met >= 0.97 * possible
    for name, values in grid.PARAMETERS.items():
        assert {getattr(row, name) for row in rows} == set(values)


def test_no_drawn_row_needs_more_than_its_time_or_what_the_lab_lacks():
    for row in grid.draw(5, 60)[len(grid.FIXED):]:
        assert row.window_s <= grid.WINDOW_S_MAX
        assert row.nic_bits_per_s * row.hosts * row.nics_per_host <= grid.LAB_BITS_PER_S
        assert row.rails != grid.FOUR_AGAINST_THREE or row.nics_per_pe == 4


def measured(row, **rates):
    return policies.Measured(row, rates={name: [1.0] for name in policies.OTHERS} | rates,
                             shares={policies.DEFAULT: [0.93]})


def test_regret_is_the_worst_row_by_medians_and_a_share_below_its_target_is_named():
    even = measured(grid.FIXED[0], balanced=[100.0, 98.0, 20.0], offset=[90.0])
    worse = measured(grid.FIXED[8], balanced=[100.0], coupled=[90.0, 110.0, 130.0])
    assert even.ratio() == pytest.approx(90 / 98) and worse.best_other() == "coupled"
    summary = policies.summarize([even, worse], 1.0)
    assert summary["regret"] == pytest.approx(1.1) and summary["regret_row"] == grid.text_of(worse.row)
    assert len(summary["shares_missed"]) == 1 and "256 KiB, 16 steps" in summary["shares_missed"][0]


def test_the_command_lists_another_grid_for_another_seed():
    first, second = (subprocess.run([PROJECT / "scripts" / "bench", "policies", "--list", "--seed", seed],
                                    capture_output=True, text=True, check=True).stdout for seed in "12")
    assert first.startswith("seed 1: 48 rows") and first.count("\n") == 49 and first != second


def test_the_table_shows_the_last_grid_of_the_data_alone():
    line = {"row": 1, "traffic": "alltoall 16 KiB", "nic_bits_per_s": 1e7, "share_of_rails": {"balanced": [0.9], "offset": [0.8]},
            "plain_tcp_share": 0.95, "best_other": "offset", "ratio": 0.9}
    text = policies.table_of([{**line, "traffic": "earlier"}, {"summary": {}}, line, {**line, "row": 2, "plain_tcp_share": None}])
    assert "earlier" not in text and text.count("\n") == 3
    assert "| alltoall 16 KiB | 10 | 0.90 | offset 0.80 | 0.900 | 0.95 |" in text


@pytest.mark.parametrize("hosts, pes_per_host, nics", [(2, 4, 4), (2, 1, 4), (2, 2, 4), (3, 1, 4), (3, 2, 4), (3, 4, 4)])
def test_the_plain_tcp_flows_use_every_nic_equally(hosts, pes_per_host, nics):
    routes = list(bare_flows.routes(hosts, pes_per_host, nics))
    for host, nic in ((0, 1), (2, 3)):
        counts = {}
        for route in routes:
            counts[route[host], route[nic]] = counts.get((route[host], route[nic]), 0) + 1
        assert len(counts) == hosts * pes_per_host * nics and len(set(counts.values())) == 1
