"""C and C++ as the rules see them: functions are found by lizard, types and their methods by following lizard's tokens
through the braces, which no released tool counts without compiling."""
import functools
import importlib
import itertools
import sys
from dataclasses import dataclass, field

from .tools import module_folder

SUFFIXES = {".c", ".h", ".hpp", ".cpp", ".cu", ".cuh"}
TYPE_WORDS = {"class", "struct", "union", "enum"}
SKIPPED_CALLS = {"alignas", "decltype", "__attribute__", "__align__", "__launch_bounds__", "noexcept", "requires"}
NO_METHOD = {"using", "typedef", "static_assert", "friend", "public", "protected", "private"}
OPENING, CLOSING = {"(": ")", "[": "]"}, {")", "]"}


@dataclass
class Type:
    name: str
    line: int
    outer: tuple  # the names of the types around it
    is_specialization: bool = False
    methods: list = field(default_factory=list)  # without what is defaulted, deleted or a base's


@functools.cache
def lizard():
    sys.path.append(str(module_folder("lizard")))
    return importlib.import_module("lizard")


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int  # with the head and the last brace
    parameters: int


def functions(text):
    """The functions with a body, as lizard finds them."""
    analyzer = lizard().FileAnalyzer(lizard().get_extensions([]))
    return [Function(found.name, found.start_line, found.end_line - found.start_line + 1, found.parameter_count)
            for found in analyzer.analyze_source_code("a.cpp", text).function_list]


def tokens(text):
    """(token, line), without space, comments and preprocessor lines."""
    lizard()
    line = 1
    for token in importlib.import_module("lizard_languages").CLikeReader.generate_tokens(text):
        if not token.isspace() and not token.startswith(("//", "/*", "#")):
            yield token, line
        line += token.count("\n")


def comments(text):
    """(line of its beginning, comment)."""
    lizard()
    line = 1
    for token in importlib.import_module("lizard_languages").CLikeReader.generate_tokens(text):
        if token.startswith(("//", "/*")):
            yield line, token
        line += token.count("\n")


def flat(head):
    """The head's tokens outside its brackets, template arguments and attributes; a pair of parentheses remains as "()"."""
    result, angles, position = [], 0, 0
    while position < len(head):
        token = head[position]
        if token in OPENING:
            end = closing(head, position)
            if head[position + 1:position + 2] == ["*"]:
                return result  # a pointer to a function
            if token == "(" and angles == 0 and (not result or result[-1] not in SKIPPED_CALLS):
                result.append("()")
            position = end
        elif token == "operator":
            end = next((i for i in range(position + 1, len(head)) if head[i] == "(" and i > position + 1), len(head))
            result.append("operator")
            position = end - 1
        elif token == "<":
            angles += 1
        elif token == ">":
            angles -= 1
        elif angles == 0:
            result.append(token)
        position += 1
    return result


def closing(head, position):
    depth = 0
    for end in range(position, len(head)):
        depth += (head[end] in OPENING) - (head[end] in CLOSING)
        if depth == 0:
            return end
    return len(head)


def type_name(words):
    """The name in the head of a type's definition; of A::B its last part; "" for an unnamed one."""
    start = max(position for position, word in enumerate(words) if word in TYPE_WORDS)
    after = list(itertools.takewhile(lambda word: word != ":", words[start + 1:]))
    names = [word for word in after if word.isidentifier() and word not in SKIPPED_CALLS | {"final"}]
    return names[-1] if names else ""


def qualifiers(words, name):
    """("A",) in `struct A::B {`."""
    at = words.index(name) if name else 0
    return (words[at - 2],) if at > 1 and words[at - 1] == "::" else ()


def is_specialized(head, name):
    return name in head and head[head.index(name) + 1:head.index(name) + 2] == ["<"]


class Walk:
    """Follows the braces of one file. `_open` holds what each open brace began: a Type, or the name of its kind."""

    def __init__(self, text):
        self.types = []
        self._open, self._head, self._line = [], [], 1
        for token, line in tokens(text):
            self._step(token, line)

    def _step(self, token, line):
        if token == "{":
            self._begin()
        elif token == "}":
            self._end()
        elif self._open and self._open[-1] in ("body", "values"):
            return
        elif token == ";":
            self._declare()
            self._head = []
        elif token == ":" and self._head and self._head[-1] in ("public", "protected", "private"):
            self._head = []
        else:
            if not self._head:
                self._line = line
            self._head.append(token)

    def _begin(self):
        words = flat(self._head)
        if self._open and self._open[-1] in ("body", "values"):
            self._open.append("values")
            return
        if "()" in words and "=" not in words[:words.index("()")]:
            initializes = ":" in words[words.index("()"):] and self._head[-1].isidentifier()
            self._open.append("values" if initializes else "body")
        elif TYPE_WORDS & set(words):
            self._open.append(self._add_type(words))
        else:
            self._open.append("scope" if {"namespace", "extern"} & set(words) else "values")
        if self._open[-1] == "body":
            self._declare()
        if self._open[-1] != "values":
            self._head = []

    def _add_type(self, words):
        name = type_name(words)
        outer = tuple(entry.name for entry in self._open if isinstance(entry, Type)) or qualifiers(words, name)
        self.types.append(Type(name, self._line, outer, is_specialized(self._head, name)))
        return self.types[-1]

    def _end(self):
        if self._open and self._open.pop() == "body":
            self._head = []

    def _declare(self):
        """A method, if the statement declares one directly in the body of a type."""
        owner = next((entry for entry in reversed(self._open) if entry != "body"), None)
        words = flat(self._head)
        if not isinstance(owner, Type) or "()" not in words or NO_METHOD & set(words[:1]):
            return
        before, after = words[:words.index("()")], words[words.index("()"):]
        if "=" not in before and "override" not in after and not {"default", "delete"} & set(after):
            owner.methods.append(before[-1] if before else "")


@functools.cache
def types(text):
    return Walk(text).types
