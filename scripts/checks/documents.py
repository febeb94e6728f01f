"""Documents: links and the symbols named beside them exist, and so do the commands of the README."""
import pathlib
import re
import shlex

from .tree import Finding, Rule

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)(?:\s?`([^`]+)`)?")
FENCE = re.compile(r"^\s*```(\w*)")
HEADING = re.compile(r"^#+\s+(.*)")
TOOL = re.compile(r"(?:.*/)?weft-(\w+)$")
# What a machine with a shell and a compiler has; everything else in the README must be ours.
SYSTEM_COMMANDS = {"cd", "git", "cmake", "ctest", "cc", "c++", "gcc", "g++", "sudo", "pkg-config", "export", "mpirun", "srun"}


def prose(tree, path):
    """Lines outside code fences."""
    fenced = False
    for number, line in enumerate(tree.lines(path), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(tree, path):
    """The anchors that a page's headings get: lower case, words joined by hyphens."""
    headings = (HEADING.match(line) for _, line in prose(tree, path))
    return {re.sub(r"[^\w\- ]", "", found.group(1).lower()).strip().replace(" ", "-") for found in headings if found}


def link_error(tree, path, target, symbol):
    name, _, anchor = target.partition("#")
    full = (tree.root / path.parent / name).resolve() if name else tree.root / path
    if not full.is_relative_to(tree.root) or not full.exists():
        return f"{name} does not exist"
    relative = pathlib.PurePath(full.relative_to(tree.root))
    if anchor.startswith("L") and anchor[1:].isdigit():
        if int(anchor[1:]) > len(tree.lines(relative)):
            return f"{name} has fewer than {anchor[1:]} lines"
    elif anchor and full.suffix == ".md" and anchor not in anchors(tree, relative):
        return f"{name or path} has no heading #{anchor}"
    if symbol and full.is_file() and not names_symbol(tree.text(relative), symbol):
        return f"{name} no longer names `{symbol}`"
    return None


def names_symbol(text, symbol):
    """The symbol stands there as a word of its own; `Class::member` also inside the class."""
    plain = symbol.removesuffix("()")
    words = [plain] if re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text) else plain.split("::")
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words)


def find_links(tree):
    for path in tree.files:
        if path.suffix != ".md":
            continue
        for number, line in prose(tree, path):
            for target, symbol in LINK.findall(line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                if error := link_error(tree, path, target, symbol):
                    yield Finding(path, number, error)


def find_cut_tables(tree):
    """A row after a blank line begins a new table, which a line of dashes then follows; else it belongs to the one before."""
    for path in tree.files:
        if path.suffix != ".md":
            continue
        lines = list(prose(tree, path))
        for (_, first), (number, blank), (_, row), (_, after) in zip(lines, lines[1:], lines[2:], [*lines[3:], (0, "")]):
            if first.startswith("|") and not blank.strip() and row.startswith("|") and not re.match(r"\|[-: |]+$", after):
                yield Finding(path, number, "a blank line cuts a table")


def shell_lines(tree, path):
    language = None
    for number, line in enumerate(tree.lines(path), 1):
        if found := FENCE.match(line):
            language = found.group(1) if language is None else None
        elif language == "sh" and line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def command_error(tree, word):
    if word in SYSTEM_COMMANDS:
        return None
    if tool := TOOL.match(word):
        folder = tree.root / "tools" / tool.group(1)
        return None if folder.is_dir() else f"there is no tools/{tool.group(1)}"
    return None if (tree.root / word).is_file() else f"{word} is not a file here"


def find_commands(tree):
    for path in tree.files:
        if path.name != "README.md":
            continue
        for number, line in shell_lines(tree, path):
            words = shlex.split(line, comments=True)
            while words and re.match(r"\w+=", words[0]):
                words.pop(0)
            if words and (error := command_error(tree, words[0])):
                yield Finding(path, number, error)


LINKS = Rule(
    "links",
    "a link leads to a file, line or heading that is there; in [text](file) `symbol` the file still names the symbol",
    "a page that leads nowhere is worse than none",
    "follow the code: correct the link, or what the page says",
    find_links)
ROWS = Rule(
    "rows",
    "a table has no blank line between its rows",
    "what follows is shown as text with bars",
    "remove the blank line",
    find_cut_tables)
COMMANDS = Rule(
    "commands",
    "a command fenced as `sh` in a README exists",
    "it is the first thing that a new user types",
    "correct the command",
    find_commands)
