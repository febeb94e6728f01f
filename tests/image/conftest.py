"""A clean system of this distribution, made locally, and out of it the CPU image of deploy/. Needs root and the distribution's
mirror; a suite of its own, since it takes minutes."""
import os
import pathlib
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = map(str, (HERE, TESTS / "slurm", TESTS / "lab", TESTS.parent / "tools" / "lab"))

from image_run import run  # noqa: E402: the path above comes first
from slurm_cluster import running_cluster  # noqa: E402: the path above comes first

BASE = "localhost/weft-base"
IMAGE = "localhost/weft"


def apt_sources():
    folder = pathlib.Path("/etc/apt/sources.list.d")
    found = [pathlib.Path("/etc/apt/sources.list"), *folder.glob("*.sources"), *folder.glob("*.list")]
    return [path for path in found if path.exists() and path.read_text().strip()]


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """A tar file of the distribution's smallest system with apt."""
    if os.geteuid() != 0:
        pytest.skip("a clean system is made by root")
    if not shutil.which("mmdebstrap"):
        pytest.skip("mmdebstrap is missing; apt-get install mmdebstrap")
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    file = tmp_path_factory.mktemp("base") / "base.tar"
    run("mmdebstrap", "--variant=minbase", "--include=ca-certificates", release["VERSION_CODENAME"], file, *apt_sources())
    return file


class Container:
    """A root folder whose programs run with this machine's network, processes and devices, as enroot and the CSCS engine do."""

    def __init__(self, root, script):
        self.root = root
        self.script = script
        script.write_text(
            "#!/bin/sh\n"
            f"exec unshare --mount sh -c '\n"
            "set -e\n"
            f"for folder in dev proc sys ${{PMIX_SERVER_TMPDIR:-}}; do\n"
            f'  mkdir -p "{root}/$folder"\n'
            f'  mount --rbind "/$folder" "{root}/$folder"\n'
            "done\n"
            f'exec chroot {root} /usr/bin/env PATH=/opt/weft/bin:/usr/bin:/bin "$@"\' sh "$@"\n'
        )
        script.chmod(0o755)

    def run(self, *command, **variables):
        return run(self.script, *command, env={"PATH": os.environ["PATH"], "HOME": "/root", **variables})


@pytest.fixture(scope="session")
def clean_system(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    root = folder / "root"
    root.mkdir()
    run("tar", "-xf", base, "-C", root)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    return Container(root, folder / "enter")


def ccache_folder():
    folder = pathlib.Path(run("ccache", "--get-config", "cache_dir").strip())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_base(buildah, system, folder):
    """The image BASE, of a tar file. It trusts whom this machine's administrator trusts: a proxy may stand before the network."""
    folder.mkdir()
    trusted = pathlib.Path("/usr/local/share/ca-certificates")
    shutil.copytree(trusted, folder / "trusted") if trusted.exists() else (folder / "trusted").mkdir()
    os.link(system, folder / "base.tar")
    (folder / "Containerfile").write_text(
        f"FROM scratch\nADD base.tar /\nCOPY trusted {trusted}\nRUN update-ca-certificates\n"
    )
    run(*buildah, "build", "--isolation", "chroot", "--tag", BASE, "--file", folder / "Containerfile", folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def image(base, project, tmp_path_factory):
    """The CPU image of deploy/Containerfile, built from what is committed, and mounted."""
    if not shutil.which("buildah"):
        pytest.skip("buildah is missing; apt-get install --no-install-recommends buildah crun")
    folder = tmp_path_factory.mktemp("image")
    buildah = ["buildah", "--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "overlay"]
    source = folder / "source"
    run("git", "clone", "--quiet", "--no-hardlinks", project, source)
    make_base(buildah, base, folder / "base")
    run(*buildah, "build", "--isolation", "chroot", "--format", "docker", "--volume", f"{ccache_folder()}:/root/.cache/ccache",
        "--tag", IMAGE, "--build-arg", f"BASE={BASE}", "--file", source / "deploy" / "Containerfile", source)
    container = run(*buildah, "from", IMAGE).split()[-1]
    root = run(*buildah, "mount", container).split()[-1]
    yield Container(pathlib.Path(root), folder / "enter")
    run(*buildah, "umount", container)
    run(*buildah, "rm", container)
    run(*buildah, "rmi", "--all", "--force")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    yield from running_cluster(tmp_path_factory.mktemp("slurm"))
