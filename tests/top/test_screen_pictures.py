"""The pure part of the screen: numbers, lines, columns, and whole pictures of every situation at many sizes."""

import pytest

import frames
from rich.cells import cell_len
from screens import in_utc, scene_frames
from weft_top.screen import INTERVALS_S, ScreenOptions, lines, numbers, picture, table
from weft_top.screen.commands import Commands
from weft_top.screen.palette import Palette, choose_theme
from weft_top.screen.state import ScreenState
from weft_top.screen.views import VIEWS

SIZES = [(80, 24), (200, 50), (40, 12), (20, 5), (7, 3), (1, 1), (300, 8)]


def shown(scene, view="nics", size=(80, 24)):
    """(state, Picture) of a scene in a view."""
    state = ScreenState(view=view)
    for frame in scene_frames(scene):
        state.take(frame)
    nics = state.frame.nics
    state.nic_key = nics[len(nics) // 2].nic.key if nics else "net:/gone"
    with in_utc():
        return state, picture.paint(state, *size)


def text_of(line):
    return "".join(text for text, _ in line)


# ---- Pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", frames.SCENES)
def test_a_picture_has_exactly_the_cells_of_its_terminal(scene, size):
    for view in VIEWS:
        _, made = shown(scene, view, size)
        assert [cell_len(text_of(line)) for line, _ in made.lines] == [size[0]] * size[1], view


@pytest.mark.parametrize("view", VIEWS)
def test_no_name_brings_a_control_character_to_the_terminal(view):
    _, made = shown("hostile", view, (200, 50))
    for line, _ in made.lines:
        assert text_of(line).isprintable()


@pytest.mark.parametrize("view", VIEWS)
def test_every_style_of_a_view_is_in_every_theme(view):
    for theme in ("auto", "dark", "light", "mono"):
        palette = Palette(theme)
        for scene in frames.SCENES:
            for line, selected in shown(scene, view, (200, 50))[1].lines:
                for _, style in line:
                    palette.style(style, selected)


def test_markup_in_a_name_is_shown_and_not_obeyed():
    _, made = shown("hostile", "nics", (200, 50))
    assert any("[bold red]nic[/bold red]" in text_of(line) for line, _ in made.lines)


@pytest.mark.parametrize("view", VIEWS)
def test_keys_do_no_harm_in_any_view_whatever_there_is_to_see(view):
    for scene in frames.SCENES:
        state, made = shown(scene, view, (60, 15))
        commands = Commands(state)
        for key in ("down", "end", "s", "r", "x", "j", "right", "left", "pagedown", "up", "home", "space", "u", "enter",
                    "slash", "a", "enter", "escape", "6", "tab", "shift+tab", "question_mark", "pageup"):  # fmt: skip
            commands.picture = made
            commands.press(key, key if len(key) == 1 else None)
            made = picture.paint(state, 60, 15)
        for y in range(15):
            commands.picture = made
            commands.click(30, y)
            made = picture.paint(state, 60, 15)


def test_the_cursor_is_in_sight_wherever_it_is_moved():
    state, made = shown("many", "nics", (80, 24))
    commands = Commands(state)
    for key in ["pagedown"] * 3 + ["up"] * 30 + ["end", "up", "pageup", "down", "home", "down"]:
        commands.picture = made
        commands.press(key, None)
        made = picture.paint(state, 80, 24)
        assert sum(selected for _, selected in made.lines) == 1


def test_the_cursor_skips_sentences():
    state, made = shown("coupled", "balance", (80, 24))
    commands = Commands(state)
    for pe in range(1, 8):
        commands.picture = made
        commands.press("down", None)
        made = picture.paint(state, 80, 24)
        assert [text_of(line)[:4] for line, selected in made.lines if selected] == [f"PE {pe}"]


def test_a_cursor_whose_row_goes_stays_on_its_line():
    state, made = shown("coupled", "nics", (80, 24))
    commands = Commands(state)
    commands.picture = made
    commands.move(5)
    nics = state.frame.nics
    state.frame.nics, everything = nics[:5] + nics[6:], nics
    try:
        made = picture.paint(state, 80, 24)
        assert "nic6" in next(text_of(line) for line, selected in made.lines if selected)
    finally:
        state.frame.nics = everything


def test_one_row_more_than_fits_can_be_reached():
    state, made = shown("large_job", "peers", (80, 11))
    commands = Commands(state)
    commands.picture = made
    commands.press("end", None)
    made = picture.paint(state, 80, 11)
    assert any("PE 7" in text_of(line) for line, _ in made.lines)


# ---- Numbers and lines ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.04, "<1"), (0.5, "0.5"), (3, "3"), (999.4, "999"), (999.6, "1.00k"), (12345, "12.3k"), (999_500, "1.00M"),
     (4.2e9, "4.20G"), (1e30, "999E"), (None, "-")],
)  # fmt: skip
def test_a_count_has_three_digits_and_a_prefix(value, text):
    assert numbers.count(value) == text


def test_no_rate_is_wider_than_its_column():
    for exponent in range(-8, 14):
        for digits in (1.0, 1.049, 9.994, 9.9951, 9.99999):
            value = digits * 10.0**exponent
            assert len(numbers.rate(value, numbers.decimals_for(value))) == numbers.RATE_WIDTH, value
            assert len(numbers.rate(value, 4)) == numbers.RATE_WIDTH, value


