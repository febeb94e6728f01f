"""The packages that the images install exist for aarch64. Asks Debian's mirror; Ubuntu's packages have the same names."""
import re
import subprocess

import pytest

CONTAINERFILES = ("Containerfile", "efa.Containerfile", "slingshot.Containerfile")


def packages(text):
    """The names after each `apt-get install`."""
    joined = text.replace("\\\n", " ")
    found = []
    for words in re.findall(r"apt-get install ([^&|;\n]*)", joined):
        found += [word for word in words.split() if not word.startswith("-")]
    return found


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """known(NAME...): those that an aarch64 Debian has. apt has lists of its own, as in scripts/sysroot."""
    state = tmp_path_factory.mktemp("apt")
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True)
    (state / "status").touch()
    options = ["APT::Architecture=arm64", "APT::Architectures=arm64", f"Dir::State={state}", f"Dir::State::status={state}/status",
               f"Dir::Cache={state}/cache", "Debug::NoLocking=1", "APT::Sandbox::User=", "Acquire::Languages=none"]
    words = [word for option in options for word in ("-o", option)]
    subprocess.run(["apt-get", "-qq", *words, "update"], check=True, timeout=300)

    def ask(names):
        done = subprocess.run(["apt-cache", *words, "show", *names], capture_output=True, text=True, timeout=60, check=False)
        return set(re.findall(r"^Package: (\S+)$", done.stdout, re.MULTILINE))

    return ask


@pytest.mark.parametrize("file", CONTAINERFILES)
def test_every_package_exists(project, known, file):
    names = packages((project / "deploy" / file).read_text())
    assert {"cmake", "libhwloc-dev"} <= set(names)
    assert set(names) - known(names) == set()


def test_a_package_that_does_not_exist_is_found(known):
    assert known(["cmake", "libhwlock-dev"]) == {"cmake"}
