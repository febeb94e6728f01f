"""The network namespaces in sight: this process's own, the lab's hosts, and those in which PEs run.

Owner: the collector's thread. Invariants: weft-top never leaves its own namespace (attach.py does, in a process
of its own); descriptors into a lab are let go of within a second after its holder has gone, because they keep
the namespace alive; what other namespaces have is read through /proc/PID/net/dev, opened anew each time.
"""

import json
import os
import socket
import subprocess
import sys

from . import attach
from .lab_state import LabFiles
from .links import LinkTable

LOOK_NS = 1_000_000_000
ATTACH_LIMIT_S = 10
READ_BYTES = 1 << 16
SYSFS = "/sys/class/net"


def read_whole(descriptor):
    """All of a file below /proc, which gives about a page at a time."""
    data = os.pread(descriptor, READ_BYTES, 0)
    more = data
    while more and len(more) >= 3000:
        more = os.pread(descriptor, READ_BYTES, len(data))
        data += more
    return data


class Place:
    """One namespace: its label, and what is read there."""

    def __init__(self, label, counters, links, rates):
        self.label = label
        self.rates = rates  # NIC name -> bits per second, where the lab has set one
        self._counters = counters  # descriptor of its /proc/net/dev
        self._links = links

    read = staticmethod(read_whole)

    @property
    def descriptor(self):
        """Of its counters, for who looks more often."""
        return self._counters

    def close(self):
        os.close(self._counters)
        self._links.close()

    def counters(self):
        return read_whole(self._counters)

    def links(self, time_ns, names):
        """{name in bytes: Link}; `names` are those seen in the counters."""
        links = self._links.read(time_ns)
        if not names <= links.keys():
            self._links.forget()
            links = self._links.read(time_ns)
        return links


class ProcessPlace:
    """The namespace of a PE that is neither ours nor the lab's, a container's say."""

    rates = {}
    descriptor = None  # its counters are opened anew each time

    def __init__(self, label, pid):
        self.label = label
        self.pid = pid

    def counters(self):
        try:
            with open(f"/proc/{self.pid}/net/dev", "rb", buffering=0) as file:
                return read_whole(file.fileno())
        except OSError:
            return b""  # it has just ended

    def links(self, time_ns, names):
        return {}


class Namespaces:
    """Names namespaces, and gives the places whose interfaces are to be read."""

    def __init__(self, lab_directory=None, own_counters="/proc/self/net/dev"):
        self._own = os.stat("/proc/self/ns/net").st_ino
        self._own_counters = own_counters
        self._own_place = None
        self._labs = LabFiles(lab_directory)
        self._hosts = {}  # holder -> {label: (inode, Place)}
        self._refused = {}  # holder -> text
        self._labels = {}
        self._strangers = {}  # label -> pid
        self._looked = None

    def close(self):
        for places in (*self._hosts.values(), {"": (0, self._own_place)}):
            for _, place in places.values():
                if place:
                    place.close()
        self._hosts, self._own_place = {}, None

    def refresh(self, time_ns):
        """See which labs came and went, once a second."""
        if self._looked is not None and time_ns - self._looked < LOOK_NS:
            return
        self._looked = time_ns
        labs = {(lab.holder_pid, lab.holder_start_ticks): lab for lab in self._labs.living()}
        for gone in self._hosts.keys() - labs.keys():
            for _, place in self._hosts.pop(gone).values():
                place.close()
        self._refused = {holder: text for holder, text in self._refused.items() if holder in labs}
        for holder, lab in labs.items():
            if holder not in self._hosts and holder not in self._refused:
                self._attach(holder, lab)
            for host in lab.hosts:
                known = self._hosts.get(holder, {}).get(host.label)
                if known:
                    known[1].rates = host.rates_bits_per_s
        self._labels = {inode: label for hosts in self._hosts.values() for label, (inode, _) in hosts.items()}

    def troubles(self):
        """[text] of what is wrong now."""
        return [text for text in (self._labs.trouble, *self._refused.values()) if text]

    def label(self, inode, pid):
        """"" for our own namespace, a lab's host, or "net:[INODE]". `pid` is a process inside, 0 if none is known."""
        if inode in (0, self._own):
            return ""
        known = self._labels.get(inode)
        if known is None:
            known = f"net:[{inode}]"
            if pid:
                self._strangers[known] = pid
        return known

    def places(self, pages):
        """Every Place to read: ours, the lab's hosts, and those of the PEs of `pages` elsewhere."""
        if self._own_place is None:
            descriptor = os.open(self._own_counters, os.O_RDONLY | os.O_CLOEXEC)
            self._own_place = Place("", descriptor, LinkTable(*attach.route_sockets(), sysfs=SYSFS), {})
        places = [self._own_place]
        for hosts in self._hosts.values():
            # A weft-top that runs inside a host shows it as its own, with the lab's rates.
            for inode, place in hosts.values():
                if inode == self._own:
                    self._own_place.rates = place.rates
                else:
                    places.append(place)
        if self._strangers:
            places += self._stranger_places(pages)
        return places

    def _stranger_places(self, pages):
        present = {page.namespace for page in pages}
        self._strangers = {label: pid for label, pid in self._strangers.items() if label in present}
        return [ProcessPlace(label, pid) for label, pid in sorted(self._strangers.items())]

    def _attach(self, holder, lab):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"user": lab.user_namespace, "hosts": [host.net_namespace for host in lab.hosts]}
        command = [sys.executable, "-I", "-S", attach.__file__, str(theirs.fileno())]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            helper = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], **quiet)
            theirs.close()
            with helper:
                try:
                    helper.stdin.write(json.dumps(request).encode())
                    helper.stdin.close()
                    ours.settimeout(ATTACH_LIMIT_S)
                    self._hosts[holder] = self._receive(ours, lab)
                except OSError:
                    helper.kill()
                    raise
        except OSError as error:
            why = error.strerror or error
            self._refused[holder] = f"cannot look into lab '{lab.name}' ({why}); its NICs are not shown"
        finally:
            ours.close()
            theirs.close()

    @staticmethod
    def _receive(answers, lab):
        hosts = {}
        try:
            for host in lab.hosts:
                data, descriptors, _, _ = socket.recv_fds(answers, 4096, 4)
                if len(descriptors) != 4:
                    for descriptor in descriptors:
                        os.close(descriptor)
                    raise PermissionError(1, data.decode("utf-8", errors="replace") or "it has just ended")
                counters, ask, hear, namespace = descriptors
                inode = os.fstat(namespace).st_ino
                os.close(namespace)
                table = LinkTable(socket.socket(fileno=ask), socket.socket(fileno=hear))
                hosts[host.label] = (inode, Place(host.label, counters, table, host.rates_bits_per_s))
        except OSError:
            for _, place in hosts.values():
                place.close()
            raise
        return hosts
