"""Asks all sources and makes a Snapshot of what they say.

Owner: one thread, which calls sample(). Invariants: a source that fails gives one Notice and is asked again
after five seconds; it never stops the others; sample() raises nothing.
"""

import time
from dataclasses import dataclass

from .model import Notice, Snapshot
from .moments import NicFinder
from .sources.counter_files import budget
from .sources.glances import Glances
from .sources.interfaces import InterfaceSource
from .sources.namespaces import Namespaces
from .sources.nvlink import NvlinkSource
from .sources.pages import PageSource
from .sources.rdma import DEFAULT_ROOT, RDMA, RdmaSource
from .sources.rdma_netlink import RdmaHolders

REST_NS = 5_000_000_000
# Pages are read five times a second at most: rates are averages of a second, and a table of peers
# is long.
PAGES_NS = 180_000_000


@dataclass(frozen=True)
class SourceOptions:
    """Which sources are asked, and where they look; tests put trees of their own there."""

    pages: bool = True
    rdma: bool = True
    net: bool = True
    nvlink: bool = True
    pages_directory: str | None = None
    trust_pages: bool = False
    rdma_root: str = DEFAULT_ROOT
    lab_directory: str | None = None


class Collector:
    """All sources."""

    def __init__(self, options=SourceOptions()):
        budget()  # many files stay open: the soft limit of descriptors is raised first
        self._resting = {}  # source's name -> (until, Notice)
        self._namespaces = Namespaces(options.lab_directory)
        self._pages = PageSource(options.pages_directory, options.trust_pages) if options.pages else None
        self._nic_sources = []
        if options.rdma:
            self._nic_sources.append(RdmaSource(options.rdma_root, RdmaHolders()))
        if options.net:
            self._nic_sources.append(InterfaceSource(self._namespaces))
        if options.nvlink:
            self._nic_sources.append(NvlinkSource())
        self._users = ((), {})
        self._read_pages = (None, ())  # (when, what was found)
        self._glances = Glances()

    def close(self):
        for source in (self._glances, self._pages, *self._nic_sources, self._namespaces):
            if source:
                source.close()

    def sample(self):
        """The Snapshot of now."""
        time_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        self._guard(time_ns, "namespaces", lambda: self._namespaces.refresh(time_ns))
        pages = self._pages_of(time_ns)
        holders = self._holders(pages)
        nics = []
        for source in self._nic_sources:
            nics += self._guard(time_ns, source.name, lambda: source.read(time_ns, pages, holders)) or ()
        looks = self._glances.take()
        if self._glances.is_due(time_ns):
            self._glances.begin(time_ns, self._targets(time_ns, pages, nics))
        return Snapshot(time_ns, wall_ns, tuple(nics), pages, self._notices(), looks)

    def _targets(self, time_ns, pages, nics):
        """What to look at more closely: the NICs of all PEs that have several."""
        finder = NicFinder(nics)
        keys = {nic.key for page in pages for nic in finder.of_page(page)}
        targets = []
        for source in self._nic_sources if keys else ():
            targets += self._guard(time_ns, source.name, lambda: source.targets(pages, keys)) or ()
        return targets

    def _pages_of(self, time_ns):
        """The pages, read now or a moment ago."""
        when, pages = self._read_pages
        if self._pages and (when is None or time_ns - when >= PAGES_NS):
            found = self._guard(time_ns, "pages", lambda: self._pages.read(time_ns, self._namespaces.label))
            pages = tuple(found or ())
            self._read_pages = (time_ns, pages)
        return pages

    def _guard(self, time_ns, name, ask):
        """The answer, or None from a source that fails or rests."""
        if name in self._resting:
            if time_ns < self._resting[name][0]:
                return None
            del self._resting[name]
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - whatever a source meets, the others go on
            text = f"failed ({type(error).__name__}: {error}); it is tried again every 5 s"
            self._resting[name] = (time_ns + REST_NS, Notice(name, text))
            return None

    def _notices(self):
        notices = [Notice("namespaces", text) for text in self._namespaces.troubles()]
        for source in (self._pages, *self._nic_sources):
            if source:
                notices += source.notices()
        return tuple(notices + [notice for _, notice in self._resting.values()])

    def _holders(self, pages):
        """(namespace, interface) or (RDMA, device) -> the PEs' processes that use it; the same dictionary while nobody
        comes or goes."""
        users = tuple((page.key, page.process.pid, len(page.rails)) for page in pages)
        if users != self._users[0]:
            held = {}
            for page in pages:
                for rail in page.rails:
                    for place in ((page.namespace, rail.nic), (RDMA, rail.device)):
                        if page.process not in held.setdefault(place, []):
                            held[place].append(page.process)
            self._users = (users, {place: tuple(processes) for place, processes in held.items()})
        return self._users[1]
