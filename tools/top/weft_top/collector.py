"""Asks all sources and makes a Snapshot of what they say.

Owner: one thread, which calls sample(). Invariants: a source that fails gives one Notice and is asked again
after five seconds; it never stops the others; sample() raises nothing.
"""

import time
from dataclasses import dataclass

from .model import Notice, Snapshot
from .sources.interfaces import InterfaceSource
from .sources.namespaces import Namespaces
from .sources.nvlink import NvlinkSource
from .sources.pages import PageSource
from .sources.rdma import DEFAULT_ROOT, RDMA, RdmaSource
from .sources.rdma_netlink import RdmaHolders

REST_NS = 5_000_000_000


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

    def close(self):
        for source in (self._pages, *self._nic_sources, self._namespaces):
            if source:
                source.close()

    def sample(self):
        """The Snapshot of now."""
        time_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        self._guard(time_ns, "namespaces", lambda: self._namespaces.refresh(time_ns))
        pages = self._pages and self._guard(
            time_ns, "pages", lambda: self._pages.read(time_ns, self._namespaces.label)) or ()
        holders = self._holders(pages)
        nics = []
        for source in self._nic_sources:
            nics += self._guard(time_ns, source.name, lambda: source.read(time_ns, pages, holders)) or ()
        return Snapshot(time_ns, wall_ns, tuple(nics), tuple(pages), self._notices())

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
                    # libfabric calls the domain of an EFA device NAME-rdm or NAME-dgrm.
                    for place in ((page.namespace, rail.nic), (RDMA, rail.nic.removesuffix("-rdm"))):
                        if page.process not in held.setdefault(place, []):
                            held[place].append(page.process)
            self._users = (users, {place: tuple(processes) for place, processes in held.items()})
        return self._users[1]
