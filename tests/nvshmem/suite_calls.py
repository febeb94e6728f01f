"""suite_calls.h: how the renamed suite (renamed_suite.py) calls NVSHMEM where that takes more than the name.

A function that NVSHMEM's documentation has on a stream alone is called there and waited for. On shadows (shadow/shadow.h) each call
gives what the CPU has stored, passes real addresses, and reads what there is. With `on_stream`, every function that has a form
on a stream is called by it."""
import dataclasses
import re

PROTOTYPE = re.compile(r"^(\w[\w ]*?\s?\**)\b(nvshmemx?_\w+)\(([^()]*)\);", re.MULTILINE)
RMA = re.compile(r"^nvshmem_(?:\w+_)?(i?put|i?get)(mem|\d+)?(?:_signal)?(?:_nbi)?$")
ALLOCATIONS = {"nvshmem_malloc": "size", "nvshmem_calloc": "count * size", "nvshmem_align": "size"}
COMPLETE = {"nvshmem_quiet", "nvshmem_barrier_all", "nvshmem_barrier"}
ORDER = COMPLETE | {"nvshmem_fence", "nvshmem_sync_all", "nvshmem_sync", "nvshmem_team_sync"}
SYMMETRIC = {"dest", "source", "ivar", "ivars", "sig_addr"}
LOCAL = {"status": "nelems * sizeof *status", "cmp_values": "nelems * sizeof *cmp_values"}


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list  # (type, name)

    def head(self, name):
        return f"static inline {self.result}{'' if self.result.endswith('*') else ' '}{name}" \
               f"({', '.join(f'{kind}{name}' for kind, name in self.parameters) or 'void'})"


def prototypes(text):
    """{name: Function} of NVSHMEM's headers for the host."""
    found = {}
    for result, name, parameters in PROTOTYPE.findall(text):
        pairs = [re.match(r"(.*?)(\w+)$", one.strip()).groups() for one in parameters.split(",") if one.strip() != "void"]
        found[name] = Function(name, result.strip(), pairs)
    return found


def on_stream(name):
    return f"nvshmemx_{name.split('_', 1)[1]}_on_stream"


def bytes_of_local(name, parameter):
    """In C: how much of an operand a put or get touches."""
    kind, size = RMA.match(name).groups()
    element = f"sizeof *{parameter}" if size is None else "1" if size == "mem" else str(int(size) // 8)
    if not kind.startswith("i"):
        return f"nelems * {element}"
    stride = "dst" if parameter == "dest" else "sst"
    return f"(nelems ? (nelems - 1) * (size_t){stride} + 1 : 0) * {element}"


def argument(name, kind, parameter):
    """What stands for a parameter in the call on shadows."""
    if parameter in LOCAL:
        return f"({kind.strip()})shadow_in({parameter}, {LOCAL[parameter]})"
    if parameter not in SYMMETRIC:
        return parameter
    rma = RMA.match(name)
    if rma and parameter == "source" and rma[1].endswith("put"):
        return f"({kind.strip()})shadow_in({parameter}, {bytes_of_local(name, parameter)})"
    if rma and parameter == "dest" and rma[1].endswith("get"):
        return f"({kind.strip()})shadow_out({parameter}, {bytes_of_local(name, parameter)})"
    return f"({kind.strip()})shadow_real({parameter})"


def call(function, target, arguments, streams):
    """The line of the call, and what waits for its stream."""
    stream = ["(cudaStream_t)shadow_stream()"] if streams else []
    line = f"{target}({', '.join([*arguments, *stream])});"
    line = line if function.result == "void" else f"{function.result} result = {line}"
    return [line, *(["shadow_stream_wait();"] if streams else [])]


def on_shadows(function, target, streams):
    name = function.name
    arguments = [argument(name, kind, parameter) for kind, parameter in function.parameters]
    lines = ["shadow_push();"]
    blocks = not name.endswith("_nbi")
    if blocks and name not in COMPLETE:
        lines.append("const size_t mark = shadow_mark();")
    lines += call(function, target, arguments, streams)
    lines += ["shadow_return(0);" if name in COMPLETE else "shadow_return(mark);"] if blocks else []
    return [*lines, "shadow_pull();"]


def of_memory(function):
    """Allocation, freeing and ptr."""
    if function.name in ALLOCATIONS:
        given = ", ".join(name for _, name in function.parameters)
        return [f"void* real = {function.name}({given});", f"return shadow_added(real, {ALLOCATIONS[function.name]});"]
    if function.name == "nvshmem_free":
        return ["shadow_push();", "nvshmem_free(shadow_removed(ptr));", "shadow_pull();"]
    return ["shadow_push();", "void* real = nvshmem_ptr(shadow_real_or_same(dest), pe);", "return shadow_of_peer(dest, real);"]


def body(function, target, shadows, streams):
    if function.name in {*ALLOCATIONS, "nvshmem_free", "nvshmem_ptr"}:
        return of_memory(function)
    if shadows:
        lines = on_shadows(function, target, streams)
    else:
        lines = [f"{target}({', '.join([*(name for _, name in function.parameters), 'NULL'])});"]
        lines[0] = lines[0] if function.result == "void" else f"return {lines[0]}"
    return lines if function.result == "void" or not shadows else [*lines, "return result;"]


def header(used, known, shadows, streams):
    """The text of suite_calls.h for the names that the suite uses. `known`: prototypes()."""
    text = ["/* Generated by tests/nvshmem/suite_calls.py. */", "#pragma once", *(['#include "shadow.h"'] if shadows else [])]
    for name in sorted(used):
        target = on_stream(name)
        same = name in known and target in known and known[name].result == known[target].result  # signal_wait_until returns what it saw
        by_stream = target in known and (name not in known or (streams and same))
        if not by_stream and name not in known:
            continue  # a constant or a type
        known_as = known[target] if by_stream else known[name]
        function = Function(name, known_as.result, known_as.parameters[:-1] if by_stream else known_as.parameters)
        touches = name in ORDER or name in {*ALLOCATIONS, "nvshmem_free", "nvshmem_ptr"} or any(p in SYMMETRIC for _, p in function.parameters)
        if not by_stream and not (shadows and touches):
            continue
        lines = body(function, target if by_stream else name, shadows, by_stream)
        text += ["", f"{function.head(f'suite_{name}')} {{", *(f"  {line}" for line in lines), "}", f"#define {name} suite_{name}"]
    return "\n".join(text) + "\n"
