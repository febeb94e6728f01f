"""Evidence: measured data is small, new and named by somebody; pages for users are short and hold no diary."""
import pathlib
import re

from .tree import Finding, Rule

DATA = pathlib.PurePath("bench/data")
DATA_BYTES_MAX = 3_000_000
DATA_FILES_MAX = 40
# DATE-MACHINE-WHAT.jsonl, so that a reader sees the age, and a search finds who names it.
DATA_NAME = re.compile(r"\b20\d\d-\d\d-\d\d-[\w-]+\.\w+\b")
READERS = {".md", ".py", ".sh", ".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ""}
PAGE_LINES_MAX = {"PERFORMANCE.md": 300, "MOE.md": 350, "MOE_MEASUREMENTS.md": 150, "CHANGELOG.md": 80}
# Seven hex digits and more, letters and digits mixed: a commit. Words and numbers have one of both.
COMMIT = re.compile(r"(?<![\w/#.-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])")
DIARY = re.compile(r"\b(?:first|second|third|\w+th)\s+session\b|\bsession\s+\d|^#+ .*\b20\d\d-\d\d-\d\d\b", re.IGNORECASE)


def data_files(tree):
    return [path for path in tree.files if path.is_relative_to(DATA)]


def names_in_use(tree):
    """What pages and programs name; data that only other data names is not in use."""
    readers = (path for path in tree.files if path.suffix in READERS and not path.is_relative_to(DATA))
    return {name for path in readers for name in DATA_NAME.findall(tree.text(path))}


def find_data(tree):
    files = data_files(tree)
    size = sum((tree.root / path).stat().st_size for path in files)
    if len(files) > DATA_FILES_MAX:
        yield Finding(DATA, 1, f"{len(files)} files of data, at most {DATA_FILES_MAX}")
    if size > DATA_BYTES_MAX:
        yield Finding(DATA, 1, f"{size / 1e6:.2f} MB of data, at most {DATA_BYTES_MAX / 1e6:g}")
    used = names_in_use(tree)
    for path in files:
        if path.name not in used:
            yield Finding(path, 1, "no page and no program names this file")


def find_long_pages(tree):
    for path in tree.files:
        limit = PAGE_LINES_MAX.get(path.name)
        if limit and len(tree.lines(path)) > limit:
            yield Finding(path, limit, f"{len(tree.lines(path))} lines, at most {limit}")


def is_for_users(path):
    """Decisions say what was tried and when; all other pages say what is."""
    return path.suffix == ".md" and "decisions" not in path.parts


def find_diaries(tree):
    for path in filter(is_for_users, tree.files):
        for number, line in enumerate(tree.lines(path), 1):
            if found := COMMIT.search(line):
                yield Finding(path, number, f"{found.group(0)} is a commit")
            if found := DIARY.search(line):
                yield Finding(path, number, f"\"{found.group(0)}\" is a diary's")


EVIDENCE = Rule(
    "data",
    f"bench/data has at most {DATA_FILES_MAX} files and {DATA_BYTES_MAX / 1e6:g} MB, each named by a page or read by a program",
    "every clone carries it, and nobody finds today's figure among old ones",
    "keep the newest rows of each published table; the history has the others",
    find_data)
PAGES = Rule(
    "pages",
    "; ".join(f"{name} has at most {limit} lines" for name, limit in PAGE_LINES_MAX.items()),
    "a page of measurements grows by every run, until nobody reads it",
    "replace the old table by the new one; what was tried is a paragraph in its decision",
    find_long_pages)
DIARIES = Rule(
    "diaries",
    "pages for users name no commit, and no session or date in a heading",
    "a user asks what is, not when it was found",
    "write in the present tense, with the date beside the figure; the history of a choice belongs to its decision",
    find_diaries)
