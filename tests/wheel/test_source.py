"""A wheel out of the sources alone, without git and without files of an earlier build: from a tarball of the tree by way of an sdist,
as an index has it. It holds the same files as the wheel that scripts/build_wheel makes in a checkout."""
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

LIMIT_S = 5400
"""Without a compiler cache everything is compiled once more."""


def git(project, *words):
    return subprocess.run(["git", "-C", project, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def tarball(project, tmp_path_factory):
    """Of the files that git knows, as they are now."""
    if not (project / ".git").exists():
        pytest.skip("these sources are not a git checkout")
    file = tmp_path_factory.mktemp("source") / "weft.tar"
    git(project, "archive", "--prefix=weft/", "-o", file, git(project, "stash", "create") or "HEAD")
    return file


@pytest.fixture(scope="module")
def built(tarball, project):
    """The folder with the sdist, and the wheel that was built from it."""
    with tarfile.open(tarball) as archive:
        archive.extractall(tarball.parent, filter="data")
    tree, out = tarball.parent / "weft", tarball.parent / "dist"
    backends = project / "build" / "nanobind-backends"
    environment = os.environ | {"CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, "-C", f"cmake.define.WEFT_NANOBIND_BACKENDS={backends}", tree]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return out


def names_in(wheel):
    """But the modules for Pythons without a GIL, which scripts/build_wheel adds, and the folders, which auditwheel does."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if not re.search(r"/_weft\.cpython-|\.dist-info/sboms/|/$", name)}


def test_it_has_the_same_files(built, wheel, request):
    if request.config.getoption("--cuda"):
        pytest.skip("it is built without CUDA")
    (ours,) = built.glob("*.whl")
    assert names_in(ours) == names_in(wheel)


def test_the_sdist_holds_no_generated_source(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("/scripts/interfaces/shmem_table.py") for name in names)
    assert not [name for name in names if "/generated/" in name or name.endswith("/pshmem.h")]
