"""Titles and bodies of commits."""
import pathlib
import re
import subprocess

from .tree import Finding, Rule

TITLE_COLUMNS_MAX = 72
TITLE = re.compile(r"[a-z][\w/.*{}+-]*(?:, [\w/.*{}+-]+)*: \S")
TRAILER = re.compile(r"^[A-Z][\w-]+: |^\(cherry picked from")
FIRST = "f17b319537659d84e07fdd191f790fb0bc42794f"  # the last commit before the rule


def git(tree, *arguments):
    return subprocess.run(["git", "-C", tree.root, *arguments], capture_output=True, text=True, check=False)


def commits(tree):
    """(hash, message) of the commits since the rule; of the last one alone in a history that does not have its first."""
    known = git(tree, "merge-base", "--is-ancestor", FIRST, "HEAD").returncode == 0
    span = [f"{FIRST}..HEAD"] if known else ["-1", "HEAD"]
    listed = git(tree, "log", "--no-merges", "--format=%h%x01%B%x00", *span)
    for entry in listed.stdout.split("\0"):
        if entry.strip():
            yield entry.strip().split("\1", 1)


def complaints(message):
    title, *rest = message.strip().split("\n")
    if len(title) > TITLE_COLUMNS_MAX:
        yield f"its title has {len(title)} columns, {TITLE_COLUMNS_MAX} are the most"
    if not TITLE.match(title):
        yield "its title is not of the form `area: what`"
    if not any(line.strip() and not TRAILER.match(line) for line in rest):
        yield "it has no body that says why"


def find_commits(tree):
    if not (tree.root / ".git").exists():
        return
    for name, message in commits(tree):
        for complaint in complaints(message):
            yield Finding(pathlib.PurePath("commit " + name), 1, f"{message.splitlines()[0]!r}: {complaint}")


COMMITS = Rule(
    "commits",
    f"a commit's title is `area: what` in at most {TITLE_COLUMNS_MAX} columns, and its body says why",
    "the diff says what; nobody can ask the author in two years",
    "git commit --amend, or git rebase -i before the branch lands",
    find_commits)
