"""clang-format over all C and C++, in the version that scripts/requirements.txt pins."""
import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from .tools import PROJECT, program
from .tree import Finding, Rule

BATCH = 12
COMPLAINT = re.compile(r"^(.*?):(\d+):\d+: error: code should be clang-formatted")

def sources(tree):
    return [path for path in tree.cxx() if not tree.generated(path)]


def run(tree, *options):
    clang_format, files = program("clang-format"), sources(tree)
    batches = [files[start:start + BATCH] for start in range(0, len(files), BATCH)]

    def run_batch(batch):
        return subprocess.run([clang_format, *options, *batch], cwd=tree.root, capture_output=True, text=True).stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return "".join(pool.map(run_batch, batches))


def format_all(tree):
    run(tree, "-i")
    tree.text.cache_clear()


def find_unformatted(tree):
    if not (tree.root / ".clang-format").exists():
        shutil.copy(PROJECT / ".clang-format", tree.root)
    seen = set()
    for line in run(tree, "--dry-run", "-Werror", "--ferror-limit=1").splitlines():
        found = COMPLAINT.match(line)
        if found and found.group(1) not in seen:
            seen.add(found.group(1))
            yield Finding(pathlib.PurePath(found.group(1)), int(found.group(2)), "is not formatted from here on")


FORMAT = Rule(
    "format",
    "sources look as clang-format 23 and .clang-format make them",
    "a change then shows what it changes",
    "scripts/check --fix format",
    find_unformatted,
    needs=("clang-format",))
