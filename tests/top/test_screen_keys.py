"""Keys and mouse of the screen, through Textual's pilot: what each does is read off the painted lines."""

import pytest
from textual import events

import frames
from screens import Session, drive
from weft_top.screen import ScreenOptions


def names(session):
    """The first word of each row."""
    return [line.split()[0].lstrip("!") for line in session.rows()]


def test_the_first_screen_is_the_table_of_nics_with_rates_shares_and_the_job_in_the_header():
    async def script(session: Session):
        assert "1 job  8 PEs  32 NICs" in session.lines[0]
        assert "every 10 s" in session.lines[0] and "Gbit/s" in session.lines[0]
        first = session.rows()[0].split()
        assert first[:3] == ["host0/nic0", "9.55", "24%"]
        assert "95%" in session.rows()[0] and "█" in session.rows()[0]
        assert names(session)[:3] == ["host0/nic0", "host0/nic1", "host0/nic2"]

    drive(script, "coupled")


@pytest.mark.parametrize(
    ("key", "tab", "words"),
    [("1", "NICs", "NIC▲"), ("2", "Balance", "max/mean"), ("3", "Processes", "process / NIC"), ("4", "Peers", "to 0"),
     ("5", "Events", "nothing has happened yet")],
)  # fmt: skip
def test_a_number_key_shows_its_view(key, tab, words):
    async def script(session: Session):
        await session.press("3" if key != "3" else "1", key)
        assert words in session.text
        assert [piece for piece, style in session.app.commands.picture.lines[1][0] if style == "tab-on"] == [f" {key} {tab} "]

    drive(script, "coupled")


def test_tab_goes_through_the_views_and_round():
    async def script(session: Session):
        seen = []
        for _ in range(6):
            seen.append(session.state.view)
            await session.press("tab")
        assert seen == ["nics", "balance", "processes", "peers", "events", "nics"]
        await session.press("shift+tab", "shift+tab")
        assert session.state.view == "events"

    drive(script, "coupled")


def test_s_cycles_the_sort_column_and_r_reverses_it():
    async def script(session: Session):
        await session.press("s")
        assert "TX▼" in session.lines[2]
        await session.press("s")
        assert "RX▼" in session.lines[2]
        loaded = {"host0/nic0", "host0/nic5", "host0/nic10", "host0/nic15", "host1/nic0", "host1/nic5", "host1/nic10", "host1/nic15"}
        assert set(names(session)[:8]) == loaded
        await session.press("r")
        assert "RX▲" in session.lines[2]
        assert not loaded & set(names(session))

    drive(script, "coupled")


def test_rows_without_a_value_come_last_in_both_directions():
    made = frames.many(5)
    made[-1].nics[2].tx_bits_per_s = None

    async def script(session: Session):
        await session.press("s")
        assert names(session)[-1] == "nic2"
        await session.press("r")
        assert names(session)[-1] == "nic2"

    drive(script, made)


def test_nics_are_in_the_order_of_their_numbers():
    async def script(session: Session):
        assert names(session)[:11] == [f"nic{index}" for index in range(11)]

    drive(script, "many")


def test_a_filter_keeps_the_rows_with_all_its_words_and_escape_clears_it():
    async def script(session: Session):
        await session.press("/")
        await session.type("HOST1 nic1")
        assert session.lines[-1].startswith("filter: HOST1 nic1_")
        assert names(session) == [f"host1/nic{index}" for index in (1, 10, 11, 12, 13, 14, 15)]
        await session.press("enter")
        assert "filter: HOST1 nic1 (Esc clears)" in session.lines[-1]
        await session.press("2")
        shown = [line for line in session.rows() if line.startswith("PE ")]
        assert [line[:10] for line in shown] == ["PE 4 host1", "PE 6 host1", "PE 7 host1"]  # those with such a rail
        await session.press("1", "escape")
        assert len(names(session)) == 20
        await session.press("slash", "z", "z")
        assert names(session) == ["nothing"]

    drive(script, "coupled")


def test_while_the_filter_is_typed_keys_are_text():
    async def script(session: Session):
        await session.press("/")
        await session.type("q2u")
        assert session.state.view == "nics" and session.state.unit == "Gbit/s"
        await session.press("backspace")
        assert session.state.filter_text == "q2"
        await session.press("ctrl+u")
        assert session.state.filter_text == ""
        await session.press("escape")
        assert not session.state.filter_open

    drive(script, "coupled")


def test_u_switches_to_gigabytes_and_back():
    async def script(session: Session):
        assert " 38.19 " in session.rows()[0]
        await session.press("u")
        assert "GB/s" in session.lines[0]
        assert " 4.774 " in session.rows()[0]
        await session.press("u")
        assert "Gbit/s" in session.lines[0]

    drive(script, "coupled")


