"""The lists of files in docs/DEVELOPING.md, "How to add"."""
import pathlib
import re

LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)\)")
NEW_FILE = re.compile(r"`((?:src|tools|tests)/[\w./]*NAME[\w./]*)`")


def lists(project):
    """Title of each entry with a table -> the paths of its first column; a new file's has NAME in it."""
    text = (project / "docs" / "DEVELOPING.md").read_text(encoding="utf-8").split("\n## How to add\n")[1].split("\n## ")[0]
    found = {}
    for entry in text.split("\n### ")[1:]:
        title, *lines = entry.splitlines()
        cells = [line.split("|")[1] for line in lines if line.startswith("| ") and not line.startswith("| file")]
        if cells:
            found[title] = [path for cell in cells for path in paths_of(project, cell)]
    return found


def paths_of(project, cell):
    linked = [(project / "docs" / target).resolve().relative_to(project.resolve()).as_posix() for target in LINK.findall(cell)]
    return [*linked, *(pathlib.PurePosixPath(name).as_posix() for name in NEW_FILE.findall(cell))]
