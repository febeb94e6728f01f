"""The command: what it writes where, and what it says when it cannot."""
import subprocess
import sys

import pytest
from plot_cli import GPU_FILES, PLOT, PROJECT, plot, row, write


@pytest.fixture
def results(tmp_path):
    lines = [row(size=size, policy=policy) for size in (8, 64) for policy in ("coupled", "balanced")]
    return write(tmp_path / "results.jsonl", [*lines, row(table="get_latency")])


def test_a_folder_gets_every_figure_in_both_formats(results, tmp_path):
    done = plot(results, "-o", tmp_path / "new" / "folder")
    assert (done.status, done.errors) == (0, "")
    written = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert written == ["latency-get_latency.png", "latency-get_latency.svg", "latency-put_latency.png", "latency-put_latency.svg"]
    assert [line.rpartition("/")[2] for line in sorted(done.output.splitlines())] == written


def test_a_file_gets_one_figure(results, tmp_path):
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        done = plot(results, "--figure", "*-put_*", "-o", tmp_path / f"a.{kind}", "--width", "7")
        assert done.status == 0, done.errors
        assert (tmp_path / f"a.{kind}").read_bytes().startswith(magic)


def test_list_names_the_figures_and_their_series_and_draws_none(results, tmp_path):
    done = plot(results, "--list", "-o", tmp_path / "out")
    assert done.figures() == ["latency-get_latency", "latency-put_latency"]
    assert "balanced | coupled" in done.output
    assert not (tmp_path / "out").exists()


def test_standard_input_is_a_file_too(results):
    assert plot("-", "--list", text=results.read_text()).figures() == ["latency-get_latency", "latency-put_latency"]


def test_several_libraries_meet_in_one_figure():
    done = plot(*GPU_FILES, "--list", "--where", "benchmark=alltoall", "--where", "scope=block,stream", "--where", "mode!=pairs")
    assert "latency-alltoall " in done.output
    assert "Weft, block | Weft, stream | NVSHMEM, block | NCCL, stream" in done.output


MISTAKES = {
    "two figures in one file": (["-o", "a.svg"], "a.svg holds one figure and there are 2; choose with --figure: latency-get_latency"),
    "another format": (["-o", "a.pdf"], "figures are svg or png, not pdf"),
    "a figure that is not there": (["--figure", "nics-*"], "there is no figure nics-*; weft-plot --list names them"),
    "a field that is not there": (["--where", "colour=red"], "there is no field colour; there are: benchmark, library"),
    "series of a field that is not there": (["--series", "colour"], "there is no field colour"),
    "no field": (["--where", "policy"], "'policy' is not FIELD=VALUE"),
    "a label": (["--label", "x"], "'x' is not OLD=NEW"),
    "a width": (["--width", "0"], "0 is not between 1 and 40 inches"),
    "a width that is no number": (["--width", "nan"], "not between 1 and 40"),
}


@pytest.mark.parametrize("words, says", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_that_says_what_to_do(results, tmp_path, words, says):
    done = subprocess.run([sys.executable, PLOT, results, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("weft-plot: ") and done.stderr.count("\n") == 1
    assert says in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl"]


def test_what_cannot_be_read_or_written_is_named(results, tmp_path):
    assert "nowhere.jsonl cannot be read: No such file" in plot(tmp_path / "nowhere.jsonl").errors
    assert "cannot be read: Is a directory" in plot(tmp_path).errors
    (tmp_path / "plain").write_text("")
    assert "is a file; name a folder" in plot(results, "-o", tmp_path / "plain").errors
    done = plot(results, "--figure", "*put*", "-o", tmp_path / "plain" / "a.svg")
    assert done.status == 1 and "cannot be written" in done.errors


def test_what_is_left_out_is_said_and_the_rest_is_drawn_with_status_1(tmp_path):
    lines = [row(size=8), "{broken", row(size=64), "", row(unit="x")]
    done = plot(write(tmp_path / "f.jsonl", lines), "-o", tmp_path / "a.svg")
    assert done.status == 1
    assert done.errors.count("\n") == 1
    assert "left out line 2 (not JSON); line 4 (empty); line 5 (the unit 'x' is not known); 2 of 5 lines are used" in done.errors
    assert (tmp_path / "a.svg").exists()


def test_words_that_leave_no_room_are_said(results, tmp_path):
    done = plot(results, "--figure", "*-put_*", "-o", tmp_path / "a.svg", "--width", "1", "--height", "1")
    assert done.status == 0
    assert done.errors == f"weft-plot: {tmp_path}/a.svg: its words leave no room for the data; give a larger --width or --height\n"


def test_nothing_to_draw_is_said(results, tmp_path):
    assert "no record is left after --where" in plot(results, "--where", "library=NCCL").errors
    assert "nothing here can be drawn" in plot(write(tmp_path / "f", ["{}"])).errors


def test_help_names_the_fields():
    done = plot("--help")
    assert done.status == 0
    assert "Fields: benchmark, library, policy, scope" in done.output


def test_the_users_own_settings_of_matplotlib_do_not_count(results, tmp_path):
    (tmp_path / "matplotlibrc").write_text("font.size: 30\naxes.facecolor: red\n")
    for folder, environment in (("plain", {}), ("own", {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc")})):
        assert plot(results, "--figure", "*put*", "-o", tmp_path / folder, **environment).status == 0
    name = "latency-put_latency.svg"
    assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "own" / name).read_bytes()


@pytest.fixture
def without_matplotlib(tmp_path):
    (tmp_path / "weft-plot").write_text(PLOT.read_text())
    (tmp_path / "weft_plot").symlink_to(PROJECT / "tools" / "plot" / "weft_plot")
    for name in ("matplotlib", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name='{name}')\n")

    def run(*words):
        return subprocess.run([sys.executable, "-B", tmp_path / "weft-plot", *words], cwd=tmp_path, capture_output=True, text=True)
    return run


def test_without_matplotlib_drawing_says_how_to_get_it(without_matplotlib, results, tmp_path):
    done = without_matplotlib(results, "-o", "new")
    assert done.returncode == 2
    assert "the Python package matplotlib is missing; run: " in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words, status, says", [
    (["--help"], 0, "usage: weft-plot"), (["--version"], 0, "weft-plot "), (["results.jsonl", "--list"], 0, "latency-put_latency"),
    (["--bogus"], 2, "--bogus"), (["results.jsonl", "--series", "colour"], 2, "there is no field colour"), (["absent"], 1, "absent cannot be read")])
def test_only_drawing_needs_matplotlib(without_matplotlib, results, words, status, says):
    done = without_matplotlib(*words)
    assert done.returncode == status and says in done.stdout + done.stderr, done.stderr
    assert "matplotlib is missing" not in done.stderr