def test_plus_and_minus_step_the_interval_from_100_ms_to_10_s_and_tell_the_source():
    source = frames.Source(frames.balanced(3))

    async def script(session: Session):
        seen = []
        for _ in range(7):
            seen.append(source.frames_interval_s)
            await session.press("minus")
        assert seen == [10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1]
        assert source.frames_interval_s == 0.1 and "every 100 ms" in session.text
        for _ in range(9):
            await session.press("plus")
        assert source.frames_interval_s == 10.0 and "every 10 s" in session.lines[0]

    drive(script, source)


def test_space_freezes_the_screen_and_nothing_is_lost_meanwhile():
    made = frames.rail_down(10)
    source = frames.Source(made[:5])

    async def script(session: Session):
        await session.press("5")
        await session.press("space")
        assert "FROZEN" in session.lines[0]
        before = session.lines[1:-1]
        for frame in made[5:]:
            session.state.take(frame)
        await session.press("1", "5")
        assert session.lines[1:-1] == before
        await session.press("space")
        assert "FROZEN" not in session.lines[0]
        assert "is down, was up" in session.text and "12:00:00" in session.lines[0]

    drive(script, source)


def test_the_cursor_stays_on_its_nic_when_the_order_changes():
    async def script(session: Session):
        await session.press(*["down"] * 5)
        assert "host0/nic5" in session.selected
        await session.press("s", "s", "r")
        assert "host0/nic5" in session.selected

    drive(script, "coupled", size=(80, 50))


def test_the_cursor_moves_by_lines_and_pages_and_stays_in_sight():
    async def script(session: Session):
        await session.press("end")
        assert "nic999" in session.selected
        await session.press("pageup")
        assert "nic980" in session.selected
        await session.press("home", "down", "down", "up")
        assert "nic1 " in session.selected
        await session.press("pagedown")
        assert "nic20" in session.selected

    drive(script, "many")


def test_enter_opens_a_nic_with_counters_graph_and_holder_and_escape_goes_back():
    async def script(session: Session):
        await session.press("down", "enter")
        assert session.state.view == "nic"
        assert session.lines[2].startswith("host0/nic1  up")
        assert "rx_packets" in session.text and "PE 0 of job demo, rail 1" in session.text and "60 s ago" in session.text
        await session.press("escape")
        assert session.state.view == "nics" and "host0/nic1" in session.selected
        await session.press("6")
        assert session.state.view == "nic"

    drive(script, "coupled")


def test_the_page_of_a_nic_that_has_gone_says_so():
    source = frames.Source(frames.coupled(2))

    async def script(session: Session):
        await session.press("enter")
        session.state.take(frames.nothing()[-1])
        await session.press("u")
        assert "not here any more" in session.text

    drive(script, source)


def test_enter_on_a_pe_opens_the_nic_of_its_worst_rail():
    async def script(session: Session):
        await session.press("2", "down", "enter")
        assert session.lines[2].startswith("host0/nic5")

    drive(script, "coupled")


def test_x_unfolds_the_rails_of_each_pe_and_folds_them_again():
    async def script(session: Session):
        await session.press("2")
        assert "rail 3  nic3" not in session.text
        await session.press("x")
        assert "rail 3  nic3" in session.text
        await session.press("x")
        assert "rail 3  nic3" not in session.text

    drive(script, "coupled")


def test_the_balance_says_in_words_and_marks_which_rail_carries_everything():
    async def script(session: Session):
        await session.press("2")
        assert "4.00! rail 1" in session.lines[session.line_of("PE 1 host0")]
        assert "RX of PE 1 arrives 100 % on rail 1; policy is coupled; balanced would spread it" in session.text

    drive(script, "coupled")


def test_even_rails_are_1_00_without_a_mark():
    async def script(session: Session):
        await session.press("2")
        assert all("!" not in line for line in session.rows())
        assert session.rows()[0].count("1.00") == 2

    drive(script, "balanced", size=(80, 24))


def test_the_matrix_scrolls_sideways_and_x_shows_the_peers_rails():
    async def script(session: Session):
        await session.press("4")
        assert "to 0" in session.lines[3] and "to 63" not in session.lines[3]
        await session.press(*["right"] * 60)
        assert "to 63" in session.lines[3] and "to 0" not in session.lines[3]
        await session.press("x")
        assert "to 8.0" in session.lines[3]

    drive(script, "large_job")


def test_a_row_of_the_matrix_sums_to_what_its_pe_sends():
    async def script(session: Session):
        await session.press("4")
        whole, *cells = session.lines[session.line_of("PE 0 host0")].split()[3:]
        numbers = [float(cell) for cell in cells if cell[0].isdigit()]
        assert len(numbers) == 4
        assert sum(numbers) == pytest.approx(float(whole), rel=0.01)

    drive(script, "coupled")


