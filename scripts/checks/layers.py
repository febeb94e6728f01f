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
    "runtime": {"base", "topology", "gpu", "fabric", "bootstrap", "heap", "transport", "proxy", "rma", "collectives"},
    "api": {"base", "gpu", "bootstrap", "heap", "transport", "rma", "collectives", "runtime"},
    "shmem": {"base", "transport", "rma", "collectives", "api"},
    "moe": {"base", "gpu", "api"},  # over the public interface; of api only its errors, of gpu its kernels
    "nvshmem": set(),  # a library of its own, over the public interface
}
# Tools prove that the public headers are enough; these look inside because that is their purpose.
TOOL_MAY_USE = {
    "run": {"base", "topology", "bootstrap"},
    # Shows each of these, and its doctor tries heaps and GPUs by themselves, so that it can say which one fails.
    "info": {"base", "topology", "gpu", "fabric", "bootstrap", "heap"},
    "top": {"base"},
    "perf": {"base"},
}
# A header's beginning -> folders (or one file) that may include it.
VENDOR_OWNERS = {
    "rdma/": ["src/fabric", "bench", "loom"],
    "hwloc": ["src/topology", "tools/run"],
    "nvml": ["src/topology"],
    "cuda": ["src/gpu", "src/nvshmem", "include/weft/device/standard.hpp", "include/nvshmem/weft_nvshmem/types.h",
             "loom/src/gpu_driver.hpp", "tests/emulated_gpu"],
    "pmix": ["src/bootstrap"],
    "sodium": ["src/bootstrap"],
    "spdlog/": ["src/base/log.cpp"],
    "CLI/": ["tools", "tests", "loom"],
    "gtest/": ["tests", "loom/tests"], "gmock/": ["tests"], "benchmark/": ["tests"],
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
        if theirs and ours != theirs:
            yield Finding(path, number, f"{'/'.join(path.parts[1:-1])} may not use transport/{theirs[0]}")


def check_include(path, number, quote, header):
    top = path.parts[0]
    if top == "loom" and header.startswith(("src/", "weft/", "tools/")):
        yield Finding(path, number, f"loom/ may not use {header}: it stands alone")
    if ".." in header.split("/"):
        yield Finding(path, number, f"{header} climbs out of its folder; name it from the root")
    if not header.startswith("src/"):
        return
    if top == "src":
        yield from check_src(path, number, header)
    elif top in ("include", "examples", "python"):
        yield Finding(path, number, f"{top}/ may not use {header}: it sees public headers only")
    elif top == "tools" and header.split("/")[1] not in TOOL_MAY_USE.get(path.parts[1], set()):
        yield Finding(path, number, f"tools/{path.parts[1]} may not use {header}")


def find_layers(tree):
    for path in tree.cxx("src", "include", "tools", "examples", "python", "loom"):
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
