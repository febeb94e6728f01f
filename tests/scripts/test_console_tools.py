"""Each tool of the command line names an option that it does not know, and says its version.

The tools are those of the build that is tested; one that it does not have is skipped with that reason.
"""
import os
import re
import subprocess

import pytest

TOOLS = ("weft-run", "weft-perf", "weft-info", "weft-sim", "weft-top", "weft-plot", "weft-lab", "loom", "oshrun")
NVSHMEM_TOOLS = ("nvshmrun", "nvshmem-info", "weft-nvshmem")


@pytest.fixture
def run_tool(project, bin_dir, build_dir):
    def run(tool, *words):
        kind = tool.removeprefix("weft-")
        places = [bin_dir / tool, build_dir / "nvshmem" / "bin" / tool, project / "tools" / kind / tool]
        program = next((place for place in places if place.exists()), None)
        if program is None:
            pytest.skip(f"this build has no {tool}")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "NVSHMEM_"))}
        return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, env=clean)
    return run


@pytest.fixture
def version(project):
    return re.search(r"^project\(weft VERSION ([\d.]+)", (project / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize("tool", [*TOOLS, *NVSHMEM_TOOLS])
def test_an_option_that_there_is_not_is_named(run_tool, tool):
    done = run_tool(tool, "--bogus")
    assert done.returncode == 2 and done.stdout == "", done
    said = done.stderr.splitlines()[-1]
    assert "--bogus" in said and "last word" not in said, done.stderr


@pytest.mark.parametrize("tool", ["oshrun", "nvshmrun"])
def test_a_launcher_names_it_also_before_a_program(run_tool, tool):
    done = run_tool(tool, "--bogus", "true")
    assert done.returncode == 2 and "--bogus" in done.stderr, done.stderr


@pytest.mark.parametrize("side", ["device", "stream"])
def test_weft_perf_names_it_behind_a_side_too(run_tool, side):
    done = run_tool("weft-perf", side, "--bogus")
    assert done.returncode == 2 and "--bogus" in done.stderr, done.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_the_version_is_that_of_the_project(run_tool, tool, version):
    done = run_tool(tool, "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{'weft-run' if tool == 'oshrun' else tool} {version}\n"


@pytest.mark.parametrize("tool", NVSHMEM_TOOLS)
def test_tools_of_nvshmem_say_a_version_too(run_tool, tool):
    done = run_tool(tool, "--version")
    assert done.returncode == 0 and re.search(r"\d+\.\d+", done.stdout), done


@pytest.mark.parametrize("tool", ["weft-perf", "weft-sim", "weft-plot", "weft-lab", "loom"])
def test_a_tool_that_is_told_nothing_says_what_it_needs(run_tool, tool):
    done = run_tool(tool)
    assert done.returncode == 2 and f"{tool} --help lists" in done.stderr, done.stderr
