"""A copy of the tree, in which files are changed and single sources compiled, and programs of the build linked again.

One thread. Objects are kept as long as nothing that they were made of has changed. `Failed` says why something that was
added is not there."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

LEFT_OUT = ("bench/data/", "docs/images/", "tests/fixtures/", ".venv")


class Failed(Exception):
    pass


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Failed(f"{command[0]} {command[-1]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Scratch:
    def __init__(self, project, files, build_dir, folder):
        self.project, self.build_dir, self.tree = project, build_dir, folder / "tree"
        self._objects = folder / "objects"
        self._objects.mkdir(parents=True)
        self._made = {}  # (source, like) -> [({file: digest}, object)]
        self._before = {}  # what apply has changed: path -> text, or None
        commands = json.loads((build_dir / "compile_commands.json").read_text(encoding="utf-8"))
        self._commands = {entry["file"]: entry["command"] for entry in commands}
        for path in files:
            if not path.as_posix().startswith(LEFT_OUT):
                (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(project / path, self.tree / path)

    # ---- Files

    def read(self, path):
        return (self.tree / path).read_text(encoding="utf-8")

    def write(self, path, text):
        full = self.tree / path
        self._before.setdefault(path, full.read_text(encoding="utf-8") if full.exists() else None)
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text, encoding="utf-8")

    def reset(self):
        for path, text in self._before.items():
            if text is None:
                (self.tree / path).unlink(missing_ok=True)
            else:
                (self.tree / path).write_text(text, encoding="utf-8")
        self._before.clear()

    # ---- Programs

    def compile(self, source, like=None):
        """The object of `source`; flags are those of `like`, a source that the build has."""
        for digests, made in self._made.get((source, like), []):
            if all(self._digest(path) == digest for path, digest in digests.items()):
                return made
        made = self._objects / f"{len(list(self._objects.iterdir()))}.o"
        needed = made.with_suffix(".d")
        words = shlex.split(self._commands[str(self.project / (like or source))])
        words = words[:words.index("-o")]
        inside = re.compile(rf"{re.escape(str(self.project))}(?=$|/(?!build/))")
        words = [inside.sub(str(self.tree), word) for word in words]
        run([*words, "-g0", "-MMD", "-MF", needed, "-o", made, "-c", self.tree / source], cwd=self.build_dir)
        of = [word for word in needed.read_text(encoding="utf-8").replace("\\\n", " ").split()[1:]]
        self._made.setdefault((source, like), []).append(
            ({path: self._digest(path) for path in of if path.startswith(str(self.tree))}, made))
        return made

    @staticmethod
    def _digest(path):
        file = pathlib.Path(path)
        return hashlib.sha256(file.read_bytes()).digest() if file.exists() else None

    def link(self, target, objects, instead_of=()):
        """The program `target` of the build with these objects, which stand in for the build's own of the same definitions."""
        listed = run(["ninja", "-C", self.build_dir, "-t", "commands", target]).splitlines()[-1]
        words = shlex.split(listed.removeprefix(": && ").removesuffix(" && :"))
        at = words.index("-o")
        program = self._objects / f"{target}-{len(list(self._objects.iterdir()))}"
        kept = [word for word in words[:at] if not word.endswith(tuple(instead_of))] if instead_of else words[:at]
        run([*kept, *objects, "-o", program, *words[at + 2:]], cwd=self.build_dir)
        return program

    def pytest(self, *words, **environment):
        run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--basetemp", self._objects / "pytest", *words],
            cwd=self.tree, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment)
