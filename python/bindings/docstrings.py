"""docstrings.py STUB OUT: writes the docstrings of a stub as initializers of C++, for docstrings.cpp."""
import ast
import inspect
import pathlib
import sys


def docstrings(body, owner=""):
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if text := ast.get_docstring(node):
            yield owner + node.name, inspect.cleandoc(text)
        if isinstance(node, ast.ClassDef):
            yield from docstrings(node.body, f"{node.name}.")


def main(stub, out):
    tree = ast.parse(pathlib.Path(stub).read_text(encoding="utf-8"))
    lines = [f'{{"{name}", R"doc({text})doc"}},\n' for name, text in docstrings(tree.body)]
    pathlib.Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
