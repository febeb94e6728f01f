"""Rules on plain text: header comments, open questions, silenced sanitizers."""
import re

from .tree import Finding, Rule

HEADER_LINES_MIN = 3
# Spelled in two halves, so that this file does not find itself.
QUESTION = re.compile(r"\b(" + "|".join(["X" + "XX", "TO" + "DO", "FIX" + "ME"]) + r")\b")
SILENCED = re.compile("no_" + r"sanitize|__\w+_default_" + r"suppressions|\bsuppress" + r"ions=")
INDEXED_TABLE = re.compile(r"\b(k[A-Z]\w*)\[(?:static_cast<std::size_t>|std::to_underlying)\(")
SILENCER_FILE = re.compile(r"\.supp$|suppressions?\.(txt|cfg)$")


def find_headers(tree):
    for path in tree.cxx("src", "loom"):
        if path.suffix not in (".hpp", ".cuh") or tree.generated(path):
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
    for path in tree.cxx("src", "tools", "include", "loom"):
        for number, line in enumerate(tree.lines(path), 1):
            if found := INDEXED_TABLE.search(line):
                yield Finding(path, number, f"{found.group(1)} is indexed by an enumerator")


def find_questions(tree):
    return find_lines(tree, QUESTION, "{} is an open question")


def find_suppressions(tree):
    for path in tree.files:
        if SILENCER_FILE.search(path.name):
            yield Finding(path, 1, "a suppression file")
    yield from find_lines(tree, SILENCED, "{} silences a sanitizer")


HEADERS = Rule(
    "headers",
    f"a header under src/ or loom/ opens with at least {HEADER_LINES_MIN} lines of comment: purpose, owner thread, invariants",
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
