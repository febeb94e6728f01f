"""What keys and clicks do to the ScreenState. No Textual; one thread.

A command changes the state only; the application paints afterwards, stops on `QUIT`, goes to the background on
`SUSPEND`, and tells the source a new interval. Invariant: a key that cannot do anything in a view says so in the footer, or does nothing; it never raises.
"""

from . import numbers, picture
from .views import NIC_KEY, TABS
from .views.peers import jobs_of

QUIT = "quit"
SUSPEND = "suspend"
WHEEL_LINES = 3
FILTER_MAX = 60
# Keyboards that report a key and its modifiers name these in several ways; what they type is the
# same.
CHARACTERS = {"?": "question_mark", "/": "slash", "+": "plus", "-": "minus", "=": "equals_sign", " ": "space"}


class Commands:
    """Applies keys and clicks. `picture` is the last one painted; the application sets it."""

    def __init__(self, state):
        self.state = state
        self.picture = None
        self._back = "nics"
        self._keys = {
            "q": self.quit, "ctrl+c": self.quit, "ctrl+q": self.quit, "escape": self.back, "question_mark": self.help,
            "ctrl+z": lambda: SUSPEND,
            "tab": lambda: self.next_tab(1), "shift+tab": lambda: self.next_tab(-1), "enter": self.open_row,
            "s": self.next_sort, "r": self.reverse_sort, "slash": self.open_filter, "x": self.toggle_rails,
            "j": self.next_job, "u": self.toggle_unit, "space": self.toggle_frozen, "plus": lambda: self.interval(1),
            "minus": lambda: self.interval(-1), "equals_sign": lambda: self.interval(1), NIC_KEY: self.show_nic,
            "up": lambda: self.move(-1), "down": lambda: self.move(1),
            "pageup": lambda: self.move_pages(-1), "pagedown": lambda: self.move_pages(1),
            "home": lambda: self.move(-10**9), "end": lambda: self.move(10**9),
            "left": lambda: self.scroll_sideways(-1), "right": lambda: self.scroll_sideways(1),
        }  # fmt: skip
        for index, view in enumerate(TABS):
            self._keys[str(index + 1)] = lambda name=view.name: self.show(name)

    # ---- Keys ------------------------------------------------------------------------------------

    def press(self, key, character):
        """Apply a key: its name as Textual spells it, and the character it types (or None). May return
        QUIT or SUSPEND."""
        self.state.message = ""
        if self.state.filter_open and key not in ("ctrl+c", "ctrl+q", "ctrl+z", "up", "down", "pageup", "pagedown"):
            return self._edit_filter(key, character)
        command = self._keys.get(key) or self._keys.get(CHARACTERS.get(character))
        return command() if command is not None else None

    def _edit_filter(self, key, character):
        state = self.state
        if key == "escape":
            state.filter_text, state.filter_open = "", False
        elif key == "enter":
            state.filter_open = False
        elif key in ("backspace", "ctrl+h"):
            state.filter_text = state.filter_text[:-1]
        elif key == "ctrl+u":
            state.filter_text = ""
        elif character and character.isprintable() and len(state.filter_text) < FILTER_MAX:
            state.filter_text += character

    def paste(self, text):
        """Pasted text goes into the filter if it is open."""
        if self.state.filter_open:
            text = "".join(character for character in text if character.isprintable())
            self.state.filter_text = (self.state.filter_text + text)[:FILTER_MAX]

    def quit(self):
        return QUIT

    # ---- Views -----------------------------------------------------------------------------------

    def show(self, name):
        if self.state.view in (view.name for view in TABS):
            self._back = self.state.view
        self.state.view = name

    def next_tab(self, step):
        names = [view.name for view in TABS]
        current = names.index(self.state.view) if self.state.view in names else names.index(self._back)
        self.show(names[(current + step) % len(names)])

    def help(self):
        self.show("help")

    def back(self):
        if self.state.view not in (view.name for view in TABS):
            self.state.view = self._back
        else:
            self.state.filter_text = ""

    def open_row(self):
        """The page of the NIC under the cursor."""
        key = picture.opened(self.state, self.picture)
        if key is not None:
            self.state.nic_key = key
            self.state.places.pop("nic", None)
            self.show("nic")
        elif self.picture.page.has_cursor and self.picture.page.rows:
            self.state.message = "this row has no NIC to open"

    def show_nic(self):
        """The NIC that was opened last; before that, the one under the cursor."""
        if self.state.nic_key is None:
            self.open_row()
        else:
            self.show("nic")

    def toggle_rails(self):
        state = self.state
        if state.view == "balance":
            shown = any(getattr(row, "rail", None) is not None for row in self.picture.page.rows)
            state.unfolded = not shown
        elif state.view == "peers":
            state.unfolded = not state.unfolded
            state.place().left = 0

    def next_job(self):
        jobs = jobs_of(self.state.frame) if self.state.frame is not None else []
        if len(jobs) > 1:
            current = jobs.index(self.state.job) if self.state.job in jobs else 0
            self.state.job = jobs[(current + 1) % len(jobs)]
        if self.state.view == "peers" and jobs:
            self.state.message = f"job {self.state.job or jobs[0]}" + ("" if len(jobs) > 1 else ": there is no other one")

    # ---- What is shown ---------------------------------------------------------------------------

    def open_filter(self):
        self.state.filter_open = True

    def toggle_unit(self):
        self.state.toggle_unit()

    def toggle_frozen(self):
        self.state.toggle_frozen()

    def interval(self, direction):
        state = self.state
        state.step_interval(direction)
        state.message = f"replay at {state.speed:g}x" if state.is_replay else f"every {numbers.seconds(state.interval_s)}"

    def next_sort(self):
        columns = self.picture.page.columns
        if not columns:
            return
        names = [column.name for column in columns]
        sort = self._sort()
        column = columns[(names.index(sort[0]) + 1) % len(names)] if sort and sort[0] in names else columns[0]
        self._set_sort((column.name, column.descending))

    def reverse_sort(self):
        sort = self._sort()
        if sort:
            self._set_sort((sort[0], not sort[1]))

    def sort_by(self, name):
        """By this column; by it already: in the other direction."""
        column = next(column for column in self.picture.page.columns if column.name == name)
        sort = self._sort()
        self._set_sort((name, not sort[1] if sort and sort[0] == name else column.descending))

    def _sort(self):
        return self.state.place().sort or self.picture.page.sort

    def _set_sort(self, sort):
        place = self.state.place()
        place.sort = sort
        place.top = 0
        title = next((column.title for column in self.picture.page.columns if column.name == sort[0]), sort[0])
        self.state.message = f"sorted by {title}" + (", largest first" if sort[1] else ", smallest first")

    # ---- Moving ----------------------------------------------------------------------------------

    def move(self, amount):
        picture.move(self.state, self.picture, amount)

    def move_pages(self, direction):
        self.move(direction * max(self.picture.body[1] - 1, 1))

    def scroll_sideways(self, direction):
        place = self.state.place()
        place.left = min(max(place.left + direction, 0), self.picture.page.left_max)

    # ---- Mouse -----------------------------------------------------------------------------------

    def wheel(self, direction):
        """Three lines; the cursor moves along, so that it stays in sight."""
        self.move(direction * WHEEL_LINES)

    def click(self, x, y):
        """A tab, a column's title, or a row; the row that has the cursor already is opened."""
        self.state.message = ""
        page, first = self.picture.page, self.picture.body[0]
        if y == picture.HEAD_LINES - 1:
            name = picture.hit(self.picture.tab_spans, x)
            if name is not None:
                self.show(name)
        elif y == first - 1 and page.spans:
            name = picture.hit(page.spans, x)
            if name is not None:
                self.sort_by(name)
        else:
            self._click_row(page, picture.row_at(self.state, self.picture, y))

    def _click_row(self, page, index):
        if index is None or not page.has_cursor or page.key(page.rows[index]) is None:
            return
        place = self.state.place()
        if place.index == index:
            self.open_row()
            return
        place.index, place.cursor = index, page.key(page.rows[index])
