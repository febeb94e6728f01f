"""The lab as a user without privileges. Run by root, it takes an unused uid; run by a user, it is that user."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lab_cli import LAB, Cli

UNUSED_ID = "54321"


def unprivileged(directory):
    """weft-lab as a user who is not root."""
    if os.geteuid() != 0:
        return Cli(directory)
    if not shutil.which("setpriv"):
        pytest.skip("setpriv (util-linux) is not there to become another user")
    os.chown(directory, int(UNUSED_ID), int(UNUSED_ID))
    prefix = ["setpriv", "--reuid", UNUSED_ID, "--regid", UNUSED_ID, "--clear-groups"]
    packages = str(Path(sys.modules["pyroute2"].__file__).parents[1]) if "pyroute2" in sys.modules else ""
    for interpreter in (sys.executable, shutil.which("python3", path="/usr/bin:/bin")):
        made = Cli(directory, prefix, (interpreter,), {"PYTHONPATH": packages, "HOME": "/nonexistent"})
        # The access check: setpriv still starts with root's rights what its user may not start.
        source = str(LAB / "weft_lab" / "cli.py")
        program = f"import os, sys, pyroute2; os.stat({source!r}); assert os.access(sys.executable, os.X_OK)"
        check = [*prefix, str(interpreter), "-c", program]
        try:
            if subprocess.run(check, env=made.environment, capture_output=True, check=False).returncode == 0:
                return made
        except OSError:
            continue
    pytest.skip("no Python with pyroute2 that another user may run")


@pytest.fixture
def rootless(tmp_path_factory):
    import pyroute2  # noqa: F401 - its place is what another interpreter needs

    # Not below pytest's own directory, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="weft-lab-test-") as directory:
        made = unprivileged(directory)
        yield made
        made.end_all()


def test_a_user_without_privileges_gets_a_working_lab(rootless):
    rootless.start("--hosts", "2", "--nics", "2", "--rate", "40mbit")
    assert "user namespace" in rootless.ok("list")
    assert rootless.ok("selftest").splitlines()[-1] == "selftest: ok, 4 NICs"
    assert rootless.ok("run", "--host", "1", "--", "sh", "-c", "id -u").strip() == "0"
    rootless.ok("nic", "rate", "0", "0", "10mbit")
    rootless.ok("nic", "down", "0", "1")
    rootless.ok("nic", "up", "0", "1")
    rootless.ok("down")


def test_weft_lab_works_inside_weft_lab_run(rootless):
    rootless.start("--hosts", "2", "--nics", "1")
    nested = [*rootless.inner_command, "run", "--host", "0", "--", "echo", "inside"]
    assert rootless.ok("run", "--", *nested) == "inside\n"


def test_where_namespaces_are_forbidden_up_ends_with_status_three_and_one_line(rootless):
    # A user namespace of its own has limits of its own (namespaces(7), /proc/sys/user): here, none
    # are left.
    script = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    made = subprocess.run(
        [*rootless.command[: -len(rootless.inner_command)], "unshare", "-Ur", "sh", "-c", script, "sh"]
        + [*rootless.inner_command, "up", "--hosts", "1", "--nics", "1"],
        env=rootless.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in made.stderr or "/proc/sys" in made.stderr:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 3, made.stderr
    assert "max_net_namespaces" in made.stderr and len(made.stderr.splitlines()) == 1
