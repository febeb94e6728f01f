"""The counter pages of running Weft jobs: finds them, keeps their files open, reads them.

Owner: the collector's thread. Invariants: a page is read by pread, never mapped, because a file that shrinks
under a mapping kills its reader; what has not changed is not parsed again; a page whose process is gone is no
PE, and whatever is wrong with a page is said once and concerns that page alone.
"""

import os
import time

from ..model import Notice, PePage, Process
from .page_format import (
    HEADER_BYTES, RAIL_BYTES, RAIL_TEXT_BYTES, PageError, parse_header, parse_peers, parse_rail,
)  # fmt: skip
from .processes import command_of, start_ticks

DEFAULT_DIRECTORY = "/dev/shm"
LOOK_NS = 1_000_000_000
TICK_NS = 50_000_000


def default_directory():
    return os.environ.get("WEFT_COUNTERS_DIR") or DEFAULT_DIRECTORY


class _Page:
    """One open page file."""

    def __init__(self, path):
        self.path = path
        # Not blocking: somebody may have put a pipe there.
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        self.identity = None
        self.seen = None  # the PePage of the last read
        self.key = None
        self._data = b""
        self._header = None
        self._process = None
        self._namespace = None

    def close(self):
        os.close(self.descriptor)

    def status(self):
        status = os.fstat(self.descriptor)
        self.identity = (status.st_dev, status.st_ino)
        return status

    def read(self, time_ns, label_of, trusted):
        """The PePage now, or None if its process is gone; a PageError if it cannot be used."""
        size = self._header.file_bytes if self._header else self.status().st_size
        data = os.pread(self.descriptor, min(size, 1 << 28), 0)
        if data == self._data and self.seen is not None:
            self.seen = self._page(time_ns, self.seen.rails, self.seen.peers)
            return self.seen
        if self._header is None or data[:HEADER_BYTES] != self._data[:HEADER_BYTES] or len(data) < size:
            self.seen = None
            self._header = parse_header(data, self.status().st_size)
            self._process = Process(self._header.pid, command_of(self._header.pid))
            if len(data) < self._header.file_bytes:
                raise PageError("changes its size; it is read again in a second")
        if self.seen is None:
            alive = self.is_alive()
            if not trusted and not alive:
                return None
            # A number that is nobody's here must not lead to somebody else's interfaces.
            self._namespace = label_of(self._header.network_namespace, self._header.pid if alive else 0)
        self.seen = self._page(time_ns, *self._parse(data))
        self._data = data
        return self.seen

    def is_alive(self):
        """Whether the page's process lives, and is not another one that got its number."""
        ticks = start_ticks(self._header.pid)
        return ticks is not None and self._header.start_ticks in (0, ticks)

    def _page(self, time_ns, rails, peers):
        header = self._header
        return PePage(
            self.key, header.job, header.pe, header.pe_count, self._process, header.policy, self._namespace, rails,
            peers, time_ns,
        )  # fmt: skip

    def _parse(self, data):
        """(rails, peers); what has not changed is taken from the last read."""
        header, seen, before = self._header, self.seen, self._data
        rails = []
        for index in range(header.rail_count):
            start = header.rails_offset + index * RAIL_BYTES
            known = None
            if seen is not None and data[start:start + RAIL_TEXT_BYTES] == before[start:start + RAIL_TEXT_BYTES]:
                known = seen.rails[index][1:3]
            rails.append(parse_rail(index, data, start, known))
        start, end = header.peers_offset, header.peers_end()
        if seen is not None and data[start:end] == before[start:end]:
            peers = seen.peers
        else:
            peers = parse_peers(data[start:end], header.stride)
        self.key = self.key or f"{header.job}/{header.pe}"
        return tuple(rails), peers


