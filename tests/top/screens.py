"""Runs the screen without a terminal, for the tests: an application on Frames of frames.py, driven by a script.

`drive(script, scene)` calls `await script(session)` while the application runs; Textual's own pilot types and clicks.
"""

import asyncio
import os
import time
from contextlib import contextmanager
from functools import lru_cache

import frames
from weft_top.screen import ScreenOptions
from weft_top.screen.app import TopApp
from weft_top.screen.commands import Commands
from weft_top.screen.state import ScreenState

SLOW = ScreenOptions(interval_s=10.0)  # no sample but the first one falls into a test


@lru_cache(maxsize=None)
def scene_frames(name):
    """The Frames of a scene, made once."""
    return tuple(frames.SCENES[name]())


class Session:
    """The running application, as a test sees it."""

    def __init__(self, app, pilot):
        self.app = app
        self.pilot = pilot

    @property
    def state(self):
        return self.app.state

    @property
    def lines(self):
        """The screen as text, a line each, without spaces at the ends."""
        return self.app._canvas.text()

    @property
    def text(self):
        return "\n".join(self.lines)

    @property
    def selected(self):
        """The line with the cursor, or ""."""
        shown = [index for index, (_, selected) in enumerate(self.app.commands.picture.lines) if selected]
        return self.lines[shown[0]] if shown else ""

    def begin_again(self, scene):
        """As if the application had just been started on this scene; saves a start for each screen."""
        app = self.app
        app.source = frames.Source([])
        app.state = ScreenState(interval_s=app.state.interval_s)
        app.commands = Commands(app.state)
        for frame in scene_frames(scene):
            app.state.take(frame)
        app.repaint()

    async def press(self, *keys):
        await self.pilot.press(*keys)

    async def type(self, text):
        await self.pilot.press(*("space" if character == " " else character for character in text))

    async def click(self, x, y):
        await self.pilot.click(offset=(x, y))

    def line_of(self, text):
        """The first line with this text: its number."""
        return next(index for index, line in enumerate(self.lines) if text in line)

    def rows(self):
        """The lines of the view, without its head and without the last line of the screen."""
        first, count = self.app.commands.picture.body
        return [line for line in self.lines[first:first + count] if line]


def drive(script, scene, size=(80, 24), options=SLOW):
    """Run `script` on a scene's name, on a list of Frames (all taken before the screen opens) or on a source."""
    source = scene
    earlier = ()
    if isinstance(scene, (str, list)):
        made = scene_frames(scene) if isinstance(scene, str) else scene
        source, earlier = frames.Source(made[-1:]), made[:-1]

    async def run():
        app = TopApp(source, options)
        for frame in earlier:
            app.state.take(frame)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(Session(app, pilot))
        if app.failure is not None:
            raise app.failure
        return app

    with in_utc():
        return asyncio.run(run())


@contextmanager
def in_utc():
    """The screens of every test machine show the same time of day."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()
