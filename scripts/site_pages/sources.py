"""Assembles what Sphinx reads: the Markdown of the repository, each file at its own path, and the tree of navigation.
A page that the navigation does not name is appended to it, so that a new document appears by itself."""
import pathlib
import re
import shutil

COPIED = ["README.md", "CHANGELOG.md", "docs/**/*.md", "moe/docs/*.md", "docs/images/*", "tools/*/README.md", "loom/README.md", "bench/peers/README.md",
          "examples/monitoring/README.md", "deploy/README.md"]
ROOT_PAGE = "docs/site/index"
DECISIONS = "docs/decisions/index"
NAVIGATION = {
    "Start": ["README", "docs/site/install", "docs/site/cluster", "docs/DEPLOY", "deploy/README", "docs/site/questions"],
    "Look up": ["api/index", "docs/ENV", "docs/site/metrics", "docs/site/messages", "docs/site/tuning", "docs/GLOSSARY"],
    "Use": ["docs/OPENSHMEM", "docs/NVSHMEM", "docs/GPU", "docs/PYTHON", "moe/docs/MOE", "docs/MEMORY_MODEL", "docs/WEFT_INFO", "docs/WEFT_TOP", "tools/run/README",
            "tools/perf/README", "tools/lab/README", "tools/plot/README", "examples/monitoring/README"],
    "Performance": ["docs/PERFORMANCE", "moe/docs/MOE_MEASUREMENTS", "docs/LOOM", "docs/SIMULATOR", "bench/peers/README"],
    "How it works": ["docs/ARCHITECTURE", "docs/LIFE_OF_A_PUT", "docs/PROVIDERS", "docs/COUNTERS", "docs/SECURITY", "docs/RECORDING", "docs/DEVELOPING", "moe/docs/DEVELOPING",
                     "loom/README", DECISIONS, "CHANGELOG"],
}
TITLES = {"README": "What Weft is", "docs/ENV": "Settings", "loom/README": "Loom", "docs/LOOM": "Weft on emulated NICs", "moe/docs/DEVELOPING": "Developing weft.moe",
          "docs/WEFT_INFO": "weft-info", "docs/WEFT_TOP": "weft-top", "docs/SIMULATOR": "weft-sim", "tools/perf/README": "weft-perf", "tools/lab/README": "weft-lab",
          "tools/plot/README": "weft-plot", "bench/peers/README": "NVSHMEM and NCCL beside Weft", "deploy/README": "Recipes"}
REST = "More"


def copy(root, source):
    """Copies the Markdown; returns the names of the pages."""
    pages = set()
    for pattern in COPIED:
        for path in sorted(root.glob(pattern)):
            target = source / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
            if path.suffix == ".md":
                pages.add(path.relative_to(root).with_suffix("").as_posix())
    return pages


def toctree(pages, caption=""):
    entries = [f"{TITLES[page]} </{page}>" if page in TITLES else f"/{page}" for page in pages]
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *entries, "```", ""])


def write_decisions(source, pages):
    """A page that lists the decisions by their titles."""
    names = sorted(page for page in pages if re.match(r"docs/decisions/\d", page))
    lines = ["# Decisions", "", "Each page says what was chosen, what was rejected, and what was measured.", ""]
    for name in names:
        title = (source / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}]({pathlib.PurePath(name).name}.md)")
    text = "\n".join(lines) + "\n" + toctree(names)
    (source / f"{DECISIONS}.md").write_text(text, encoding="utf-8")


def assemble(root, source):
    pages = copy(root, source)
    write_decisions(source, pages)
    listed = {page for group in NAVIGATION.values() for page in group}
    there = pages | {"api/index", DECISIONS}
    groups = {caption: [page for page in group if page in there] for caption, group in NAVIGATION.items()}
    groups[REST] = sorted(page for page in pages - listed - {ROOT_PAGE} if not page.startswith("docs/decisions/"))
    index = source / f"{ROOT_PAGE}.md"
    text = index.read_text(encoding="utf-8") + "".join(toctree(group, caption) for caption, group in groups.items() if group)
    index.write_text(text, encoding="utf-8")
