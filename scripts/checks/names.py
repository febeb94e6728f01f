"""One name, one type: what a reader finds by searching for a type's name is that type."""
import collections

from . import cxx
from .tree import Finding, Rule

# A library's headers for kernels are one of their own: there a host type's counterpart has the same
# name (Team, Command).
LIBRARIES = ["include/weft/device", "include/nvshmem", "include/weft/weft.hpp", "include", "src/nvshmem", "src/plugins", "src",
             "loom/src", "loom/cli", "loom/tests", "tools/perf/gpu", "tools", "python/bindings", "moe/tests", "moe/bench",
             "moe/python", "moe"]
ONE_EACH = {"tools"}  # each folder is a program

# Names that stand for two types, and why.
ALLOWED = {
    "Applier": "gpu::Applier is what the proxy's interface proxy::Applier asks for, on CUDA",
    "Copier": "as Applier",
}


def library_of(path):
    name = path.as_posix()
    for library in LIBRARIES:
        if name == library or name.startswith(library + "/"):
            return "/".join(path.parts[:2]) if library in ONE_EACH else library if library != "include" else "src"
    return None


def find_repeated_types(tree):
    places = collections.defaultdict(list)
    for path in tree.cxx("src", "include", "loom", "tools", "python", "moe"):
        if tree.generated(path) or library_of(path) is None:
            continue
        for found in cxx.types(tree.text(path)):
            if found.name and not found.outer and not found.is_specialization:
                places[library_of(path), found.name].append((path, found.line))
    for (_, name), found in sorted(places.items()):
        for path, line in found[1:]:
            if name not in ALLOWED:
                yield Finding(path, line, f"{name} is also a type of {found[0][0]}:{found[0][1]}")


TYPES = Rule(
    "types",
    "a type's name is used once in a library; a type inside a type is named by both (RailsTransport::Options)",
    "eight types called Exchange are eight pages to open",
    "name it after what sets it apart from the other; see docs/GLOSSARY.md",
    find_repeated_types,
    needs=("lizard",))
