"""Snapshots as a row of differences, for recordings. Pure; docs/RECORDING.md describes the format.

Invariants: decoding what was encoded gives equal Snapshots; each document depends on all before it; what has not
changed takes no room. A counter is sent as its step, which may be negative, so that resets are kept too.
"""

from operator import sub

from .model import Look, Nic, Notice, PePage, PeerTraffic, Process, Rail, Snapshot


def _nic_values(nic, before):
    """Its values, or None if something else has changed since `before` too."""
    # A Nic is a tuple: its counters and processes stand last.
    same = nic[:8] == before[:8] and nic.processes == before.processes and [*nic.counters] == [*before.counters]
    return list(nic.counters.values()) if same else None


def _nic_facts(nic):
    """(what seldom changes, values)."""
    processes = [[process.pid, process.command] for process in nic.processes]
    facts = [nic.key, nic.kind, nic.name, nic.namespace, nic.state, nic.rate_bits_per_s, nic.driver, nic.address,
             processes, list(nic.counters)]
    return facts, list(nic.counters.values())


def _nic_from(facts, values, _):
    *plain, processes, names = facts
    return Nic(*plain, dict(zip(names, values, strict=True)), tuple(Process(*process) for process in processes))


def _page_values(page, before):
    """Likewise; pages are few, so their facts are always looked at."""
    return None


def _page_facts(page):
    """The values are the time of the read, and for each rail its outstanding bytes and its counters."""
    rails = [[rail.index, rail.nic, rail.address, rail.up, rail.warm, rail.rate_bits_per_s, list(rail.counters)]
             for rail in page.rails]
    facts = [page.key, page.job, page.pe, page.pe_count, page.process.pid, page.process.command, page.policy,
             page.namespace, rails]
    values = [value for rail in page.rails for value in (rail.outstanding_bytes, *rail.counters.values())]
    return facts, [page.read_ns, *values]


def _page_from(facts, values, peers):
    key, job, pe, pe_count, pid, command, policy, namespace, rails = facts
    read_ns, *values = values
    made, rest = [], iter(values)
    for *plain, names in rails:
        outstanding = next(rest)
        made.append(Rail(*plain, outstanding, {name: next(rest) for name in names}))
    traffic = tuple(PeerTraffic(*place, *peers[place]) for place in sorted(peers))
    return PePage(key, job, pe, pe_count, Process(pid, command), policy, namespace, tuple(made), traffic,
                  read_ns)


class _Sent:
    """What the reader knows of one NIC or PE."""

    __slots__ = ("thing", "facts", "values", "peers")

    def __init__(self):
        self.thing = self.facts = None
        self.values = []
        self.peers = {}

    def difference(self, thing, values_of, split):
        """The document that brings the reader from the last `thing` to this one; None if nothing changed."""
        if thing is self.thing:
            return None
        document = {}
        values = values_of(thing, self.thing) if self.thing is not None else None
        self.thing = thing
        if values is None:
            facts, values = split(thing)
            if facts != self.facts:
                document["f"] = self.facts = facts
                self.values, self.peers = [0] * len(values), {}
        steps = []
        for index, step in enumerate(map(sub, values, self.values)):
            if step:
                steps += [index, step]
        self.values = values
        if steps:
            document["c"] = steps
        if isinstance(thing, PePage):
            self._peers(thing, document)
        return document or None

    def _peers(self, page, document):
        now = {peer[:2]: peer[2:] for peer in page.peers}
        steps = []
        for place, (put, got) in now.items():
            before = self.peers.get(place, (0, 0))
            if before != (put, got) or place not in self.peers:
                steps += [*place, put - before[0], got - before[1]]
        gone = [number for place in self.peers.keys() - now.keys() for number in place]
        self.peers = now
        if steps:
            document["p"] = steps
        if gone:
            document["x"] = gone


