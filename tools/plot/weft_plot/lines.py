"""Reads files of JSON lines. Every line becomes records or a Problem with its number, never silence and
never an exception: a file that broke off in mid-line still gives what stands before.
"""
import json
import sys
from dataclasses import dataclass, field

from .forms import NotUsable, records_of


@dataclass(frozen=True)
class Problem:
    line: int
    says: str


@dataclass
class Contents:
    """What one file gave."""

    name: str
    records: list = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    line_count: int = 0

    def message(self):
        """One sentence that names each line that was left out and why; empty if none was."""
        if self.line_count == 0:
            return f"{self.name} is empty; weft-perf --json={self.name} writes such a file"
        if not self.problems:
            return ""
        numbers = {}
        for problem in self.problems:
            numbers.setdefault(problem.says, []).append(problem.line)
        parts = [f"{ranges(lines)} ({says})" for says, lines in numbers.items()]
        return f"{self.name}: left out {'; '.join(parts)}; {self.line_count - len(self.problems)} of {self.line_count} lines are used"


class Unreadable(Exception):
    """A file that cannot be read at all; the text says which and why."""


def ranges(lines):
    """[1, 2, 3, 7] -> 'lines 1-3, 7'"""
    spans = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    texts = [f"{first}-{last}" if last > first else str(first) for first, last in spans]
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(texts)}"


def text_of(name):
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8", errors="replace")
        with open(name, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from None


def objects_of(text):
    """(line number, text) of each line; a whole text that is one JSON value counts as its first line."""
    lines = text.splitlines()
    if len(lines) > 1 and lines[0].rstrip() in ("{", "["):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return [(1, text)]
    return list(enumerate(lines, 1))


def read_line(text):
    if not text.strip():
        raise NotUsable("empty")
    try:
        value = json.loads(text)
    except ValueError:
        raise NotUsable("not JSON") from None
    except RecursionError:
        raise NotUsable("nested too deeply") from None
    found = []
    for each in value if isinstance(value, list) else [value]:
        found += records_of(each)
    return found


def read(name):
    """The Contents of a file, or of standard input for "-". Raises Unreadable."""
    contents = Contents("standard input" if name == "-" else str(name))
    for number, text in objects_of(text_of(name)):
        contents.line_count += 1
        try:
            contents.records += read_line(text)
        except NotUsable as problem:
            contents.problems.append(Problem(number, str(problem)))
    return contents
