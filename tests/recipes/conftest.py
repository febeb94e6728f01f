"""What the recipes may refer to: the settings of Weft, the programs that it installs, the versions of deploy/versions.env."""
import re

import pytest


@pytest.fixture(scope="session")
def deploy(project):
    return project / "deploy"


@pytest.fixture(scope="session")
def settings(project):
    return set(re.findall(r"^\| `(WEFT_\w+)`", (project / "docs" / "ENV.md").read_text(), re.MULTILINE))


@pytest.fixture(scope="session")
def installed(build_dir):
    """The names that `cmake --install` puts into bin, also of tools that this build has left out."""
    names = set()
    for script in build_dir.rglob("cmake_install.cmake"):
        for line in script.read_text().splitlines():
            if 'INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/bin"' in line:
                names |= {path.rpartition("/")[2] for path in re.findall(r'"([^"]+)"', line.partition(" FILES ")[2])}
    return names


@pytest.fixture(scope="session")
def versions(deploy):
    lines = (line for line in (deploy / "versions.env").read_text().splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)
