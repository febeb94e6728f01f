"""What a recording shows is what was seen live; and the script that makes the README's pictures of it."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import frames
from screens import Session, drive
from weft_top.frames import ReplaySource
from weft_top.record import Recorder, Recording
from weft_top.screen.views import VIEWS

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_screenshot"
LIMIT_S = 120


@pytest.fixture
def recorded(tmp_path):
    """recorded(scene) -> (Frames as they were live, path of their recording)."""

    def make(scene):
        path = tmp_path / f"{scene}.weft"
        recorder = Recorder(str(path))
        frames.SINKS.append(recorder)
        try:
            live = frames.SCENES[scene]()
        finally:
            frames.SINKS.remove(recorder)
            recorder.close()
        return live, path

    return make


def screens_of(made):
    """view -> lines, without the header, which says whether it is a replay."""
    seen = {}

    async def script(session: Session):
        session.state.nic_key = session.state.frame.nics[0].nic.key
        for view in VIEWS:
            session.state.view = view
            session.app.repaint()
            seen[view] = session.lines[1:]

    drive(script, made, (120, 40))
    return seen


@pytest.mark.parametrize("scene", ["coupled", "rail_down", "efa", "hostile"])
def test_a_replay_shows_the_screens_that_were_seen_live(recorded, scene):
    live, path = recorded(scene)
    source = ReplaySource(Recording(str(path)))
    replayed = list(iter(source.next_frame, None))
    source.close()
    assert len(replayed) == len(live)
    assert screens_of(replayed) == screens_of(live)


def make_pictures(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


def test_the_script_makes_pictures_of_a_recording_that_fetch_nothing(recorded, tmp_path):
    _, path = recorded("coupled")
    done = make_pictures("--replay", path, "--output-directory", tmp_path / "images", "--view", "balance", "nics", "peers")
    assert done.returncode == 0, done.stderr
    pictures = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "images").iterdir()}
    assert set(pictures) == {"weft-top.svg", "weft-top-nics.svg", "weft-top-peers.svg"}
    for text in pictures.values():
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "url(\"http" not in text and "@font-face" not in text
    words = "".join(ElementTree.fromstring(pictures["weft-top.svg"]).itertext()).replace("\xa0", " ")
    assert "policy is coupled; balanced would spread it" in words


def test_the_script_says_what_is_wrong_with_a_recording(recorded, tmp_path):
    (tmp_path / "other").write_text("no recording")
    done = make_pictures("--replay", tmp_path / "other", "--output-directory", tmp_path)
    assert done.returncode == 1 and "no recording of weft-top" in done.stderr
    _, path = recorded("nothing")
    done = make_pictures("--replay", path, "--output-directory", tmp_path)
    assert done.returncode == 1 and "no job that sends anything" in done.stderr
