"""The application: takes Frames at the interval, paints at most once a second, and answers keys at once.

Owner: the main thread, in one asyncio loop; nothing here sleeps or blocks. Invariants: sampling goes on whatever is
shown; an exception ends the screen in order and is kept in `failure` for the caller, who has the terminal back then.
Sampling uses the loop's own timers: a timer of Textual's costs as much as painting two lines.
"""

import asyncio

from textual.app import App

from .canvas import Canvas
from .commands import QUIT, SUSPEND, Commands
from .palette import Palette, choose_theme
from .picture import paint
from .state import ScreenState

# Rates are means of the last second, so more paints would show little more; at 200 x 50 each takes
# 5 ms of a core.
PAINT_INTERVAL_S = 1.0
# A replay with long gaps still moves.
REPLAY_STEP_S_MAX = 10.0


class TopApp(App, inherit_bindings=False):
    """The screen of weft-top for one source (see `run_screen`)."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "weft-top"

    def __init__(self, source, options):
        # The mono theme has no colours, so Textual's own handling of NO_COLOR finds nothing to do.
        palette = Palette(choose_theme(options.theme))
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours; the palette knows about light ones
        self.animation_level = "none"
        self.source = source
        self._duration_s = options.duration_s
        self.state = ScreenState(unit=options.unit, interval_s=options.interval_s, is_replay=source.is_replay)
        self.commands = Commands(self.state)
        self.failure = None
        self.stop_code = None  # set by a signal before the loop runs
        self._canvas = Canvas(palette)
        self.terminal_size = None
        self._sample_timer = self._paint_timer = self._end_timer = None
        self._sample_due = self._painted_at = 0.0
        self._replay_ns = None
        self._stopping = False
        self.loop = None

    def compose(self):
        yield self._canvas

    def on_mount(self):
        self.loop = asyncio.get_running_loop()
        if self.stop_code is not None:
            self.stop(self.stop_code)
            return
        if not self.source.is_replay:
            self.source.frames_interval_s = self.state.interval_s
        self._canvas.focus()
        if self._duration_s is not None:
            self._end_timer = self.loop.call_later(self._duration_s, self.stop, 0)
        self._sample_due = self.loop.time()
        self._sample()

    def stop(self, code):
        """End the screen; `code` becomes the exit status."""
        for timer in (self._sample_timer, self._paint_timer, self._end_timer):
            if timer is not None:
                timer.cancel()
        self._sample_timer = self._paint_timer = self._end_timer = None
        self._stopping = True
        self.exit(return_code=code)

    def _guarded(self, action, *arguments):
        """Run `action`; what it raises ends the screen and is kept for the caller of run_screen."""
        if self._stopping:
            return
        try:
            action(*arguments)
        except Exception as error:
            self.failure = error
            self.stop(1)

    # ---- Sampling --------------------------------------------------------------------------------

    def _sample(self):
        self._guarded(self._take_frame)

    def _take_frame(self):
        state = self.state
        waits = state.is_replay and state.frozen and state.frame is not None
        frame = None if waits or state.ended else self.source.next_frame()
        if frame is not None:
            state.take(frame)
            if not state.frozen or self._painted_at == 0.0:
                self._paint_soon()
        elif state.is_replay and not waits and not state.ended:
            state.ended = True
            self._paint_soon()
        if not state.ended:
            self._schedule(self._step_s(frame))

    def _step_s(self, frame):
        """Seconds to the next frame: in a replay as long as it took then, at the chosen speed."""
        if not self.state.is_replay:
            return self.state.interval_s
        if frame is None:
            return 0.1
        before, self._replay_ns = self._replay_ns, frame.time_ns
        # How far the next frame is away is not known before it is read; frames come evenly, so the
        # last step serves.
        step_s = (frame.time_ns - before) / 1e9 if before is not None else frame.interval_s or 0.1
        return min(max(step_s, 0.001), REPLAY_STEP_S_MAX) / self.state.speed

    def _schedule(self, step_s):
        """The next sample, `step_s` after this one was due; samples that were missed are not made up for."""
        now = self.loop.time()
        self._sample_due = max(self._sample_due + step_s, now + min(step_s, 0.01))
        if self._sample_timer is not None:
            self._sample_timer.cancel()
        self._sample_timer = self.loop.call_at(self._sample_due, self._sample)

    def _interval_changed(self):
        self.source.frames_interval_s = self.state.interval_s
        self._sample_due = self.loop.time()
        self._schedule(self.state.interval_s)

    # ---- Painting --------------------------------------------------------------------------------

    def _paint_soon(self):
        """Paint now if the last paint is long enough ago, else as soon as it is."""
        if self._paint_timer is not None:
            return
        wait_s = self._painted_at + PAINT_INTERVAL_S - self.loop.time()
        if wait_s <= 0.01:
            self._paint()
        else:
            self._paint_timer = self.loop.call_later(wait_s, self._guarded, self._paint)

    def _paint(self):
        if self._paint_timer is not None:
            self._paint_timer.cancel()
            self._paint_timer = None
        if self.terminal_size is None or self.state.frame is None or 0 in self.terminal_size:
            return
        self._painted_at = self.loop.time()
        self.commands.picture = paint(self.state, *self.terminal_size)
        self._canvas.show(self.commands.picture)

    def repaint(self):
        """Paint what `state` says now; for those who change it from outside."""
        self._guarded(self._paint)

    # ---- What the canvas hears -------------------------------------------------------------------

    def resized(self, width, height):
        """The terminal's size, first and after each change."""
        self.terminal_size = (width, height)
        self._guarded(self._paint)

    def pressed(self, key, character):
        """A key; see Commands.press."""
        self._guarded(self._apply, self.commands.press, key, character)

    def pasted(self, text):
        """Text from the terminal's clipboard."""
        self._guarded(self._apply, self.commands.paste, text)

    def clicked(self, x, y):
        """A click at cell (x, y)."""
        self._guarded(self._apply, self.commands.click, x, y)

    def scrolled(self, direction):
        """A step of the wheel: 1 down, -1 up."""
        self._guarded(self._apply, self.commands.wheel, direction)

    def _apply(self, command, *arguments):
        if self.commands.picture is None:
            if arguments[:1] in (("q",), ("ctrl+c",), ("ctrl+q",)):
                self.stop(0)
            return
        interval_s = self.state.interval_s
        answer = command(*arguments)
        if answer == QUIT:
            self.stop(0)
            return
        if answer == SUSPEND:
            self.action_suspend_process()
        if self.state.interval_s != interval_s:
            self._interval_changed()
        self._paint()
