"""The help: every key, what the marks mean, and how often what is done. Fits 80 columns."""

import textwrap

from ... import rail_policies
from .. import lines
from .page import Page

WIDTH = 79
INDENT = 17

TEXT = """\
VIEWS
  1 to {last_tab}, Tab    NICs, balance of PEs, processes, who sends to whom, events
  Enter          the page of one NIC: the row's, or that of the PE's worst rail
  {nic_key}              the NIC that was opened last
  Esc            back; clears the filter
  arrows, PgUp, PgDn, Home, End    move; left and right scroll a wide matrix
  mouse          click a tab, a row, the same row again to open it, a column's
                 title to sort by it; the wheel scrolls

WHAT IS SHOWN
  s, r           sort by the next column; reverse the order
  /              filter: rows in which all its words occur
  x              rails below each PE (balance), peers' rails (who sends to whom)
  j              the next job (who sends to whom)
  u              Gbit/s or GB/s
  space          freeze the screen, sampling goes on; in a replay: pause
  + and -        longer or shorter interval, 100 ms to 10 s; in a replay: slower
                 or faster
  q, Ctrl-C      quit; Ctrl-Z goes to the background

MARKS
  !              look here: down, max/mean beyond 1.1, a warning; !! is an error
  -              not known, or not yet
  · and ~0       nothing; next to nothing
  max/mean       the busiest rail of a PE beside the mean of its rails: 1.00 is
                 even; 4.00 of four rails means that one carries everything
  ░ ▒ ▓ █        in the matrix: up to 25, 50, 75 and 100 % of the largest number
  last min       TX and RX together, newest at the right, each NIC on its own
                 scale; a cell is the mean of several seconds

HOW OFTEN
  Counters are read at the interval; rates are means of the last second. The
  screen is painted at most once a second, since painting costs more than
  reading. Keys and the mouse are answered at once all the same.

RAIL POLICIES"""


def _text():
    from . import NIC_KEY, TABS  # they hold this view

    policies = [textwrap.fill(text, WIDTH, initial_indent=f"  {name:<{INDENT - 2}}", subsequent_indent=" " * INDENT)
                for name, text in rail_policies.TEXTS.items()]  # fmt: skip
    return "\n".join((TEXT.format(nic_key=NIC_KEY, last_tab=len(TABS)), *policies))


class HelpView:
    name, title = "help", "Help"

    def page(self, state, width, height):
        rows = _text().splitlines()
        return Page((), rows, lambda row: ((lines.fit(row, width), "bold" if row.isupper() else ""),), has_cursor=False)
