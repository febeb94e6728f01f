"""Each view at 80x24 and 200x50, beside a kept text in screens/. WEFT_TOP_KEEP_SCREENS=1 writes them anew: look at them.

Of two lines of the same text only the styles may differ; which line has the cursor stands below the screen.
"""

import os
from pathlib import Path

import pytest

from screens import Session, drive

KEPT = Path(__file__).resolve().parent / "screens"
SIZES = {"80x24": (80, 24), "200x50": (200, 50)}
# name -> (scene, keys)
SCREENS = {
    "nics": ("coupled", []),
    "nics-by-rx": ("coupled", ["s", "s"]),
    "nics-efa": ("efa", []),
    "nics-many-by-tx": ("many", ["s"]),
    "nics-gigabytes-filtered": ("balanced", ["u", "slash", *"host1", "enter"]),
    "nics-rail-down": ("rail_down", []),
    "nics-none": ("nothing", []),
    "nics-hostile": ("hostile", []),
    "balance-coupled": ("coupled", ["2"]),
    "balance-balanced": ("balanced", ["2"]),
    "balance-rail-down": ("rail_down", ["2", "x"]),
    "balance-one-node": ("one_node", ["2"]),
    "balance-hostile": ("hostile", ["2"]),
    "processes": ("coupled", ["3"]),
    "processes-efa": ("efa", ["3"]),
    "peers": ("coupled", ["4"]),
    "peers-rails": ("coupled", ["4", "x"]),
    "peers-large": ("large_job", ["4"]),
    "events": ("rail_down", ["5"]),
    "events-notice": ("one_node", ["5"]),
    "events-hostile": ("hostile", ["5"]),
    "nic": ("rail_down", ["down", "enter"]),
    "nic-efa": ("efa", ["enter"]),
    "help": ("coupled", ["question_mark"]),
    "frozen": ("coupled", ["space"]),
    "filter": ("coupled", ["slash", *"nic1"]),
}


@pytest.fixture(scope="module")
def screens():
    """(name, size) -> the screen as it is kept; one application for each size shows them all."""
    shown = {}

    async def script(session: Session):
        size = next(name for name, cells in SIZES.items() if cells == session.app.terminal_size)
        for name, (scene, keys) in SCREENS.items():
            session.begin_again(scene)
            await session.press(*keys)
            selected = [str(y) for y, (_, selected) in enumerate(session.app.commands.picture.lines) if selected]
            lines = [*session.lines, f"-- line of the cursor: {', '.join(selected) or 'none'}"]
            shown[name, size] = "\n".join(lines) + "\n"

    for cells in SIZES.values():
        drive(script, "nothing", cells)
    return shown


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_the_kept_one(screens, name, size):
    path = KEPT / f"{name}-{size}.txt"
    text = screens[name, size]
    if os.environ.get("WEFT_TOP_KEEP_SCREENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"compare with {path}; WEFT_TOP_KEEP_SCREENS=1 keeps the new one"


def test_each_view_has_a_screen_and_each_tab_a_word_in_the_help():
    from weft_top.screen.views import TABS, VIEWS
    from weft_top.screen.views.help import TEXT

    assert {name for name in VIEWS if not any(screen.split("-")[0] == name for screen in SCREENS)} == set()
    words = next(line for line in TEXT.splitlines() if "{last_tab}" in line).partition("Tab ")[2].split(",")
    assert len(words) == len(TABS)


def test_no_kept_screen_is_left_over():
    assert {path.name for path in KEPT.glob("*.txt")} == {f"{name}-{size}.txt" for name in SCREENS for size in SIZES}
