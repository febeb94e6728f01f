"""A small system that has neither libfabric nor libpmix."""
import os
import re
import shutil

import pytest
from clean_run import run


def needed_files(program):
    return re.findall(r"(/\S+) \(0x", run("ldd", program).stdout)


class SmallSystem:
    """A root folder with some programs and the libraries that they are linked to, and nothing else."""

    def __init__(self, root, programs):
        self.root = root
        for folder in ("proc", "dev", "sys", "tmp", "etc", "bin"):
            (root / folder).mkdir(parents=True)
        for program in programs:
            shutil.copy2(program, root / "bin" / program.name)
            for file in needed_files(program):
                target = root / file.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)

    def run(self, *command, **variables):
        mounts = "; ".join(f"mount --rbind /{folder} {self.root}/{folder}" for folder in ("proc", "dev", "sys"))
        script = f'set -e; {mounts}; exec chroot {self.root} "$@"'
        namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        return run(*namespace, "sh", "-c", script, "sh", *command, **variables)


@pytest.fixture(scope="session")
def bare(tmp_path_factory, bin_dir):
    programs = [bin_dir / name for name in ("weft-info", "weft-run", "api_tour")]
    return SmallSystem(tmp_path_factory.mktemp("bare") / "root", programs)
