"""How the screen starts. Values only; read by the command line before Textual is loaded."""

from dataclasses import dataclass
from typing import Optional

UNITS = ("Gbit/s", "GB/s")
THEMES = ("auto", "dark", "light", "mono")
# Seconds between two samples that + and - step through.
INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """`interval_s`: seconds between two samples, 0.1 to 10. `unit`: one of UNITS. `theme`: one of THEMES; "auto"
    suits dark and light terminals, and becomes "mono" where NO_COLOR is set. `duration_s`: end by itself after so
    many seconds. Raises ValueError for others."""

    interval_s: float = 1.0
    unit: str = "Gbit/s"
    theme: str = "auto"
    duration_s: Optional[float] = None

    def __post_init__(self):
        if not INTERVALS_S[0] <= self.interval_s <= INTERVALS_S[-1]:
            raise ValueError(f"interval {self.interval_s:g} s: choose {INTERVALS_S[0]:g} to {INTERVALS_S[-1]:g} seconds")
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit!r}: choose {' or '.join(UNITS)}")
        if self.theme not in THEMES:
            raise ValueError(f"theme {self.theme!r}: choose one of {', '.join(THEMES)}")
