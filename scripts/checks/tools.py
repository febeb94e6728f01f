"""The programs and modules that the rules run, in the versions that scripts/requirements.txt pins. A rule names what it
needs (Rule.needs); only that is installed, into an environment of its own, unless .venv has it."""
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = PROJECT / "build" / "check-tools"
PLACES = (PROJECT / ".venv", ENVIRONMENT)
REQUIREMENTS = PROJECT / "scripts" / "requirements.txt"


def find(name):
    """The program, or the file of the pure Python module, of that name; None where it is not installed."""
    for place in PLACES:
        for found in [place / "bin" / name, *place.glob(f"lib/python3*/site-packages/{name}.py")]:
            if found.exists():
                return found
    return None


def pinned(name):
    (line,) = [line for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name}==")]
    return line


def install(names):
    """What of these is missing, without what they depend on: they need none of it here."""
    missing = [pinned(name) for name in sorted(names) if find(name) is None]
    if not missing:
        return
    print(f"scripts/check: installing {', '.join(missing)} into {ENVIRONMENT} ...", file=sys.stderr, flush=True)
    if not (ENVIRONMENT / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    command = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*command, "--no-deps", *missing], check=True)


def program(name):
    install([name])
    return find(name)


def module_folder(name):
    install([name])
    return next(found.parent for place in PLACES for found in place.glob(f"lib/python3*/site-packages/{name}.py"))
