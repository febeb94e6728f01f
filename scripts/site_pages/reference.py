"""Writes the reference of the C interface by subject, as pages for Sphinx: each section of a header belongs to one
subject, each function to one entry. Types come from Doxygen through breathe; functions that share a comment, or
differ only in their type, share an entry."""
import itertools
import re

from . import headers
from .operations import described

MANY = 4  # signatures that are shown without unfolding

# page: title, what it is for, and its sections as (header, title); "*" stands for all that are
# left.
SUBJECTS = {
    "setup": ("Setup, errors, PEs and nodes", "Join and leave a job; who is where; what went wrong.",
              [("weft/weft.h", "Setup"), ("weft/weft.h", "")]),
    "memory": ("Symmetric memory", "Memory that has the same name on every PE; windows of your own memory.",
               [("weft/weft.h", "Symmetric memory")]),
    "rma": ("Put and get", "Blocks, strides, single elements; contexts, on which operations are ordered apart.",
            [("weft/weft.h", "Remote memory access"), ("weft/typed.h", "One element"),
             ("weft/typed.h", "Put and get of count elements"), ("weft/weft.h", "Lists"), ("weft/weft.h", "Contexts")]),
    "signals": ("Signals and waiting", "Data with a signal in one trip; waits for signals and for variables.",
                [("weft/weft.h", "Signals"), ("weft/typed.h", "Waits for a symmetric variable of this PE"),
                 ("weft/typed.h", "Waits for count variables"), ("weft/typed.h", "The same without waiting")]),
    "order": ("Order and completion", "Fence, quiet, barrier.", [("weft/weft.h", "Order and completion")]),
    "atomics": ("Atomics", "On integers and floating-point numbers of any PE.",
                [("weft/typed.h", title) for title in ("Atomics on one aligned element", "Arithmetic", "Bits")]),
    "collectives": ("Teams and collectives", "Split the PEs; all-to-all, broadcast, reductions and scans.",
                    [("weft/weft.h", "Collectives over all PEs"), ("weft/collectives.h", "Teams"),
                     ("weft/collectives.h", "Collectives"), ("weft/collectives.h", "Notes")]),
    "counters": ("Connections and counters", "What each rail has carried, and opening connections early.",
                 [("weft/weft.h", "Connections and counters")]),
    "device": ("GPUs, from the host", "The heap in device memory, operations on a CUDA stream.", [("weft/device.h", "*")]),
    "moe": ("Expert parallelism", "Dispatch and combine for mixture-of-experts layers.", [("weft/moe.h", "*")]),
    "extension": ("Libraries over Weft", "Their errors, their lines in the log, and what a thread of Weft watches for them.",
                  [("weft/extension.h", "*")]),
    "openshmem": ("OpenSHMEM", "All functions of shmem.h, by the sections of the specification.", [("shmem.h", "*")]),
    "pshmem": ("OpenSHMEM's profiling interface", "Each function under the name that tools call.", [("pshmem.h", "*")]),
}
# A declaration that exists to make a wrong type an error of the compiler; the library has no such
# function.
LEFT_OUT = {("shmem.h", "Chosen")}
UNSHOWN_DEFINES = re.compile(r"_H$|^WEFT_EXPORT$|^WEFT_HAS_|^_?SHMEM_")


def words(text, names):
    """The text of a comment as reStructuredText: code in backticks, functions as links."""
    parts = re.split(r"`([^`]*)`", text)
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = f"``{part}``"
            continue
        part = re.sub(r"([\\*|]|_(?=\W|$))", r"\\\1", part)
        parts[index] = re.sub(r"\b((?:weft|shmem)_\w+)(?:\(\))?", lambda found: f":c:func:`{found[1]}`" if found[1] in names else found[0], part)
    return "".join(parts)


def heading(text, mark):
    return [text, mark * len(text), ""]


def indented(text):
    return [f"   {line}".rstrip() for line in text.splitlines()]


def function_entry(members, text):
    """One entry; where it has many signatures they are folded."""
    signatures = [member.signature for member in members]
    if len(members) > MANY:
        return [text, "", ".. family::", "", *(f"   {signature}" for signature in signatures), ""]
    return ["\n".join([f".. c:function:: {signatures[0]}", *(f"                {other}" for other in signatures[1:])]), "", *indented(text), ""]


def type_entry(member):
    kind = {"struct": "struct", "enum": "enum", "typedef": "typedef", "define": "define"}[member.kind]
    options = ["   :members:", "   :undoc-members:"] if kind == "struct" else []
    return [f".. doxygen{kind}:: {member.name}", *options, ""]


def paragraphs(members, lines):
    """Functions that stand together under one comment, and everything else alone."""
    group = []
    for member in members:
        follows = group and member.kind == group[-1].kind == "function" and not member.documented
        if follows and all(line.strip() for line in lines[group[-1].line - 1:member.line]):
            group.append(member)
            continue
        if group:
            yield group
        group = [member]
    if group:
        yield group


