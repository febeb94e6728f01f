"""The project's OpenSHMEM suite (tests/openshmem) with its calls renamed to NVSHMEM's: each test whose functions all have a
counterpart on the host or on a stream, with the helpers that it needs. What has none is left out and named.

    renamed_suite.py --include DIR --out DIR [--shadows] [--on-stream]

writes the files of the suite, and left_out.txt. With --shadows its tests reach symmetric memory by shadows (shadow/shadow.h),
so that it may be a GPU's."""
import argparse
import dataclasses
import pathlib
import re
import sys

import suite_calls

SUITE = pathlib.Path(__file__).resolve().parents[1] / "openshmem"
sys.path.append(str(SUITE))

import typed_tests  # noqa: E402: the path above comes first

TYPED = "typed_c99.c"
FILES = ("setup_test.c", "memory_test.c", "teams_test.c", "rma_test.c", "signal_test.c", "collectives_test.c", "ordering_test.c",
         "wait_test.c", TYPED)
NAME = re.compile(r"\bp?(shmemx?|SHMEM)_\w+")
# Of the same name, but another function in NVSHMEM.
OTHERS = {"shmem_team_get_config": "has other arguments in NVSHMEM"}
# Left out: these tests are about OpenSHMEM alone, and with shadows those too whose symmetric memory
# is not the heap.
OWN = {"version_number": "OpenSHMEM's version"}
GLOBALS = {"globals_are_symmetric": "symmetric globals", "global_and_heap": "symmetric globals"}


# The host has no atomics: words that are waited for are set by p.
SET_OF_WAIT = re.compile(r"\bshmem_(\w+)_atomic_set\b(?!, shmem_ctx_)")


@dataclasses.dataclass
class Renamed:
    kept: list      # titles of tests
    dropped: dict   # title: the names that have no counterpart
    sources: list   # files to compile
    checks: int     # of typed functions, and those left out
    checks_dropped: int


def headers_text(include):
    """NVSHMEM's headers for the host: functions that are exported, types and constants."""
    paths = [*sorted((include / "weft_nvshmem" / "host").glob("*.h")), include / "weft_nvshmem" / "types.h", include / "nvshmem_version.h"]
    return "".join(path.read_text() for path in paths)


def names_of(text):
    return set(re.findall(r"\b(?:nvshmemx?|NVSHMEMX?)_\w+", text))


def counterpart(name, known):
    if name in OTHERS:
        return None
    plain = name.removeprefix("p") if name.startswith("pshmem") else name
    stem = plain.split("_", 1)[1]
    for prefix in ("NVSHMEM", "NVSHMEMX") if plain.isupper() else ("nvshmem", "nvshmemx"):
        if f"{prefix}_{stem}" in known:
            return f"{prefix}_{stem}"
    return f"nvshmem_{stem}" if suite_calls.on_stream(plain) in known else None


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


# What renamed_suite.cpp needs of suite.h are its declarations.
INCLUDES = """<nvshmem.h>
#include <nvshmemx.h>
#ifndef SUITE_WITHOUT_CALLS
#include "suite_calls.h"
#endif"""


def rename(text, known):
    text = text.replace('"tests/openshmem/', '"').replace("<shmem.h>", INCLUDES).replace("#ifdef TYPED_WITHOUT_CONTEXTS", "#if 1")
    return NAME.sub(lambda found: counterpart(found.group(0), known) or found.group(0), text)


def without(chunks, left_out):
    """The chunks without these tests, and {title: reason} of them. `left_out`: reasons by the names of functions."""
    stay, dropped = [], {}
    for chunk in chunks:
        reasons = [left_out[name] for name in defined_in(chunk) if name in left_out]
        if reasons:
            dropped[title_of(chunk)] = reasons
        else:
            stay.append(chunk)
    return stay, dropped


def typed(text, known):
    """The typed checks without forms on contexts, and without functions that NVSHMEM lacks; how many stay and go. A test that would be
    empty keeps one, and so is left out by it."""
    tests, stay, go = [], 0, 0
    for chunk in chunks_of(re.sub(r", shmem_ctx_\w+", ",", text)):
        lines = chunk.splitlines(keepends=True)
        lacking = [line for line in lines if line.startswith("  CHECK_") and missing_in(line, known)]
        count = sum(line.startswith("  CHECK_") for line in lines)
        tests.append("".join(line for line in lines if line not in (lacking if len(lacking) < count else lacking[1:])))
        stay, go = stay + count - len(lacking), go + len(lacking)
    return "".join(tests), stay, go


def original(name, known):
    """A file of the suite's tests as it is before it is renamed, and typed()'s counts."""
    text = typed_tests.sources()[TYPED] if name == TYPED else (SUITE / name).read_text()
    if name in (TYPED, "wait_test.c"):
        text = SET_OF_WAIT.sub(r"shmem_\1_p", text)
    return typed(text, known) if name == TYPED else (text, 0, 0)


def write(include, folder, shadows=False, on_stream=False):
    """The suite's files in `folder`: suite.h, suite_calls.h and C sources."""
    headers = headers_text(include)
    known = names_of(headers)
    result = Renamed([], {}, [], 0, 0)
    texts = {name: rename((SUITE / name).read_text(), known) for name in ("suite.h", "suite.c", "suite_tools.c", "main.c", "typed_checks.h")}
    for name in FILES:
        text, checks, checks_dropped = original(name, known)
        result.checks += checks
        result.checks_dropped += checks_dropped
        kept, dropped = select(chunks_of(text), known)
        kept, more = without(kept, OWN | (GLOBALS if shadows else {}))
        dropped |= more
        kept = without_unused_helpers(kept)
        result.dropped |= dropped
        result.kept += [title_of(chunk) for chunk in kept if title_of(chunk)]
        texts[name] = rename("".join(kept), known)
    used = names_of("".join(texts.values()))
    texts["suite_calls.h"] = suite_calls.header(used, suite_calls.prototypes(headers), shadows, on_stream)
    for name, text in texts.items():
        (folder / name).write_text(text)
    result.sources = [folder / name for name in ("suite.c", "suite_tools.c", "main.c", *FILES)]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--shadows", action="store_true")
    parser.add_argument("--on-stream", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    result = write(options.include, options.out, options.shadows, options.on_stream)
    lines = [f"{title}: {', '.join(names)}" for title, names in result.dropped.items()]
    (options.out / "left_out.txt").write_text("\n".join([f"{len(result.kept)} tests run, with {result.checks} checks of typed functions; {result.checks_dropped} checks and these {len(lines)} tests do not:", *lines]) + "\n")


if __name__ == "__main__":
    main()
