"""Who may include whom: the layers of docs/ARCHITECTURE.md, the owners of vendor headers, and the
folder names that say nothing."""
import pathlib
import re

from .tree import Finding, Rule

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')

MAY_USE = {
    "base": set(),
    "topology": {"base"}, "gpu": {"base"}, "fabric": {"base"}, "bootstrap": {"base"},
    "heap": {"base", "gpu", "fabric", "bootstrap"},
    "transport": {"base", "topology", "gpu", "fabric", "bootstrap", "heap"},
    "proxy": {"base", "gpu", "heap", "transport"},
    "rma": {"base", "heap", "transport", "proxy"},
    "collectives": {"base", "gpu", "heap", "rma"},
    "plugins": {"base", "topology", "gpu", "fabric", "bootstrap", "heap", "transport", "proxy"},
    "runtime": {"base", "topology", "gpu", "fabric", "bootstrap", "heap", "transport", "proxy", "rma", "collectives"},
    "api": {"base", "gpu", "bootstrap", "heap", "transport", "rma", "collectives", "runtime"},
    "shmem": {"base", "transport", "rma", "collectives", "api"},
    "nvshmem": set(),  # a library of its own, over the public interface
    # Libraries that other programs open, each with copies of these.
}
# Inside transport, who may use which folders beside it; an implementation none.
TRANSPORT_MAY_USE = {"opening": {"rails", "faulty"}}
MOE_MAY_USE = {"base", "gpu"}  # a library of its own, over the public interface and copies of these
# Tools prove that the public headers are enough; these look inside because that is their purpose.
TOOL_MAY_USE = {
    "run": {"base", "topology", "bootstrap"},
    # Shows each of these, and its doctor tries heaps and GPUs by themselves, so that it can say
    # which one fails.
    "info": {"base", "topology", "gpu", "fabric", "bootstrap", "heap"},
    "top": {"base"},
    "perf": {"base"},
    # Runs the planner of the rails over simulated NICs.
    "sim": {"base", "transport"},
}
# A header's beginning -> folders (or one file) that may include it.
VENDOR_OWNERS = {
    "rdma/": ["src/fabric", "bench", "loom"],
    "hwloc": ["src/topology", "tools/run"],
    "nvml": ["src/topology"],
    "cuda": ["src/gpu", "src/nvshmem", "moe/src/gpu/kernels", "include/weft/device/standard.hpp",
             "include/nvshmem/weft_nvshmem/types.h", "loom/src/gpu_driver.hpp", "tests/emulated_gpu"],
    "pmix": ["src/bootstrap"],
    "sodium": ["src/bootstrap"],
    "spdlog/": ["src/base/log.cpp"],
    "CLI/": ["tools", "tests", "loom"],
    "gtest/": ["tests", "loom/tests", "moe/tests"], "gmock/": ["tests"], "benchmark/": ["tests"],
}
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}


def includes(tree, path):
    for number, line in enumerate(tree.lines(path), 1):
        if found := INCLUDE.match(line):
            yield number, found.group(1), found.group(2)


def check_src(path, number, header):
    layer, target = path.parts[1], header.split("/")[1]
    if target != layer and target not in MAY_USE[layer]:
        yield Finding(path, number, f"{layer} may not use {target}")
    elif layer == target == "transport":
        ours, theirs = path.parts[2:-1], pathlib.PurePath(header).parts[2:-1]
        if theirs and ours != theirs and theirs[0] not in TRANSPORT_MAY_USE.get("/".join(ours), set()):
            yield Finding(path, number, f"{'/'.join(path.parts[1:-1])} may not use transport/{theirs[0]}")


def check_include(path, number, quote, header):
    top = path.parts[0]
    if top == "loom" and header.startswith(("src/", "weft/", "tools/")):
        yield Finding(path, number, f"loom/ may not use {header}: it stands alone")
    if header.startswith("moe/src/") and top not in ("moe", "tests"):
        yield Finding(path, number, f"{top}/ may not use {header}: users of MoE see its public headers only")
    if ".." in header.split("/"):
        yield Finding(path, number, f"{header} climbs out of its folder; name it from the root")
    if not header.startswith("src/"):
        return
    if top == "src":
        yield from check_src(path, number, header)
    elif top == "moe" and path.parts[1] == "src":
        if header.split("/")[1] not in MOE_MAY_USE:
            yield Finding(path, number, f"moe/ may not use {header}")
    elif top in ("include", "examples", "python") or path.parts[:2] == ("moe", "include"):
        yield Finding(path, number, f"{top}/ may not use {header}: it sees public headers only")
    elif top == "tools" and header.split("/")[1] not in TOOL_MAY_USE.get(path.parts[1], set()):
        yield Finding(path, number, f"tools/{path.parts[1]} may not use {header}")


