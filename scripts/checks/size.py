"""Sizes: lines of a file, lines and parameters of a function, methods of a class. Functions of C++ are lizard's; clang-tidy
has the same limits (.clang-tidy) and sees through macros and templates, but compiles. Python is parsed by Python."""
import ast
import collections
import functools
import re

from . import cxx
from .tree import Finding, Rule

FILE_LINES_MAX = 500
TEST_FILE_LINES_MAX = 800
REASONED_LINES_MAX = 700  # in moe/src/gpu, where a reader compares protocols: "N lines, as ..." at the top says why
REASON = re.compile(r"\d+ lines, as \w")
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6
METHODS_MAX = 25
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# What is over a limit, and why it stays so.
ALLOWED = {
    "cudaMemcpy2D": "CUDA's own function, which the emulated GPU provides",
    "cudaMemcpy2DAsync": "as cudaMemcpy2D",
    "weft::plugins::nvshmem::rma": "NVSHMEM's own signature of what it calls in a transport",
    "weft::plugins::nvshmem::put_signal": "as rma",
    "GpuExchange": "of weft.moe, which moves into a folder of its own and is divided there",
    "Exchange": "as GpuExchange",
    "Commands": "weft-top's commands, each a key and a short method; a dispatch table, not a second idea",
}


def positional(node):
    """Arguments that a call has to give by position; those with a default are given by name."""
    return len(node.args.posonlyargs + node.args.args) - len(node.args.defaults)


@functools.cache
def python_nodes(text):
    try:
        return list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []  # the rule `python` reports it


def python_functions(text):
    return [cxx.Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, positional(node))
            for node in python_nodes(text) if isinstance(node, DEFINITIONS)]


@functools.cache
def functions(tree):
    """(path, function) of the whole tree."""
    found = {path: cxx.functions(tree.text(path)) for path in tree.cxx() if not tree.generated(path)}
    found |= {path: python_functions(tree.text(path)) for path in tree.python() if not tree.generated(path)}
    return [(path, function) for path, all_of in found.items() for function in all_of]


def lines_max(tree, path):
    if "tests" in path.parts[:2]:
        return TEST_FILE_LINES_MAX
    if path.parts[:3] == ("moe", "src", "gpu"):
        opening = " ".join(line.strip("/ ") for line in tree.lines(path)[:30] if line.startswith("//"))
        if REASON.search(opening):
            return REASONED_LINES_MAX
    return FILE_LINES_MAX


def find_long_files(tree):
    for path in {*tree.cxx(), *tree.python(), *tree.shell()}:
        limit = lines_max(tree, path)
        count = len(tree.lines(path))
        if count > limit and not tree.generated(path):
            yield Finding(path, limit, f"{count} lines, {limit} are the most")


def find_long_functions(tree):
    for path, function in functions(tree):
        if function.lines > FUNCTION_LINES_MAX:
            yield Finding(path, function.line, f"{function.name}: {function.lines} lines")


def find_parameters(tree):
    for path, function in functions(tree):
        if function.parameters > PARAMETERS_MAX and function.name not in ALLOWED:
            yield Finding(path, function.line, f"{function.name}: {function.parameters} parameters")


def python_classes(text):
    """(name, line, number of methods), properties included."""
    for node in python_nodes(text):
        if isinstance(node, ast.ClassDef):
            names = {child.name for child in node.body if isinstance(child, DEFINITIONS)}  # a setter is no second method
            yield node.name, node.lineno, len(names)


def classes(tree):
    for path in tree.cxx("src", "tools", "include", "loom", "python", "moe"):
        if not tree.generated(path):
            methods, lines = collections.Counter(), {}
            for found in cxx.types(tree.text(path)):
                if found.name and not found.is_specialization:
                    methods[found.name] += len(found.methods)
                    lines.setdefault(found.name, found.line)
            for name, count in methods.items():
                yield path, name, lines[name], count
    for path in tree.python():
        if path.parts[0] != "tests" and not tree.generated(path):
            for name, line, count in python_classes(tree.text(path)):
                yield path, name, line, count


def find_large_classes(tree):
    for path, name, line, count in classes(tree):
        if count > METHODS_MAX and name not in ALLOWED:
            yield Finding(path, line, f"{name}: {count} methods, {METHODS_MAX} are the most")


FILE_SIZE = Rule(
    "files",
    f"a file has at most {FILE_LINES_MAX} lines, a test {TEST_FILE_LINES_MAX}; generated ones are exempt",
    "one file holds one idea",
    "split it by idea; name the parts after what they do",
    find_long_files)
FUNCTION_SIZE = Rule(
    "functions",
    f"a function has at most {FUNCTION_LINES_MAX} lines (mostly under 30)",
    "what fits on a screen can be checked by reading",
    "give its steps names of their own",
    find_long_functions,
    needs=("lizard",))
PARAMETERS = Rule(
    "parameters",
    f"a function has at most {PARAMETERS_MAX} parameters",
    "at a call nobody can tell the seventh from the sixth",
    "put what belongs together into a struct",
    find_parameters,
    needs=("lizard",))
CLASS_SIZE = Rule(
    "classes",
    f"a class has at most {METHODS_MAX} methods, in whichever files they lie",
    "a class of thirty methods holds two ideas",
    "find the second idea, and give it a class of its own",
    find_large_classes,
    needs=("lizard",))
