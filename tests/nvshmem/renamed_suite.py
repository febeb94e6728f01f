"""The project's OpenSHMEM suite (tests/openshmem) with its calls renamed to NVSHMEM's: each test whose functions all have a
counterpart on the host, with the helpers that it needs. What has none is left out and named."""
import dataclasses
import pathlib
import re

SUITE = pathlib.Path(__file__).resolve().parents[1] / "openshmem"
FILES = ("setup_test.c", "memory_test.c", "teams_test.c", "rma_test.c", "signal_test.c", "collectives_test.c", "ordering_test.c")
NAME = re.compile(r"\bp?(shmemx?|SHMEM)_\w+")
# Of the same name, but another function in NVSHMEM.
OTHERS = {"shmem_team_get_config": "has other arguments in NVSHMEM"}


@dataclasses.dataclass
class Renamed:
    kept: list      # titles of tests
    dropped: dict   # title: the names that have no counterpart
    sources: list   # files to compile


def names_of(prefix):
    """What NVSHMEM's headers declare for the host: functions that are exported, types and constants."""
    include = prefix / "include" / "weft_nvshmem"
    text = "".join(path.read_text() for path in [*(include / "host").glob("*.h"), include / "types.h"])
    return set(re.findall(r"\b(?:nvshmemx?|NVSHMEMX?)_\w+", text))


def counterpart(name, known):
    if name in OTHERS:
        return None
    plain = name.removeprefix("p") if name.startswith("pshmem") else name
    stem = plain.split("_", 1)[1]
    for prefix in ("NVSHMEM", "NVSHMEMX") if plain.isupper() else ("nvshmem", "nvshmemx"):
        if f"{prefix}_{stem}" in known:
            return f"{prefix}_{stem}"
    return None


def chunks_of(text):
    """Top-level pieces: each function, and what stands between. Lines inside of a function are indented."""
    return [f"{piece}\n\n" for piece in re.split(r"\n\n(?=\S)", text)]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", "", text, flags=re.DOTALL)


def missing_in(chunk, known):
    return {found.group(0) for found in NAME.finditer(without_comments(chunk)) if counterpart(found.group(0), known) is None}


def defined_in(chunk):
    """The functions and tests of a chunk."""
    code = without_comments(chunk)
    return set(re.findall(r"^TEST\((\w+)", code, re.MULTILINE)) | set(re.findall(r"^[\w ]+?[ *](\w+)\([^;{]*\)\s*\{", code, re.MULTILINE))


def title_of(chunk):
    found = re.search(r"TEST\(\w+,\s*\"([^\"]*)\"", chunk)
    return found and found.group(1)


def select(chunks, known):
    """The chunks that stay, and {title: names} of the tests that do not: a helper that goes takes its users with it."""
    lacking = {at: missing_in(chunk, known) for at, chunk in enumerate(chunks)}
    gone = {at for at, names in lacking.items() if names}
    while True:
        names = {name: at for at in gone for name in defined_in(chunks[at])}
        more = {}
        for at, chunk in enumerate(chunks):
            used = set(re.findall(r"\b\w+\b", without_comments(chunk))) & names.keys()
            if at not in gone and used:
                more[at] = set().union(*(lacking[names[name]] for name in used))
        if not more:
            break
        lacking.update(more)
        gone |= more.keys()
    dropped = {title_of(chunks[at]): sorted(lacking[at]) for at in sorted(gone) if title_of(chunks[at])}
    kept = [chunk for at, chunk in enumerate(chunks) if at not in gone]
    return kept, dropped


def without_unused_helpers(chunks):
    """Compilers warn of static functions that nobody calls."""
    while True:
        text = "".join(chunks)
        unused = [chunk for chunk in chunks if title_of(chunk) is None and re.search(r"^static ", chunk, re.MULTILINE) and defined_in(chunk)
                  and all(len(re.findall(rf"\b{name}\b", text)) == 1 for name in defined_in(chunk))]
        if not unused:
            return chunks
        chunks = [chunk for chunk in chunks if chunk not in unused]


def rename(text, known):
    text = text.replace('"tests/openshmem/suite.h"', '"suite.h"').replace("<shmem.h>", "<nvshmem.h>\n#include <nvshmemx.h>")
    return NAME.sub(lambda found: counterpart(found.group(0), known) or found.group(0), text)


def write(prefix, folder):
    known = names_of(prefix)
    result = Renamed([], {}, [])
    for name in ("suite.h", "suite.c", "main.c"):
        (folder / name).write_text(rename((SUITE / name).read_text().replace("tests/openshmem/", ""), known).replace('"tests/openshmem/suite.h"', '"suite.h"'))
    for name in FILES:
        kept, dropped = select(chunks_of((SUITE / name).read_text()), known)
        kept = without_unused_helpers(kept)
        result.dropped |= dropped
        result.kept += [title_of(chunk) for chunk in kept if title_of(chunk)]
        (folder / name).write_text(rename("".join(kept), known))
    result.sources = [folder / name for name in ("suite.c", "main.c", *FILES)]
    return result