def find_layers(tree):
    for path in tree.cxx("src", "include", "tools", "examples", "python", "loom", "moe"):
        if path.parts[0] == "src" and path.parts[1] not in MAY_USE:
            yield Finding(path, 1, f"src/{path.parts[1]} is not a layer")
            continue
        for number, quote, header in includes(tree, path):
            yield from check_include(path, number, quote, header)


def owned(path, owners):
    return any(pathlib.PurePath(owner) in (path, *path.parents) for owner in owners)


def find_vendors(tree):
    for path in tree.cxx():
        if path.suffix in (".cu", ".cuh"):
            continue
        for number, _, header in includes(tree, path):
            for prefix, owners in VENDOR_OWNERS.items():
                if header.startswith(prefix) and not owned(path, owners):
                    yield Finding(path, number, f"<{header}> belongs to {' and '.join(owners)}")


def find_folders(tree):
    folders = {parent for path in tree.files for parent in path.parents}
    for folder in sorted(folders):
        if folder.name.lower() in EMPTY_NAMES:
            yield Finding(folder, 1, f"a folder called {folder.name}")


# Circles that are known: by folder, the parts of each. They may shrink, and not grow.
KNOWN_CIRCLES = {
    "loom/src": ["segment slots", "atomics completion_queue copying domain endpoint engine operation receiver targets transmitter"],
    "python/bindings": ["agreement rma session teams", "array elements exports indexing memory"],
    "src/fabric": ["discovery endpoint_limits grown_structs handles hints libfabric libfabric_rail native_info operation_memory "
                   "start variables"],
    "src/runtime": ["pe_objects runtime"],  # Runtime::Objects is the private half of Runtime
    "src/transport/rails": ["allowed_rails choosers planner policies"],
    "tools/info": ["host_limits kernel_features"],
    "tools/perf/gpu": ["collective_data memory"],
}


def stem(path):
    return path.with_suffix("").as_posix()


def neighbours(tree):
    """Stems (a header with its source) -> the stems of the same folder that they include."""
    known = {path.as_posix() for path in tree.cxx()}
    graph = {}
    for path in tree.cxx("src", "loom", "tools", "python", "moe"):
        names = [header for _, _, header in includes(tree, path)]
        places = [pathlib.PurePath(name if name in known else path.parent / name) for name in names]
        there = {stem(place) for place in places if place.as_posix() in known and place.parent == path.parent}
        graph.setdefault(stem(path), set()).update(there - {stem(path)})
    return graph


def circles(graph):
    """The sets of stems of which each includes each other, on whatever way."""
    reached = {start: reachable(graph, start) for start in graph}
    return {frozenset({start, *(other for other in reached[start] if start in reached[other])})
            for start in graph if start in reached[start]}


def reachable(graph, start):
    found, open_ends = set(), [start]
    while open_ends:
        for other in graph[open_ends.pop()] - found:
            found.add(other)
            open_ends.append(other)
    return found


def is_known(circle):
    parts = {pathlib.PurePath(name) for name in circle}
    folder = next(iter(parts)).parent.as_posix()
    return any({part.name for part in parts} <= set(known.split()) for known in KNOWN_CIRCLES.get(folder, []))


def find_circles(tree):
    for circle in sorted(circles(neighbours(tree)), key=sorted):
        if not is_known(circle):
            first, *others = sorted(circle)
            path = next(path for path in tree.cxx() if stem(path) == first)
            yield Finding(path, 1, f"includes and is included by {', '.join(pathlib.PurePath(other).name for other in others)}")


LAYERS = Rule(
    "layers",
    "a layer includes only itself and the layers below it; public headers, examples and Python only public headers",
    "a change stays in its room, and a layer can be tested without those above it",
    "move the code to the layer that owns it, or pass what is needed from above (docs/ARCHITECTURE.md)",
    find_layers)
VENDORS = Rule(
    "vendors",
    "a vendor's header is included by its one owner",
    "a new version or a second vendor then changes one folder",
    "use the owner's wrapper, or add to the wrapper what is missing",
    find_vendors)
FOLDERS = Rule(
    "folders",
    "no folder is called " + ", ".join(sorted(EMPTY_NAMES)),
    "such a name says nothing of what is inside, so anything ends up there",
    "name it after what it does, or move the files to the layer they serve",
    find_folders)
CIRCLES = Rule(
    "circles",
    "in a folder, a header with its source and another one do not include each other, on whatever way",
    "parts that need each other can only be read, tested and changed together",
    "move what both need into a third; or call upwards through a function that is passed in",
    find_circles)