class Encoder:
    """Makes a document (of lists, dictionaries, numbers and text) of each Snapshot, in the order of their time."""

    def __init__(self):
        self._time_ns = self._wall_ns = 0
        self._notices = ()
        self._groups = {"n": _Group(_nic_values, _nic_facts), "e": _Group(_page_values, _page_facts)}

    def encode(self, snapshot):
        document = {"t": snapshot.time_ns - self._time_ns, "w": snapshot.wall_ns - self._wall_ns}
        self._time_ns, self._wall_ns = snapshot.time_ns, snapshot.wall_ns
        for letter, things in (("n", snapshot.nics), ("e", snapshot.pes)):
            self._groups[letter].encode(letter, things, document)
        if snapshot.notices != self._notices:
            self._notices = snapshot.notices
            document["m"] = [[notice.source, notice.text] for notice in snapshot.notices]
        if snapshot.looks:
            document["b"] = self._looks(snapshot)
        return document

    def _looks(self, snapshot):
        """[step of the time, [number, tx, rx, ...]] of each look: as steps from the look before."""
        numbers = self._groups["n"].numbers()
        time_ns, before, rows = snapshot.time_ns, {}, []
        for look in snapshot.looks:
            row = []
            for key, *values in look.nics:
                if key in numbers:
                    old = before.get(key, (0, 0))
                    row += [numbers[key], values[0] - old[0], values[1] - old[1]]
                    before[key] = values
            rows.append([look.time_ns - time_ns, row])
            time_ns = look.time_ns
        return rows


class _Group:
    """The NICs, or the PEs: numbers stand for keys, and an order is sent when it changes."""

    def __init__(self, values_of, split):
        self._values_of, self._split = values_of, split
        self._sent = {}  # key -> (number, _Sent)
        self._order = []
        self._next = 0

    def numbers(self):
        """{key: number} of what is there now."""
        return {key: number for key, (number, _) in self._sent.items()}

    def encode(self, letter, things, document):
        changes, order = {}, []
        for thing in things:
            if thing.key not in self._sent:
                self._sent[thing.key] = (self._next, _Sent())
                self._next += 1
            number, sent = self._sent[thing.key]
            order.append(number)
            change = sent.difference(thing, self._values_of, self._split)
            if change:
                changes[number] = change
        if order != self._order:
            document[letter + "o"] = self._order = order
            present = set(order)
            self._sent = {key: entry for key, entry in self._sent.items() if entry[0] in present}
        if changes:
            document[letter] = changes


class Decoder:
    """Gives back the Snapshots. A document that fits nothing raises one of DAMAGE."""

    DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration, RuntimeError)

    def __init__(self):
        self._time_ns = self._wall_ns = 0
        self._notices = ()
        self._groups = {"n": _Received(_nic_from, len), "e": _Received(_page_from, _value_count)}

    def decode(self, document):
        self._time_ns += document["t"]
        self._wall_ns += document["w"]
        things = [self._groups[letter].decode(letter, document) for letter in ("n", "e")]
        if "m" in document:
            self._notices = tuple(Notice(*notice) for notice in document["m"])
        return Snapshot(self._time_ns, self._wall_ns, *things, self._notices, self._looks(document.get("b", ())))

    def _looks(self, rows):
        time_ns, totals, looks = self._time_ns, {}, []
        for step_ns, row in rows:
            time_ns += step_ns
            nics = []
            for number, tx, rx in _in_groups(row, 3):
                before = totals.get(number, (0, 0))
                totals[number] = (before[0] + tx, before[1] + rx)
                nics.append((self._groups["n"].key(number), *totals[number]))
            looks.append(Look(time_ns, tuple(nics)))
        return tuple(looks)


class _Received:
    """The reader's half of a _Group."""

    def __init__(self, join, count):
        self._join = join
        self._count = count  # how many values go with the last of the facts
        self._states = {}  # number -> [facts, values, peers, the thing made of them]
        self._order = []

    def decode(self, letter, document):
        for number, change in document.get(letter, {}).items():
            self._change(int(number), change)
        if letter + "o" in document:
            self._order = document[letter + "o"]
            self._states = {number: self._states[number] for number in self._order}
        return tuple(self._states[number][3] for number in self._order)

    def key(self, number):
        """Of what is there now."""
        return self._states[number][3].key

    def _change(self, number, change):
        state = self._states.setdefault(number, [None, [], {}, None])
        if "f" in change:
            state[0], state[2] = change["f"], {}
            state[1] = [0] * self._count(change["f"][-1])
        values, peers = list(state[1]), dict(state[2])
        for index, step in _in_groups(change.get("c", ()), 2):
            values[index] += step
        for peer, rail, put, got in _in_groups(change.get("p", ()), 4):
            before = peers.get((peer, rail), (0, 0))
            peers[peer, rail] = (before[0] + put, before[1] + got)
        for place in _in_groups(change.get("x", ()), 2):
            del peers[place]
        state[1:] = values, peers, self._join(state[0], values, peers)


def _value_count(rails):
    return 1 + sum(1 + len(rail[-1]) for rail in rails)


def _in_groups(numbers, size):
    rest = iter(numbers)
    return zip(*[rest] * size, strict=True)
