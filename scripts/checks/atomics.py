"""Atomics: where they come from, and the `// SYNC tag: ...` comments that pair acquire with release."""
import pathlib
import re

from .tree import Finding, Rule

REACH_LINES = 3
ORDER = re.compile(r"memory_order(?:_|::)(relaxed|consume|acquire|release|acq_rel|seq_cst)")
# What device code has instead: the functions of access.cuh, which alone are exempt.
DEVICE_ORDER = re.compile(r"\b(?:load|store|fence|add)_(acquire|release|full)(?:_on_gpu)?\(")
# A ring's memory policy (weft/device/ring.hpp): each of its functions has a side.
POLICY = re.compile(r"\bMemory::(load_far|load_far_pair|load_near|load_slot|try_lock|store_far|store_far_after_load|store_near|store_slot|unlock)\(")
DEVICE_ACCESS = pathlib.PurePath("include/weft/device/access.cuh")
DEFAULT_ORDER = re.compile(r"\.load\(\s*\)")
TAG = re.compile(r"//\s*SYNC ([\w-]+)(?:\s*\(pairs with ([^)]+)\))?:")
LIKE_TAG = re.compile(r"//\s*SYNC\b")
MODEL = pathlib.PurePath("docs/MEMORY_MODEL.md")
MODEL_HEAD = re.compile(r"\|\s*tag\s*\|")
MODEL_TAG = re.compile(r"`([\w-]+)`")
FOREIGN = re.compile(r"#\s*include\s*<(?:atomic|stdatomic\.h)>|\b__(?:atomic|sync)_\w+|(?<!asm )\bvolatile\b")
SIDES = {"acquire": {"acquire"}, "consume": {"acquire"}, "release": {"release"},
         "acq_rel": {"acquire", "release"}, "seq_cst": {"acquire", "release"}, "full": {"acquire", "release"}}


def code_of(line):
    return line.split("//", 1)[0]


class SyncPoints:
    """The tags of one file: which sides each has, where it stands, and the files it pairs with."""

    def __init__(self, path, lines):
        self.path = path
        self.sides, self.first_line, self.partners = {}, {}, {}
        self.errors = []
        self._header_relaxed = any("relaxed" in line for line in lines[:8] if line.startswith("//"))
        self._read(lines)

    def _read(self, lines):
        tag = comment_end = None
        comment_line = -REACH_LINES
        for number, line in enumerate(lines, 1):
            if found := TAG.search(line):
                tag, comment_end = self._open(found, number), number
            elif LIKE_TAG.search(line):
                self._say(number, "this SYNC comment is not of the form `// SYNC tag: why`")
            elif tag and line.lstrip().startswith("//") and comment_end == number - 1:
                comment_end = number  # the tag's comment goes on
            if "//" in line:
                comment_line = number
            near_tag = tag if tag and number - comment_end <= REACH_LINES else None
            for access in ORDER.findall(code_of(line)) + DEVICE_ORDER.findall(code_of(line)):
                self._access(access, number, near_tag, number - comment_line <= REACH_LINES)
            for call in POLICY.findall(code_of(line)) if near_tag else ():
                self.sides[near_tag].add("acquire" if call.startswith(("load", "try")) else "release")
            if DEFAULT_ORDER.search(code_of(line)):
                self._say(number, "this load names no order")

    def _open(self, found, number):
        tag, partner = found.groups()
        self.sides.setdefault(tag, set())
        self.first_line.setdefault(tag, number)
        if partner:
            self.partners.setdefault(tag, set()).add(pathlib.PurePath(partner.strip()))
        return tag

    def _access(self, order, number, tag, commented):
        if order == "relaxed":
            if not commented and not self._header_relaxed:
                self._say(number, f"relaxed, and no comment within {REACH_LINES} lines says why that is enough")
        elif tag is None:
            self._say(number, f"{order} has no `// SYNC tag:` within {REACH_LINES} lines")
        else:
            self.sides[tag] |= SIDES[order]

    def _say(self, number, message):
        self.errors.append(Finding(self.path, number, message))


def pair_errors(points, by_path):
    """A tag has both sides in its file, or together with the files that it says it pairs with."""
    for tag, sides in points.sides.items():
        seen, line = set(sides), points.first_line[tag]
        for partner in points.partners.get(tag, ()):
            if partner not in by_path or tag not in by_path[partner].sides:
                yield Finding(points.path, line, f"SYNC {tag} pairs with {partner}, which has no such tag")
            else:
                seen |= by_path[partner].sides[tag]
        for missing in sorted({"acquire", "release"} - seen):
            yield Finding(points.path, line, f"SYNC {tag}: no {missing} side")


def find_sync(tree):
    by_path = {path: SyncPoints(path, tree.lines(path)) for path in tree.cxx("src", "include", "moe")
               if path != DEVICE_ACCESS}
    for points in by_path.values():
        yield from points.errors
        yield from pair_errors(points, by_path)


def tags_of_model(tree):
    """The tags in the tables of the page, with their lines."""
    tags, in_table = {}, False
    for number, line in enumerate(tree.lines(MODEL), 1):
        in_table = line.startswith("|") and (in_table or bool(MODEL_HEAD.match(line)))
        for tag in MODEL_TAG.findall(line.split("|")[1]) if in_table else ():
            tags.setdefault(tag, number)
    return tags


def find_unmodelled(tree):
    listed = tags_of_model(tree) if MODEL in tree.files else {}
    used = {}
    for path in tree.cxx("src", "include", "moe"):
        for number, line in enumerate(tree.lines(path), 1):
            if found := TAG.search(line):
                used.setdefault(found.group(1), (path, number))
    for tag in sorted(used.keys() - listed.keys()):
        path, number = used[tag]
        yield Finding(path, number, f"SYNC {tag} is in no table of {MODEL}")
    for tag in sorted(listed.keys() - used.keys()):
        yield Finding(MODEL, listed[tag], f"no code has the tag {tag}")


def find_foreign(tree):
    for path in tree.cxx("src", "moe"):
        if path.parts[1] == "base":
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if found := FOREIGN.search(code_of(line)):
                yield Finding(path, number, f"{found.group(0)}: atomics come from src/base/atomic.hpp")


ATOMICS = Rule(
    "atomics",
    "outside src/base, atomics come from base/atomic.hpp only; `volatile` orders nothing",
    "code shared with a GPU takes its atomics from another library, and one file has to know that",
    "keep a plain integer and access it through weft::AtomicRef with a named order",
    find_foreign)
SYNC = Rule(
    "sync",
    f"each access that is not relaxed has `// SYNC tag: why` within {REACH_LINES} lines, each tag has an acquire and "
    "a release side; each relaxed access says why",
    "an acquire without its release is a race that tests seldom show",
    "name the pair on both ends; for one in two files write `// SYNC tag (pairs with src/x/y.hpp): why` in each",
    find_sync)
MEMORY_MODEL = Rule(
    "model",
    f"the tables of {MODEL} list every SYNC tag of the code, and no other",
    "whoever changes an order looks there for what relies on it",
    "add a row: tag, release, acquire, what it orders; or remove the row of a tag that is gone",
    find_unmodelled)
