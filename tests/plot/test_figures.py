"""Figures: one of each kind is drawn, shows something, and has the same bytes each time."""
import dataclasses

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from plot_cli import BENCH_FILE, GPU_FILES, TRAFFIC_FILE, plot, row, write
from weft_plot import draw_nics, draw_peers, draw_time, style
from weft_plot.catalogue import Choice, Look, figures_of, where
from weft_plot.lines import read
from weft_plot.records import Nic, NicLoads, PeerMatrix
from weft_plot.series import SERIES_MAX, group

EACH_KIND = ["latency-broadcast", "bandwidth-shmem_put_bw_uni", "bus_bandwidth-fcollect", "latency-barrier-block",
             "rate-reads_cma-exchange_get-4-PEs", "compared-node_local_small", "nics-alltoall_latency",
             "peers-alltoall_latency-coupled", "time-paged_write"]
FILES = [*GPU_FILES, BENCH_FILE, TRAFFIC_FILE]


@pytest.fixture(scope="module")
def records():
    return [record for path in FILES for record in read(path).records]


def drawn(figure, look=Look()):
    with style.settings():
        made = figure.draw(look)
        FigureCanvasAgg(made).draw()
    return made


def texts_of(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_every_kind_of_figure_is_made_and_none_is_blank(tmp_path):
    words = [word for name in EACH_KIND for word in ("--figure", name)]
    done = plot(*FILES, *words, "-o", tmp_path)
    assert done.status == 0, done.errors
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.{kind}" for name in EACH_KIND for kind in ("png", "svg"))
    for path in tmp_path.glob("*.png"):
        image = Image.open(path).convert("L")
        dark = sum(image.histogram()[:200]) / (image.width * image.height)
        assert 0.005 < dark < 0.6, f"{path.name}: {dark:.4f} of it is ink"


def test_the_same_data_give_the_same_bytes_in_every_process(tmp_path):
    for seed in ("1", "2"):
        done = plot(*FILES, "--figure", "nics-alltoall_latency", "--figure", "latency-broadcast", "-o", tmp_path / seed, PYTHONHASHSEED=seed)
        assert done.status == 0, done.errors
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def test_svg_has_no_date_and_its_letters_are_shapes(tmp_path):
    assert plot(TRAFFIC_FILE, "--figure", "time-paged_write", "-o", tmp_path / "a.svg").status == 0
    text = (tmp_path / "a.svg").read_text()
    assert "dc:date" not in text and "<text" not in text and "Matplotlib" not in text.split("<defs>")[0].replace("matplotlib.org", "")


def names_that_touch(figure):
    """Neighbours among the names of an axis whose boxes overlap."""
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [label for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())
                     if low <= place <= high and label.get_text()]
            boxes = [label.get_window_extent(renderer) for label in shown]
            yield from (f"{a.get_text()!r} {b.get_text()!r}" for a, b, one, two in zip(shown, shown[1:], boxes, boxes[1:])
                        if one.overlaps(two))


def titles_that_touch(figure):
    renderer = figure.canvas.get_renderer()
    titles = [title for axes in figure.axes for title in (axes._left_title, axes.title, axes._right_title) if title.get_text()]
    boxes = [title.get_window_extent(renderer) for title in titles]
    for index, one in enumerate(boxes):
        for other in range(index + 1, len(boxes)):
            if one.overlaps(boxes[other]) and not is_on_its_last_line(titles[index], titles[other]):
                yield f"{titles[index].get_text()!r} {titles[other].get_text()!r}"
        if one.x1 > figure.bbox.x1 or one.x0 < 0:
            yield f"{titles[index].get_text()!r} leaves the figure"


def is_on_its_last_line(one, other):
    """One of the two has left its last line empty for the other."""
    return one.get_text().endswith("\n") or other.get_text().endswith("\n")


