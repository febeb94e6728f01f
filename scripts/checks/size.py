"""Sizes: lines of a file, lines of a function, parameters. Functions of C++ are found by following the
braces: formatted code needs no parser for that, and tests/scripts holds the cases it must get right."""
import ast
import collections
import re
from dataclasses import dataclass

from .tree import Finding, Rule

FILE_LINES_MAX = 500
TEST_FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6
METHODS_MAX = 25

NOISE = re.compile(
    r'R"(?P<raw>[^\s()\\]{0,16})\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
    r"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"^(?:template\b.*?>\s*|WEFT_\w+\s+|typedef\s+|inline\s+)*"
                   r'(?:namespace|class|struct|union|enum|extern\s*""|extern\s+C|export)\b', re.DOTALL)
CONTROL = re.compile(r"^(?:if|for|while|switch|do|else|return|try|catch)\b")
BODY = re.compile(
    r"\)\s*(?:(?:const|noexcept(?:\([^{]*\))?|override|final|mutable|try|&&?|requires[^{]*|->[^{;]+)\s*)*$", re.DOTALL)
NO_FUNCTION = ("using ", "typedef ", "static_assert", "friend class", "return ")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|alignas\s*\([^()]*\)|\bdecltype\s*\([^()]*\)", re.DOTALL)
TEMPLATE = re.compile(r"^\s*template\s*<[^{;]*?>\s*(?=[\w\[~:])", re.DOTALL)
PARAMETERS_OPEN = re.compile(r"(\boperator\s*(?:\(\)|[^\s\w(]+)|[~\w]+)\s*\(")
CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:alignas\s*\([^()]*\)\s*)?(\w+)")
SPECIAL = re.compile(r"=\s*(?:default|delete)\s*$")
OPERATOR = re.compile(r"\boperator\s*[^\s\w(]+")


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int  # 0 for a declaration
    parameters: int
    owner: str = ""  # the class in whose body it stands; empty for what is defaulted, deleted or a base's


def blank(match):
    """Takes comments, strings and preprocessor lines out, and keeps the line numbers."""
    text = match.group(0)
    return ('""' if text[0] in "\"R'" else "") + "\n" * text.count("\n")


def count_parameters(text):
    """The number of top-level commas, plus one; 0 for () and (void)."""
    depth, count, empty = 0, 1, True
    for position, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}" or (character == ">" and text[position - 1] != "-"):
            depth -= 1
            if depth < 0:
                break
        elif character == "," and depth == 0:
            count += 1
        if not character.isspace():
            empty = False
    return 0 if empty or text.lstrip().startswith("void)") else count


def describe(head):
    """Name and number of parameters of the function whose text up to `{` or `;` this is, if it is one."""
    head = TEMPLATE.sub("", ATTRIBUTE.sub("", head)).strip()
    if not BODY.search(head) or CONTROL.match(head) or head.startswith(NO_FUNCTION):
        return None
    if "=" in OPERATOR.sub("", head).split("(")[0]:
        return None
    found = PARAMETERS_OPEN.search(head)
    return (found.group(1), count_parameters(head[found.end():])) if found else None


class Scanner:
    """Walks the braces of one file. The stack holds what each open brace began."""

    def __init__(self, text):
        self.text = NOISE.sub(blank, text)
        self.functions = []
        self._stack = []  # (kind, line, head)
        self._head, self._line = "", 1

    def scan(self):
        for character in self.text:
            self._step(character)
            self._line += character == "\n"
        return self.functions

    def _inside(self, kind):
        return any(entry[0] == kind for entry in self._stack)

    def _step(self, character):
        if character == "{":
            self._open()
        elif character == "}":
            self._close()
        elif self._inside("function") or self._inside("values"):
            return
        elif character == ";":
            self._declaration()
            self._head = ""
        else:
            self._head += character

    def _open(self):
        head = self._head.strip()
        if self._inside("function") or self._inside("values"):
            kind = "block"
        elif SCOPE.match(head) and not BODY.search(head):
            kind = "scope"
        elif describe(head):
            kind = "function"
        else:
            kind = "values"  # an initializer: what stands before it goes on after it
        self._stack.append((kind, self._line, head))
        if kind != "values":
            self._head = ""

    def _close(self):
        if not self._stack:
            return
        kind, line, head = self._stack.pop()
        if kind == "function":
            self._add(head, line, self._line - line, self._owner(head))
        if kind != "values" and not self._inside("values"):
            self._head = ""

    def _declaration(self):
        owner = "" if SPECIAL.search(self._head) else self._owner(self._head)
        self._add(re.sub(r"=\s*(?:0|default|delete)\s*$", "", self._head), self._line, 0, owner)

    def _owner(self, head):
        """The innermost class that is open, if nothing else is open in it, and if the function is not its base's."""
        if re.search(r"\boverride\s*$", head):
            return ""
        found = CLASS.search(self._stack[-1][2]) if self._stack and self._stack[-1][0] == "scope" else None
        return found.group(1) if found else ""

    def _add(self, head, line, lines, owner):
        if described := describe(head):
            self.functions.append(Function(described[0], line, lines, described[1], owner))


def positional(node):
    """Arguments that a call has to give by position; those with a default are given by name."""
    return len(node.args.posonlyargs + node.args.args) - len(node.args.defaults)


def python_functions(text):
    try:
        nodes = ast.walk(ast.parse(text))
    except SyntaxError:
        return []
    return [Function(node.name, node.lineno, node.end_lineno - node.lineno, positional(node))
            for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def functions(tree):
    for path in tree.cxx():
        if not tree.generated(path):
            for function in Scanner(tree.text(path)).scan():
                yield path, function
    for path in tree.python():
        for function in python_functions(tree.text(path)):
            yield path, function


def find_long_files(tree):
    for path in {*tree.cxx(), *tree.python(), *tree.shell()}:
        limit = TEST_FILE_LINES_MAX if path.parts[0] == "tests" else FILE_LINES_MAX
        count = len(tree.lines(path))
        if count > limit and not tree.generated(path):
            yield Finding(path, limit, f"{count} lines, {limit} are the most")


def find_long_functions(tree):
    for path, function in functions(tree):
        if function.lines > FUNCTION_LINES_MAX:
            yield Finding(path, function.line, f"{function.name}: {function.lines} lines")


def find_parameters(tree):
    for path, function in functions(tree):
        if function.parameters > PARAMETERS_MAX:
            yield Finding(path, function.line, f"{function.name}: {function.parameters} parameters")


def find_large_classes(tree):
    for path in tree.cxx("src", "tools", "include", "loom"):
        if tree.generated(path):
            continue
        methods = collections.Counter(f.owner for f in Scanner(tree.text(path)).scan() if f.owner)
        for name, count in methods.items():
            if count > METHODS_MAX:
                yield Finding(path, 1, f"{name}: {count} methods, {METHODS_MAX} are the most")


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
    find_long_functions)
PARAMETERS = Rule(
    "parameters",
    f"a function has at most {PARAMETERS_MAX} parameters",
    "at a call nobody can tell the seventh from the sixth",
    "put what belongs together into a struct",
    find_parameters)
CLASS_SIZE = Rule(
    "classes",
    f"a class has at most {METHODS_MAX} methods, in whichever files they lie",
    "a class of thirty methods holds two ideas",
    "find the second idea, and give it a class of its own",
    find_large_classes)
