"""Python and shell: they must at least parse; shellcheck looks deeper where it is installed."""
import shutil
import subprocess

from .tree import Finding, Rule


def find_python(tree):
    for path in tree.python():
        try:
            compile(tree.text(path), str(path), "exec")
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, error.msg)


def find_shell(tree):
    shellcheck = shutil.which("shellcheck")
    for path in tree.shell():
        parsed = subprocess.run(["bash", "-n", path], cwd=tree.root, capture_output=True, text=True)
        if parsed.returncode:
            yield Finding(path, 1, parsed.stderr.strip())
        elif shellcheck:
            checked = subprocess.run([shellcheck, "--format=gcc", path], cwd=tree.root, capture_output=True, text=True)
            for line in checked.stdout.splitlines():
                _, number, _, message = line.split(":", 3)
                yield Finding(path, int(number), message.strip())


def find_modules(tree):
    """pytest imports a test module by its file's name alone: the second of one name is not run."""
    first = {}
    for path in tree.files:
        if path.suffix == ".py" and path.name.startswith("test_") and first.setdefault(path.name, path) != path:
            yield Finding(path, 1, f"a module of the name of {first[path.name]}")


PYTHON = Rule("python", "Python files compile", "a script that few run breaks unseen", "repair the syntax", find_python)
SHELL = Rule(
    "shell",
    "shell scripts parse, and shellcheck has nothing to say where it is installed",
    "quoting mistakes show up on somebody else's machine",
    "follow shellcheck's advice",
    find_shell)
MODULES = Rule(
    "modules",
    "no two Python test modules have one name",
    "pytest stops at the second when both are in one run, as in CI",
    "name what the module tests",
    find_modules)
