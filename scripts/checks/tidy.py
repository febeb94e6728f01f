"""clang-tidy, through the CMake preset `tidy`: it compiles everything, so only the full check runs it."""
import os
import pathlib
import re
import subprocess

from .tools import program
from .tree import Finding, Rule

COMPLAINT = re.compile(r"^(/\S+?):(\d+):\d+: (?:error|warning): (.*)$", re.MULTILINE)


def find_tidy(tree):
    path = f"{program('clang-tidy').parent}:{os.environ['PATH']}"
    command = [tree.root / "scripts" / "build", "tidy"]
    built = subprocess.run(command, cwd=tree.root, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    seen = set(COMPLAINT.findall(built.stdout + built.stderr))
    for name, line, message in sorted(seen):
        if pathlib.PurePath(name).is_relative_to(tree.root):
            yield Finding(pathlib.PurePath(name).relative_to(tree.root), int(line), message)
    if built.returncode and not seen:
        yield Finding(pathlib.PurePath("build/tidy"), 1, (built.stdout + built.stderr)[-2000:])


TIDY = Rule(
    "tidy",
    "clang-tidy 23 with .clang-tidy has nothing to say",
    "it sees mistakes that compile",
    "follow its advice; NOLINT(check) only with a reason beside it",
    find_tidy,
    needs=("clang-tidy",))