def merged(sections):
    """Sections of one title as one: shmem.h has types of teams at its beginning, and their functions further down."""
    by_title = {}
    for section in sections:
        first = by_title.setdefault(section.title, section)
        if first is not section:
            first.members += section.members
    return by_title.values()


class Pages:
    """The pages of the reference, made from the sections of all headers."""

    def __init__(self, include, xml):
        self.include = include
        self.sections = {}
        for header in dict.fromkeys(name for _, _, wanted in SUBJECTS.values() for name, _ in wanted):
            for section in headers.read(include, xml, header):
                if (header, section.title) not in LEFT_OUT:
                    self.sections.setdefault((header, section.title), []).append(section)
        every = itertools.chain.from_iterable(self.sections.values())
        self.names = {m.name for s in every for m in s.members if m.kind == "function"}
        self.linked = {name for names in self.by_family(self.names).values() if len(names) <= MANY for name in names}

    def take(self, header, title):
        wanted = [key for key in self.sections if key[0] == header and title in ("*", key[1])]
        if not wanted:
            raise SystemExit(f"build_site: include/{header} has no section '{title}'; correct SUBJECTS in scripts/site_pages/reference.py")
        return [section for key in wanted for section in self.sections.pop(key)]

    def by_family(self, names):
        grouped = {}
        for name in names:
            grouped.setdefault(headers.family(name, self.names), []).append(name)
        return grouped

    def families(self, members):
        of_name = {member.name: member for member in members}
        return {name: [of_name[one] for one in names] for name, names in self.by_family(of_name).items()}

    def entries(self, section):
        lines = (self.include / section.header).read_text(encoding="utf-8").splitlines()
        shown = [m for m in section.members if not (m.kind == "define" and UNSHOWN_DEFINES.search(m.name))]
        generated = section.header in ("weft/typed.h", "shmem.h", "pshmem.h")
        if generated:
            yield from (type_entry(m) for m in shown if m.kind != "function")
            for name, members in self.families(m for m in shown if m.kind == "function").items():
                title = heading(f"``{name}``", "~") if len(members) > MANY else []
                yield title + function_entry(members, described(name))
            return
        for group in paragraphs(shown, lines):
            if group[0].kind != "function":
                yield type_entry(group[0])
            elif text := self.comment_above(lines, group[0]):
                yield function_entry(group, words(text, self.linked))
            else:
                yield from (function_entry(members, "") for members in self.families(group).values())

    @staticmethod
    def comment_above(lines, member):
        """The comment that ends in the line above; a banner is not one."""
        end = member.line - 2
        if not lines[end].rstrip().endswith("*/"):
            return ""
        start = next(number for number in range(end, -1, -1) if lines[number].lstrip().startswith("/*"))
        return "" if lines[start].startswith("/* ----") else headers.comment_text(lines, start)

    def page(self, name):
        title, purpose, wanted = SUBJECTS[name]
        lines = heading(title, "=") + [purpose, ""]
        for header, section_title in wanted:
            for section in merged(self.take(header, section_title)):
                entries = list(self.entries(section))
                if not any(entries):
                    continue
                lines += heading(section.title or "Values", "-")
                if section.title and section.text.strip(".") != section.title:
                    lines += [words(section.text, self.linked), ""]
                lines += [f"Declared in ``<{header}>``.", ""]
                lines += itertools.chain.from_iterable(entries)
        return "\n".join(lines)

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in SUBJECTS:
            (folder / f"{name}.rst").write_text(self.page(name), encoding="utf-8")
        if self.sections:
            left = ", ".join(f"'{title}' of include/{header}" for header, title in self.sections)
            raise SystemExit(f"build_site: no subject has {left}; add it to SUBJECTS in scripts/site_pages/reference.py")
        lines = heading("Interface by subject", "=") + [INTRODUCTION, ".. list-table::", ""]
        for name, (title, purpose, _) in SUBJECTS.items():
            lines += [f"   * - :doc:`{title} <{name}>`", f"     - {purpose}"]
        lines += ["   * - :doc:`C++ <cxx>`", "     - RAII and spans over the C functions.",
                  "   * - :doc:`Kernels </docs/GPU>`", "     - What CUDA kernels call, from ``<weft/device.cuh>``.", "",
                  ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in SUBJECTS), "   cxx", ""]
        (folder / "index.rst").write_text("\n".join(lines), encoding="utf-8")
        (folder / "cxx.rst").write_text(CXX, encoding="utf-8")


INTRODUCTION = """Every function that ``libweft.so`` and ``libweft_moe.so`` export has an entry. What the words mean is in
:doc:`the glossary </docs/GLOSSARY>`; which order and visibility a program may rely on, in
:doc:`the memory model </docs/MEMORY_MODEL>`.
"""
CXX = """C++
===

``<weft/weft.hpp>`` is header-only, needs C++20, and adds no functionality to the C functions. Errors are thrown as
``weft::Exception``.

.. doxygenclass:: weft::Session
   :members:

.. doxygenclass:: weft::Exception
   :members:

.. doxygenclass:: weft::Context
   :members:

.. doxygenclass:: weft::SymmetricArray
   :members:
"""
