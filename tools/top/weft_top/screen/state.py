"""What the user has chosen, and the Frame that is shown. No Textual; one thread.

Invariants: while frozen the shown Frame and log do not change, but nothing is lost: events wait in order;
a cursor belongs to a thing (a key), not to a line, so that sorting does not move it to another one.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Optional

from .numbers import UNIT_BITS
from .options import INTERVALS_S, UNITS

LOG_LINES = 1000


@dataclass(slots=True)
class Place:
    """Where the user is in one view."""

    cursor: object = None  # key of the row that it was moved to; None: it stays at the top
    index: int = 0  # its line at the last paint: where the cursor stays if the row goes
    top: int = 0
    left: int = 0
    sort: Optional[tuple] = None  # (column name, descending)


@dataclass(slots=True)
class ScreenState:
    """All that a view needs in order to draw."""

    unit: str = UNITS[0]
    interval_s: float = 1.0
    is_replay: bool = False
    ended: bool = False  # the replay has no more frames
    speed: float = 1.0  # of the replay
    frozen: bool = False
    filter_text: str = ""
    filter_open: bool = False
    view: str = "nics"
    nic_key: Optional[str] = None  # the one of the detail page
    job: Optional[str] = None  # the one of the matrix; None: the first
    unfolded: Optional[bool] = None  # rails in balance and matrix: None is as it fits
    message: str = ""  # answers the last key, until the next one
    frame: object = None
    log: deque = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    places: dict = field(default_factory=dict)
    _latest: object = None
    _waiting: deque = field(default_factory=lambda: deque(maxlen=LOG_LINES))

    @property
    def unit_bits(self):
        """Bits per second of one unit of the screen."""
        return UNIT_BITS[self.unit]

    def place(self, view=None):
        """The Place of a view (default: the one that is shown)."""
        return self.places.setdefault(view or self.view, Place())

    def take(self, frame):
        """Accept the newest Frame."""
        self._latest = frame
        self._waiting.extend(frame.events)
        if not self.frozen or self.frame is None:
            self._show_latest()

    def _show_latest(self):
        self.frame = self._latest
        self.log.extend(self._waiting)
        self._waiting.clear()

    def toggle_frozen(self):
        self.frozen = not self.frozen
        if not self.frozen and self._latest is not None:
            self._show_latest()

    def toggle_unit(self):
        self.unit = UNITS[1 - UNITS.index(self.unit)]

    def step_interval(self, direction):
        """The next longer (1) or shorter (-1) interval; in a replay, the next slower or faster speed."""
        if self.is_replay:
            self.speed = min(max(self.speed * 2.0**-direction, 1 / 8), 64.0)
        elif direction > 0:
            self.interval_s = next((step for step in INTERVALS_S if step > self.interval_s * 1.001), INTERVALS_S[-1])
        else:
            shorter = [step for step in INTERVALS_S if step < self.interval_s * 0.999]
            self.interval_s = shorter[-1] if shorter else INTERVALS_S[0]

    def matches(self, *texts):
        """Whether all words of the filter occur in these texts, in any case."""
        if not self.filter_text:
            return True
        text = "\n".join(texts).casefold()
        return all(word in text for word in self.filter_text.casefold().split())