LABELS = ["", "balanced", "balanced, 2 hosts x 4 PEs, 1 MiB to 4 MiB, window 4, emulated EFA NICs of 0.1 Gbit/s",
          "x" * 150]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("count", [1, 3])
def test_titles_of_any_length_do_not_touch(label, count):
    nics = [dataclasses.replace(one, label=label) for one in group([loads([(10, 40), (10, 0)])], ()) * count]
    matrix = tuple(tuple(float(row * column) for column in range(4)) for row in range(4))
    peers = [dataclasses.replace(one, label=label) for one in group([PeerMatrix("a", matrix, "bytes/s", {})], ()) * count]
    for draw, series in ((draw_nics.draw, nics), (draw_peers.draw, peers)):
        with style.settings():
            made = draw(series, Look())
            FigureCanvasAgg(made).draw()
        assert not list(titles_that_touch(made))


def test_figures_have_units_no_legend_over_data_and_names_that_do_not_touch(records):
    figures = figures_of(records)
    assert len(figures) > 80
    for figure in [figure for figure in figures if figure.name in EACH_KIND] + figures[::15]:
        made = drawn(figure)
        assert made.axes, figure.name
        assert not any(axes.get_legend() for axes in made.axes), figure.name
        labels = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in made.axes)
        assert any(unit in labels for unit in ("(µs)", "(ms)", "(ns)", "(s)", "B/s)", "B)", "per second")), figure.name
        assert not list(names_that_touch(made)) and not list(titles_that_touch(made)), figure.name


def test_series_differ_in_colour_marker_and_line(records):
    choice = Choice((where("benchmark=alltoall"), where("scope=block,grid,stream,graph"), where("mode!=pairs")))
    (figure,) = [figure for figure in figures_of(records, choice) if figure.name == "latency-alltoall"]
    (axes,) = drawn(figure).axes
    lines = [line for line in axes.get_lines() if line.get_marker() in style.MARKERS]
    assert len(lines) == 7
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 7
    assert len(set(map(str, style.LINES))) == len(set(style.MARKERS)) == len(style.COLOURS) == SERIES_MAX


def test_runs_become_a_median_with_a_bar(tmp_path):
    lines = [row(size=size, value=value) for size in (8, 64) for value in (1.0, 2.0, 9.0)]
    (figure,) = figures_of(read(write(tmp_path / "f", lines)).records)
    (axes,) = drawn(figure).axes
    assert list(axes.get_lines()[0].get_ydata()) == [2.0, 2.0]
    (bars,) = [collection for collection in axes.collections if len(collection.get_segments()) == 2]
    assert [list(segment[:, 1]) for segment in bars.get_segments()] == [[1.0, 9.0]] * 2


def loads(values, **more):
    nics = tuple(Nic(0, f"nic{index}", tx, rx, **more) for index, (tx, rx) in enumerate(values))
    return NicLoads("a", nics, "kernel", {})


def test_max_over_mean_of_the_nics_is_written_and_the_mean_is_drawn():
    (series,) = group([loads([(10, 40), (10, 0), (10, 0), (10, 0)])], ())
    with style.settings():
        made = draw_nics.draw([series], Look())
    assert {"TX", "RX", "max/mean 1.00", "max/mean 4.00"} <= set(texts_of(made))
    assert [line.get_ydata()[0] for axes in made.axes for line in axes.get_lines()] == [10, 10]
    hatched = [patch.get_hatch() for patch in made.axes[1].patches]
    assert hatched[0] and not any(hatched[1:])


def test_nics_that_take_no_part_do_not_count():
    busy = loads([(8, 8), (8, 8)])
    idle = Nic(1, "nic0", 0, 0, sends=False, receives=False)
    (series,) = group([NicLoads("a", (*busy.nics, idle), "kernel", {})], ())
    with style.settings():
        assert texts_of(draw_nics.draw([series], Look())).count("max/mean 1.00") == 2


