"""The pictures of the README are what scripts/make_pictures makes now."""
import re
import subprocess

import pytest
from plot_cli import PROJECT

IMAGES = PROJECT / "docs" / "images"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    done = subprocess.run([PROJECT / "scripts" / "make_pictures", folder], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def test_every_committed_picture_is_made_anew_with_the_same_bytes(made):
    pictures = sorted(path.name for path in made.iterdir())
    assert 4 <= len(pictures) <= 8
    for name in pictures:
        assert (IMAGES / name).read_bytes() == (made / name).read_bytes(), f"{name} differs; run scripts/make_pictures and look at it"


def test_every_picture_is_shown_in_a_document(made):
    documents = [PROJECT / "README.md", PROJECT / "docs" / "PERFORMANCE.md", PROJECT / "docs" / "LOOM.md"]
    shown = {name for path in documents for name in re.findall(r"images/([\w-]+\.svg)", path.read_text())}
    assert {path.name for path in made.iterdir()} <= shown


def test_pictures_hold_more_than_axes(made):
    for path in made.iterdir():
        text = path.read_text()
        drawn = len(re.findall(r"<(?:path|use)\b", text))
        assert drawn > 60, f"{path.name}: {drawn} shapes"