def test_what_is_not_known_is_a_dash_and_nothing_is_a_zero():
    assert numbers.rate(None, 2).strip() == "-"
    assert numbers.rate(0.0, 2).strip() == "0"
    assert numbers.rate(1e-9, 2).strip() == "~0"
    assert numbers.percent(None).strip() == "-" and numbers.ratio(None).strip() == "-"


@pytest.mark.parametrize(("bits", "text"), [(400e9, "400 Gbit/s"), (40e6, "40 Mbit/s"), (None, "-"), (0, "-"), (999, "999 bit/s")])
def test_a_line_rate_is_written_as_on_the_box(bits, text):
    assert numbers.line_rate(bits) == text


def test_a_bar_is_as_long_as_its_share_and_as_wide_as_asked():
    for width in range(12):
        for share in (None, 0, 1e-9, 0.01, 0.333, 0.5, 0.999, 1.0, 7.0):
            assert len(lines.bar(share, width)) == width
    assert lines.bar(0.5, 4) == "██  "
    assert lines.bar(0.0001, 4) == "▏   "
    assert lines.bar(7.0, 4) == "████"


def test_a_text_is_fitted_by_cells_whatever_it_holds():
    for text in ("", "abc", "abcdefghij", "網卡漢字網卡", "a\x00b\x1b[31m", "e\u0301e\u0301", "[bold]x[/bold]"):
        for width in range(9):
            for align in ("left", "right", "tail"):
                assert cell_len(lines.fit(text, width, align)) == width, (text, width, align)
    assert lines.fit("abcdefghij", 5) == "abcd~"
    assert lines.fit("abcdefghij", 5, "tail") == "~ghij"


def test_a_cut_line_has_the_cells_asked_for():
    line = (("ab漢", "x"), ("cd", "y"))
    assert lines.cut_line(line, 0, 6) == line
    assert text_of(lines.cut_line(line, 1, 3)) == "b漢"
    assert lines.cut_line(line, 4, 9) == (("cd", "y"),)
    assert lines.line_cells(lines.cut_line(line, 0, 3)) == 3


def test_a_sparkline_has_the_newest_second_at_the_right():
    values = [0.0] * 59 + [8.0]
    assert lines.spark(values, 60, 8) == "·" * 59 + "█"
    assert lines.spark(values, 12, 8, phase=0).endswith("█")
    assert lines.spark([], 9, 8) == " " * 9


def test_the_past_of_a_sparkline_keeps_its_shape_while_time_goes_on():
    history = [float(second % 17) for second in range(200)]
    before = lines.spark(history[100:160], 13, 17, phase=160)
    for second in range(161, 165):
        after = lines.spark(history[second - 60:second], 13, 17, phase=second)
        # The last cell fills up; the first may lose seconds that are older than a minute.
        moved = (second // 5) - (160 // 5)
        assert before[3:12 - 1] == after[3 - moved:12 - 1 - moved]


@pytest.mark.parametrize("width", range(1, 130))
def test_columns_never_take_more_than_the_width(width):
    shapes = ((1, 0, 0), (13, 40, 0), (6, 0, 0), (4, 0, 1), (7, 22, 2), (6, 0, 4), (9, 31, 5))
    cells = table.widths(shapes, width)
    kept = [size for size in cells if size]
    assert kept and (sum(kept) + len(kept) - 1 <= width or len(kept) == 1)


# ---- Options and colours -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"interval_s": 0.01}, "0.1 to 10"), ({"interval_s": 11}, "0.1 to 10"), ({"unit": "Mbit"}, "Gbit/s or GB/s"), ({"theme": "pink"}, "auto")],
)
def test_wrong_options_say_what_to_choose(wrong, words):
    with pytest.raises(ValueError, match=words):
        ScreenOptions(**wrong)


def test_an_interval_between_the_steps_goes_to_the_next_step():
    state = ScreenState(interval_s=0.3)
    state.step_interval(1)
    assert state.interval_s == 0.5
    state.interval_s = 0.3
    state.step_interval(-1)
    assert state.interval_s == 0.2
    assert INTERVALS_S[0] == 0.1 and INTERVALS_S[-1] == 10.0


@pytest.mark.parametrize(
    ("theme", "environment", "chosen"),
    [("auto", {}, "auto"), ("auto", {"COLORFGBG": "0;15"}, "light"), ("auto", {"COLORFGBG": "15;0"}, "dark"),
     ("auto", {"COLORFGBG": "15;default"}, "auto"), ("light", {"NO_COLOR": "1"}, "mono"), ("dark", {"NO_COLOR": ""}, "dark"),
     ("dark", {"COLORFGBG": "0;15"}, "dark")],
)  # fmt: skip
def test_the_theme_follows_no_color_and_what_the_terminal_says(theme, environment, chosen):
    assert choose_theme(theme, environment) == chosen


def test_the_mono_theme_has_no_colour_at_all():
    palette = Palette("mono")
    for name in (*Palette("auto")._styles, *palette._styles):
        assert palette.style(name).color is None and palette.style(name).bgcolor is None


def test_a_background_is_only_set_together_with_the_text_on_it():
    for theme in ("auto", "dark", "light"):
        for style in Palette(theme)._styles.values():
            assert style.bgcolor is None or style.color is not None