def test_nics_stand_in_the_order_of_their_numbers():
    (series,) = group([loads([(1, 1)] * 12)], ())
    direction = draw_nics.Direction(series, "TX")
    assert [name for _, name in direction.keys] == [f"nic{index}" for index in range(12)]


@pytest.mark.parametrize("count", [1, 2, 8, 16, 100])
def test_a_matrix_of_any_number_of_pes_is_drawn(count):
    matrix = tuple(tuple(float(row * column) for column in range(count)) for row in range(count))
    (figure,) = figures_of([PeerMatrix("a", matrix, "bytes/s", {})])
    made = drawn(figure)
    assert isinstance(made, Figure)
    assert any("sent (" in axes.get_ylabel() for axes in made.axes)


def test_a_large_matrix_is_no_large_file_and_has_the_same_bytes_each_time(tmp_path):
    matrix = [[row * column for column in range(300)] for row in range(300)]
    path = write(tmp_path / "f.jsonl", [{"matrix": matrix}])
    for name in ("a.svg", "b.svg"):
        assert plot(path, "-o", tmp_path / name).status == 0
    assert (tmp_path / "a.svg").stat().st_size < 500_000
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_senders_stand_in_order_from_above_in_every_panel():
    matrices = [PeerMatrix("a", ((0.0, 5.0), (0.0, 0.0)), "bytes", {"policy": policy}) for policy in ("x", "y", "z")]
    (figure,) = figures_of(matrices)
    panels = [axes for axes in drawn(figure).axes if axes.get_xlabel() == "to PE"]
    assert [axes.get_ylim() for axes in panels] == [(2, 0)] * 3
    assert [axes.texts[0].get_position() for axes in panels] == [(1.5, 0.5)] * 3


def test_runs_over_time_are_laid_over_one_grid():
    quick = [(10.0, 4.0), (20.0, 2.0)]
    slow = [(5.0, 2.0), (15.0, 2.0), (30.0, 1.0)]
    edges, spreads = draw_time.laid_over([quick, slow])
    assert edges == [0.0, 10.0, 20.0, 30.0]
    assert [(round(each.low, 9), round(each.high, 9), each.count) for each in spreads] == [(2.0, 4.0, 2), (1.5, 2.0, 2), (1.0, 1.0, 1)]


@pytest.mark.parametrize("runs", [1, 3])
def test_a_long_run_is_averaged_so_that_its_line_can_be_read_and_moves_the_same_bytes(runs):
    steps = [(float(index + 1), float(index % 7)) for index in range(1000)]
    edges, spreads = draw_time.laid_over([steps] * runs)
    assert len(spreads) == draw_time.CELLS_MAX
    moved = sum(each.median * (end - start) for each, start, end in zip(spreads, edges, edges[1:]))
    assert moved == pytest.approx(sum(value for _, value in steps))


def test_many_hosts_have_names_that_do_not_touch():
    nics = tuple(Nic(node, "nic0", 5, 5) for node in range(64))
    (figure,) = figures_of([NicLoads("a", nics, "kernel", {})])
    assert not list(names_that_touch(drawn(figure)))


def test_nics_without_any_traffic_are_drawn():
    for kind in ([loads([(0, 0)])], [PeerMatrix("a", ((0.0, 0.0), (0.0, 0.0)), "bytes", {})]):
        (figure,) = figures_of(kind)
        drawn(figure)


@pytest.mark.parametrize("size, text", [(0, "0 B"), (8, "8 B"), (1000, "1000 B"), (1024, "1 KiB"), (1536, "1536 B"), (3 << 20, "3 MiB"), (1 << 30, "1 GiB")])
def test_sizes_are_written_in_binary_units(size, text):
    assert style.size_text(size) == text


@pytest.mark.parametrize("value, text", [(0.05, "0.05"), (2, "2"), (5000, "5000"), (20000, "20k"), (1e6, "1M"), (2.5e9, "2.5G")])
def test_numbers_are_never_powers_of_ten(value, text):
    assert style.plain_number(value) == text
