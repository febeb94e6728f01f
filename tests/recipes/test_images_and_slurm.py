"""Recipes for images and for Slurm: linters say nothing, every name in them exists. Nothing is built or downloaded."""
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

EDF_KEYS = {"image", "base_environment", "mounts", "workdir", "entrypoint", "writable", "env", "annotations"}
EDF_HOOKS = {"com.hooks.cxi.enabled", "com.hooks.netstack.source", "com.hooks.netstack.version", "com.hooks.netstack.name",
             "com.hooks.aws_ofi_nccl.enabled", "com.hooks.aws_ofi_nccl.variant"}
# Versions of a distribution's packages vanish from its mirrors with the next update, so those are
# not pinned.
UNPINNED_PACKAGES = "DL3008"
SETTING = re.compile(r"(?<!-D)\bWEFT_[A-Z_]*[A-Z]\b")
OURS = re.compile(r"(?:weft-(?:run|perf|info|top|plot|lab|cc|c\+\+)|osh\w+|loom)\b")


def tool(name):
    beside = pathlib.Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or pytest.skip(f"{name} is missing; scripts/setup installs it")


def says_nothing(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def containerfiles(deploy):
    return sorted(deploy.glob("*Containerfile"))


def test_hadolint_says_nothing(deploy):
    files = containerfiles(deploy)
    assert len(files) == 3
    says_nothing(tool("hadolint"), "--ignore", UNPINNED_PACKAGES, *files)


def test_hadolint_would_find_a_mistake(tmp_path):
    (tmp_path / "Containerfile").write_text("FROM debian\nRUN cd /tmp\n")
    done = subprocess.run([tool("hadolint"), tmp_path / "Containerfile"], capture_output=True, text=True, check=False)
    assert "DL3006" in done.stdout


def test_shellcheck_says_nothing(deploy):
    scripts = sorted(deploy.glob("*.sbatch"))
    assert len(scripts) == 2
    says_nothing(tool("shellcheck"), *scripts)


def test_shellcheck_says_nothing_about_the_shell_in_a_manifest(deploy, tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing; scripts/setup installs it")
    job, = yaml.safe_load((deploy / "jobset.yaml").read_text())["spec"]["replicatedJobs"]
    container, = job["template"]["spec"]["template"]["spec"]["containers"]
    (tmp_path / "command.sh").write_text(container["args"][0])
    says_nothing(tool("shellcheck"), "--shell=bash", tmp_path / "command.sh")


MACHINE = re.compile(r"x86[_-]64|amd64|aarch64|arm64|sbsa|-m64|/lib64\b", re.IGNORECASE)


def machines_in(text):
    """What ties an image to one kind of machine. Comments may name them."""
    return [line for line in text.splitlines() if not line.startswith("#") and MACHINE.search(line)]


def test_images_are_for_x86_64_and_aarch64_alike(deploy):
    for path in containerfiles(deploy):
        assert machines_in(path.read_text()) == [], path.name


@pytest.mark.parametrize("line", [
    "FROM --platform=linux/amd64 debian:12", "RUN curl -O https://example.org/tool-x86_64.tar.gz",
    "RUN echo /usr/lib/x86_64-linux-gnu >>/etc/ld.so.conf.d/weft.conf", "ENV LD_LIBRARY_PATH=/usr/local/cuda/targets/sbsa-linux/lib"])
def test_a_line_for_one_kind_of_machine_is_found(line):
    assert machines_in(f"FROM debian:12\n{line}\n# on aarch64, too\n") == [line]


def test_images_take_the_versions_of_the_list(deploy, versions):
    for path in containerfiles(deploy):
        for name, value in re.findall(r"^ARG (\w+)=(\S+)", path.read_text(), re.MULTILINE):
            if name in versions:
                assert value == versions[name], f"{path.name}: {name}"
    major, minor, _ = map(int, versions["EFA_INSTALLER"].split("."))
    assert (major, minor) >= (1, 47)
    assert versions["GDRCOPY"].startswith("v2.5")


def test_every_version_is_used_by_a_recipe(deploy, versions):
    text = "".join(path.read_text() for path in deploy.iterdir() if path.name != "versions.env")
    for name, value in versions.items():
        assert f"ARG {name}=" in text or value in text or name == "KUBERNETES", name


def test_every_setting_exists(deploy, settings):
    assert len(settings) > 30
    for path in deploy.iterdir():
        unknown = set(SETTING.findall(path.read_text())) - settings
        assert not unknown, f"{path.name}: {unknown}"


def test_every_program_is_one_that_is_installed(deploy, installed):
    assert {"weft-run", "weft-perf", "weft-info", "weft-top", "oshrun"} <= installed
    named = set()
    for path in deploy.iterdir():
        named |= set(OURS.findall(path.read_text()))
    assert "weft-perf" in named
    assert named <= installed, named - installed


def test_every_benchmark_is_one_that_weft_perf_has(deploy, bin_dir):
    program = bin_dir / "weft-perf"
    if not program.exists():
        pytest.skip("weft-perf is not built")
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
    for path in deploy.glob("*.sbatch"):
        for name in re.findall(r"weft-perf (?:device )?(\w+)", path.read_text()):
            assert re.search(rf"\b{name}\b", known), f"{path.name}: {name}"


def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def edf_errors(text):
    """What the container engine would not understand."""
    table = tomllib.loads(text)
    errors = [f"unknown key {key}" for key in table if key not in EDF_KEYS]
    errors += [f"{key} is no string" for part in ("env", "annotations") for key, value in flat(table.get(part, {})) if not isinstance(value, str)]
    return errors + [f"unknown hook {key}" for key, _ in flat(table.get("annotations", {})) if key not in EDF_HOOKS]


def test_the_edf_has_strings_only_and_known_hooks(deploy):
    assert edf_errors((deploy / "weft.edf.toml").read_text()) == []


@pytest.mark.parametrize(("line", "error"), [
    ('imgae = "x"', "unknown key imgae"), ("[env]\nWEFT_LOG = 1", "WEFT_LOG is no string"),
    ('[annotations]\ncom.hooks.cxy.enabled = "true"', "unknown hook com.hooks.cxy.enabled")])
def test_a_mistake_in_an_edf_is_found(line, error):
    assert edf_errors(line) == [error]


def test_slurm_scripts_check_the_nodes_before_they_measure(deploy):
    for path in deploy.glob("*.sbatch"):
        commands = [line for line in path.read_text().splitlines() if line.startswith("run ")]
        assert "weft-info --doctor" in commands[0] and "--ntasks-per-node=1" in commands[0], path.name
        assert "--mpi=pmix" in path.read_text()