class PageSource:
    """All pages in a directory. `trusted`: show them also where their processes are not to be seen, as from a
    container with a process namespace of its own."""

    name = "pages"

    def __init__(self, directory=None, trusted=False):
        self.directory = directory or default_directory()
        self._trusted = trusted
        self._pages = {}  # file name -> _Page
        self._refused = {}  # file name -> (what identifies it, the words, or None for a dead process)
        self._looked = None  # (time, the directory's time of change)
        self._checked = None  # when the processes were last looked for
        self._unreadable = None

    def close(self):
        for page in self._pages.values():
            page.close()
        self._pages = {}

    def read(self, time_ns, label_of):
        """[PePage], in the order of jobs and PEs. `label_of(inode, pid)` names a network namespace."""
        self._look(time_ns)
        found = []
        for name, page in list(self._pages.items()):
            try:
                seen = page.read(time_ns, label_of, self._trusted)
            except (PageError, OSError) as error:
                self._drop(name, _words(error))
                continue
            if seen is None:
                self._drop(name, None)
            else:
                found.append(seen)
        found.sort(key=lambda page: (page.job, page.pe, page.process.pid))
        return found

    def notices(self):
        """What is wrong now: one line for each page that cannot be used, one for those that were left behind."""
        notices = [Notice(self.name, self._unreadable)] if self._unreadable else []
        left = [name for name, (_, words) in self._refused.items() if words is None]
        if left:
            which = left[0] if len(left) == 1 else f"{left[0]} and {len(left) - 1} more"
            text = f"{which} in {self.directory} belongs to a process that is gone; it may be deleted"
            notices.append(Notice(self.name, text))
        named = [(name, words) for name, (_, words) in self._refused.items() if words]
        notices += [Notice(self.name, f"{name} {words}") for name, words in named[:10]]
        if len(named) > 10:
            notices.append(Notice(self.name, f"{len(named) - 10} more pages in {self.directory} cannot be used"))
        return notices

    def _look(self, time_ns):
        """Find files that came and went: at once when the directory has changed, else once a second."""
        try:
            changed = os.stat(self.directory).st_mtime_ns
            if self._looked and self._looked[1] == changed and time_ns - self._looked[0] < LOOK_NS:
                return
            names = {name for name in os.listdir(self.directory) if name[:5] == "weft-" and name[-5:] == ".page"}
            self._unreadable = None
        except OSError as error:
            names, changed = set(), None
            self._unreadable = f"cannot read {self.directory} ({error.strerror}); set WEFT_COUNTERS_DIR"
        # What came in the same tick of the kernel's clock as our look has the same time of change.
        settled = changed is not None and time.time_ns() - changed > TICK_NS
        self._looked = (time_ns, changed if settled else None)
        for name in sorted(names - self._pages.keys()):
            self._open(name)
        for name in self._pages.keys() - names:
            self._pages.pop(name).close()
        for name in self._refused.keys() - names:
            del self._refused[name]
        if self._checked is None or time_ns - self._checked >= LOOK_NS:
            self._checked = time_ns
            self._check()

    def _check(self):
        """Let go of pages whose name means another file by now, and of those whose process is gone."""
        for name, page in list(self._pages.items()):
            try:
                status = os.lstat(page.path)
                same = (status.st_dev, status.st_ino) == page.identity
            except OSError:
                same = False
            if not same:
                self._pages.pop(name).close()
            elif page.seen is not None and not self._trusted and not page.is_alive():
                self._drop(name, None)

    def _open(self, name):
        path = os.path.join(self.directory, name)
        try:
            status = os.lstat(path)
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if self._refused.get(name, (None,))[0] == identity:
                return
            self._refused.pop(name, None)
            page = _Page(path)
        except OSError as error:
            self._refused[name] = (None, _words(error))
            return
        page.status()
        taken = {other.key for other in self._pages.values()}
        self._pages[name] = page
        self._settle_key(page, taken)

    def _settle_key(self, page, taken):
        """Two jobs of one name (another user's, say) stay apart by their processes."""
        try:
            header = parse_header(os.pread(page.descriptor, HEADER_BYTES, 0), page.status().st_size)
        except (PageError, OSError):
            return  # said when it is read
        key = f"{header.job}/{header.pe}"
        page.key = f"{key}@{header.pid}" if key in taken else key

    def _drop(self, name, words):
        page = self._pages.pop(name)
        try:
            status = page.status()
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        except OSError:
            identity = None
        page.close()
        self._refused[name] = (identity, words)


def _words(error):
    if isinstance(error, PermissionError):
        return "may not be read by you; it belongs to another user"
    return f"cannot be read ({error.strerror or error})" if isinstance(error, OSError) else str(error)