def test_j_goes_to_the_next_job():
    made = frames.coupled(2)
    other = frames.all_to_all([[0.25] * 4] * 8, "balanced", 2, job="other")
    made[-1].pes = made[-1].pes + other[-1].pes

    async def script(session: Session):
        await session.press("4")
        assert "job demo" in session.lines[2]
        await session.press("j")
        assert "job other" in session.lines[2]
        await session.press("j")
        assert "job demo" in session.lines[2]

    drive(script, made)


def test_help_names_every_key_that_does_something():
    async def script(session: Session):
        await session.press("question_mark")
        for key in ("Enter", "Esc", "Tab", "s, r", "/", "x", "j", "u", "space", "+ and -", "q, Ctrl-C", "arrows"):
            assert any(line.lstrip().startswith(key) or f", {key}" in line for line in session.lines), key
        await session.press("escape")
        assert session.state.view == "nics"

    drive(script, "coupled", size=(80, 50))


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_the_keys_that_quit(key):
    async def script(session: Session):
        await session.press(key)

    app = drive(script, "coupled")
    assert app._exit and app.return_code == 0


def test_an_unknown_key_does_nothing():
    async def script(session: Session):
        before = session.lines
        await session.press("f5", "y", "ctrl+l", "Z")
        assert session.lines == before

    drive(script, "coupled")


# ---- Mouse ---------------------------------------------------------------------------------------


def test_a_click_on_a_tab_shows_its_view():
    async def script(session: Session):
        await session.click(session.lines[1].index("Balance"), 1)
        assert session.state.view == "balance"

    drive(script, "coupled")


def test_a_click_on_a_title_sorts_and_the_second_one_reverses():
    async def script(session: Session):
        x = session.lines[2].index("RX")
        await session.click(x, 2)
        assert "RX▼" in session.lines[2]
        await session.click(x, 2)
        assert "RX▲" in session.lines[2]

    drive(script, "coupled")


def test_a_click_selects_a_row_and_the_second_one_opens_it():
    async def script(session: Session):
        y = session.line_of("host0/nic7")
        await session.click(5, y)
        assert "host0/nic7" in session.selected
        await session.click(5, y)
        assert session.lines[2].startswith("host0/nic7")

    drive(script, "coupled")


def test_the_wheel_scrolls():
    async def script(session: Session):
        canvas = session.app._canvas
        canvas.post_message(events.MouseScrollDown(canvas, 5, 5, 0, 1, 0, False, False, False))
        await session.pilot.pause()
        assert "nic3 " in session.selected

    drive(script, "many")


def test_a_click_into_nothing_does_nothing():
    async def script(session: Session):
        for x, y in ((79, 0), (79, 1), (5, 20), (0, 23)):
            await session.click(x, y)
        assert session.state.view == "nics"

    drive(script, "nothing")


def test_a_screen_with_a_duration_ends_by_itself():
    async def script(session: Session):
        await session.pilot.pause(0.5)

    app = drive(script, "nothing", options=ScreenOptions(interval_s=10.0, duration_s=0.1))
    assert app._exit and app.return_code == 0


# ---- Sampling and replay -------------------------------------------------------------------------


def test_sampling_goes_on_at_the_interval_and_painting_less_often():
    source = frames.Source(frames.balanced(60))
    painted = []

    async def script(session: Session):
        session.app._canvas.show = painted.append
        await session.pilot.pause(1.5)

    drive(script, source, options=ScreenOptions(interval_s=0.1))
    # An upper limit only: a loaded machine may do less of both.
    assert source.asked > len(painted)
    assert len(painted) <= 4


def test_a_replay_shows_each_frame_then_says_that_it_is_at_its_end():
    made = frames.rail_down(20)
    source = frames.Source(made, is_replay=True)

    async def script(session: Session):
        await session.press(*["plus"] * 0, *["minus"] * 6)
        assert session.state.speed == 64
        for _ in range(200):
            await session.pilot.pause(0.05)
            if "REPLAY END" in session.lines[0]:
                break
        assert "REPLAY END" in session.lines[0] and "12:00:00" in session.lines[0]
        await session.press("5")
        assert "is down, was up" in session.text

    drive(script, source)


def test_space_pauses_a_replay():
    source = frames.Source(frames.coupled(30), is_replay=True)

    async def script(session: Session):
        await session.press("space", *["minus"] * 6)
        assert "PAUSED" in session.lines[0]
        asked = source.asked
        await session.pilot.pause(0.3)
        assert source.asked == asked

    drive(script, source)


def test_what_a_source_raises_ends_the_screen_and_reaches_the_caller():
    class Broken(frames.Source):
        def next_frame(self):
            if self.asked >= 1:
                raise RuntimeError("the recording is damaged at byte 77")
            return super().next_frame()

    async def script(session: Session):
        await session.press("minus", "minus", "minus", "minus", "minus", "minus")
        await session.pilot.pause(0.5)

    with pytest.raises(RuntimeError, match="byte 77"):
        drive(script, Broken(frames.balanced(3)))
