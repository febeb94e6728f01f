"""Rules on plain text: header comments, open questions, silenced sanitizers."""
import re

from . import cxx
from .tree import Finding, Rule

HEADER_LINES_MIN = 3
COMMENT_COLUMNS_MAX = 100
# Spelled in two halves, so that this file does not find itself.
QUESTION = re.compile(r"\b(" + "|".join(["X" + "XX", "TO" + "DO", "FIX" + "ME"]) + r")\b")
SILENCED = re.compile("no_" + r"sanitize|__\w+_default_" + r"suppressions|\bsuppress" + r"ions=")
INDEXED_TABLE = re.compile(r"\b(k[A-Z]\w*)\[(?:static_cast<std::size_t>|std::to_underlying)\(")
SILENCER_FILE = re.compile(r"\.supp$|suppressions?\.(txt|cfg)$")


def find_headers(tree):
    for path in tree.cxx("src", "loom", "moe"):
        if path.suffix not in (".hpp", ".cuh") or path.parts[:2] == ("moe", "tests") or tree.generated(path):
            continue
        comment = 0
        for line in tree.lines(path):
            if not line.startswith("//"):
                break
            comment += line.strip("/ ") != ""
        if comment < HEADER_LINES_MIN:
            yield Finding(path, 1, f"opens with {comment} lines of comment")


def find_lines(tree, pattern, words):
    for path in tree.files:
        if not pattern.search(tree.text(path)):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if found := pattern.search(line):
                yield Finding(path, number, words.format(found.group(0)))


def find_indexed_tables(tree):
    for path in tree.cxx("src", "tools", "include", "loom", "moe"):
        for number, line in enumerate(tree.lines(path), 1):
            if found := INDEXED_TABLE.search(line):
                yield Finding(path, number, f"{found.group(1)} is indexed by an enumerator")


def comment_starts(path, text):
    """The lines on which a comment begins or goes on, and that are too long for one. Strings are told from comments."""
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > COMMENT_COLUMNS_MAX]
    if not long:
        return []
    if path.suffix in cxx.SUFFIXES:
        commented = {line for first, comment in cxx.comments(text) for line in range(first, first + comment.count("\n") + 1)}
        return [number for number in long if number in commented]
    lines = text.splitlines()
    return [number for number in long if lines[number - 1].lstrip().startswith("#")]


def is_one_word(line):
    """An address, or a line for a tool or of a C preprocessor, which cannot be divided."""
    return len(line.split()) <= 2 or "NOLINT" in line or line.startswith(("#!", "#if "))


def find_wide_comments(tree):
    for path in sorted({*tree.cxx(), *tree.python(), *tree.shell()}):
        if tree.generated(path):
            continue
        lines = tree.lines(path)
        for number in comment_starts(path, tree.text(path)):
            if not is_one_word(lines[number - 1]):
                yield Finding(path, number, f"a comment of {len(lines[number - 1])} columns")


def find_questions(tree):
    return find_lines(tree, QUESTION, "{} is an open question")


def find_suppressions(tree):
    for path in tree.files:
        if SILENCER_FILE.search(path.name):
            yield Finding(path, 1, "a suppression file")
    yield from find_lines(tree, SILENCED, "{} silences a sanitizer")


HEADERS = Rule(
    "headers",
    f"a header under src/, loom/ or moe/ opens with at least {HEADER_LINES_MIN} lines of comment: purpose, owner thread, invariants",
    "a reader decides there whether to read on, and what may be touched from which thread",
    "say what it is for, which thread may call it, and what always holds",
    find_headers)
QUESTIONS = Rule(
    "questions",
    "no open questions in the tree",
    "a note to oneself in the code is read by nobody who could answer it",
    "answer it, write an issue, or state the limit as a fact",
    find_questions)
SUPPRESSIONS = Rule(
    "silenced",
    "nothing silences a sanitizer",
    "a silenced report hides the next, real one at the same place",
    "repair the code; if the tool is wrong, rewrite so that it can see the order",
    find_suppressions)
TABLES = Rule(
    "tables",
    "a table of constants is not indexed by an enumerator: its rows carry the enumerators, and are found by them",
    "an enumerator that is added or moved shifts what all later rows mean, and nothing says so",
    "make the rows pairs, and look up with std::ranges::find; or write a switch, which the compiler checks",
    find_indexed_tables)
WIDTH = Rule(
    "width",
    f"a line of comment has at most {COMMENT_COLUMNS_MAX} columns, as the code has",
    "two files side by side then show both; long lines of prose are hard to read",
    "break the line; clang-format leaves comments as they are",
    find_wide_comments,
    needs=("lizard",))
