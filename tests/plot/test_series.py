"""Series: which records are runs of the same, what a series is called, when a figure is split."""
import pytest
from weft_plot.catalogue import Choice, figures_of, latest, size_of, where
from weft_plot.forms import options_of, ALL_DROPPED, OUTPUT_OPTIONS
from weft_plot.records import Comparison, Point
from weft_plot.series import SERIES_MAX, group, merged_fields, split, spread_of, telling_fields


def point(size=8, value=1.0, **fields):
    return Point("put", "latency", size, value, fields)


def test_the_median_stands_with_the_smallest_and_the_largest():
    assert (spread_of([9, 1, 5]).median, spread_of([9, 1, 5]).low, spread_of([9, 1, 5]).high) == (5, 1, 9)
    assert spread_of([4, 1]).median == 2.5


def test_records_that_agree_in_all_fields_are_runs_of_one_series():
    (series,) = group([point(library="Weft"), point(library="Weft", value=3.0)], ("library",))
    assert [record.value for record in series.records] == [1.0, 3.0]


def test_only_fields_that_separate_something_tell_series_apart():
    records = [point(library="Weft", policy="balanced", pes=2), point(library="NCCL", pes=4),
               point(library="Weft", policy="coupled", pes=2)]
    assert telling_fields(records) == ("library", "policy")
    assert [each.label for each in group(records, telling_fields(records))] == ["Weft, balanced", "Weft, coupled", "NCCL"]


def test_weft_comes_first_scopes_from_small_to_large_and_numbers_by_size():
    records = [point(library=library, scope=scope, pes=pes) for library in ("NCCL", "other", "Weft")
               for scope in ("grid", "thread") for pes in (16, 2)]
    labels = [each.label for each in group(records, ("library", "scope", "pes"))]
    assert labels[:4] == ["Weft, thread, 2 PEs", "Weft, thread, 16 PEs", "Weft, grid, 2 PEs", "Weft, grid, 16 PEs"]
    assert labels[4].startswith("NCCL") and labels[-1].startswith("other")


@pytest.mark.parametrize("libraries", range(1, 4))
@pytest.mark.parametrize("sizes", range(1, 12))
def test_a_figure_never_has_more_series_than_can_be_told_apart_and_none_is_lost(libraries, sizes):
    records = [point(library=f"l{library}", pes=pes) for library in range(libraries) for pes in range(sizes)]
    figures = split(records, telling_fields(records))
    assert all(len(series) <= SERIES_MAX for _, series in figures)
    assert len({name for name, _ in figures}) == len(figures)
    assert sorted(id(record) for _, series in figures for each in series for record in each.records) == sorted(map(id, records))


def test_fields_that_are_merged_by_wish_are_named():
    records = [point(library="Weft", pes=2), point(library="Weft", pes=4)]
    assert merged_fields(group(records, ("library",))) == ["pes"]
    (figure,) = figures_of(records, Choice(fields=("library",)))
    assert "differ in pes" in figure.note
    assert not figures_of(records)[0].note


def test_a_long_value_is_shortened_in_a_label_and_stays_apart_from_others():
    records = [point(options=f"--window 4 {'x' * 100} {end}") for end in (1, 2)]
    labels = [each.label for each in group(records, ("options",))]
    assert labels[0] != labels[1]
    assert all(len(label) == 36 for label in labels)


def test_options_of_a_command_count_unless_they_say_how_much_or_where_to():
    command = "/some/where/weft-perf put_bw -b 8 -e 64 -n 5 --window 4 --bidir --json=x.jsonl --policy coupled --duration 3"
    assert options_of(command, ALL_DROPPED) == "--window 4 --bidir"
    assert options_of(command, OUTPUT_OPTIONS) == "-b 8 -e 64 -n 5 --window 4 --bidir --duration 3"
    assert options_of("unclosed 'quote", ALL_DROPPED) == ""


def test_where_takes_one_of_its_values_and_leaves_out_with_an_exclamation_mark():
    coupled, other = point(policy="coupled"), point()
    assert [where("policy=Coupled,x")(each) for each in (coupled, other)] == [True, False]
    assert [where("policy!=coupled")(each) for each in (coupled, other)] == [False, True]
    assert where("benchmark=put")(other)


@pytest.mark.parametrize("text", ["policy", "=x", "colour=red", "policy>3"])
def test_a_wrong_where_is_answered_with_a_sentence(text):
    with pytest.raises(ValueError, match="FIELD|there are: benchmark, library"):
        where(text)


def test_of_a_row_that_was_measured_twice_the_last_counts():
    old = Comparison("r", "old part", "latency", (1,), (2,), "2026-11-21T04:27:00+00:00", {})
    new = [Comparison("r", what, "latency", (1,), (2,), f"2026-11-21T06:56:{second}+00:00", {}) for second, what in ((10, "a"), (12, "b"))]
    assert list(latest([old, *new])) == new


@pytest.mark.parametrize("what, size", [("4096 B", ("", 4096)), ("put, 4 KiB", ("put", 4096)), ("sum, 8 PEs, 2 MiB", ("sum, 8 PEs", 2 << 20)),
                                        ("64 KiB against memcpy", None), ("8 PEs", None)])
def test_the_size_of_a_part_stands_at_its_end(what, size):
    assert size_of(what) == size
