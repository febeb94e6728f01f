"""weft-nvshmem --plugin: the lines that switch Weft's rails on for NVIDIA's NVSHMEM, and what --check says of a program."""
import os
import shlex
import shutil
import sys

import pytest

import emulated_host
from nvshmem_runs import run, well

OFF = {"LD_PRELOAD": "", "NVSHMEM_REMOTE_TRANSPORT": "libfabric", "NVSHMEM_IB_ENABLE_IBGDA": "", "NVSHMEM_HEAP_KIND": "SYSMEM"}
TAKES = 'verdict:   uses Weft\'s rails after: eval "$(weft-nvshmem --plugin)"'
TAKES_NOT = "verdict:   does not use Weft's rails"


@pytest.fixture
def weft(bin_dir, tmp_path):
    return emulated_host.installation(tmp_path / "prefix", bin_dir)


@pytest.fixture
def lines(weft):
    """lines(VARIABLE=value...): the variables that are exported."""
    def ask(**variables):
        text = well(weft / "bin" / "weft-nvshmem", "--plugin", **OFF | variables)
        words = [shlex.split(line) for line in text.splitlines()]
        assert all(word[0] == "export" and len(word) == 2 for word in words)
        return dict(word[1].split("=", 1) for word in words)
    return ask


@pytest.fixture
def check(weft):
    """check(program, VARIABLE=value...): the exit status, the lines, and the problems among them."""
    def ask(*program, **variables):
        done = run(weft / "bin" / "weft-nvshmem", "--plugin", "--check", *program, **OFF | variables)
        assert done.stderr == "", done.stderr
        found = done.stdout.splitlines()
        return done.returncode, found, [line.removeprefix("problem:   ") for line in found if line.startswith("problem:")]
    return ask


@pytest.fixture
def program(tmp_path):
    return emulated_host.program(tmp_path / "program", emulated_host.host(tmp_path / "theirs", interfaces=(7,)))


# ---- The lines.


def test_the_lines_put_all_five_files_before_what_is_preloaded_already(lines, weft):
    folder = weft / "lib" / "weft" / "nvshmem" / "transport"
    ours = [f"{folder}/nvshmem_transport_libfabric.so.{number}" for number in emulated_host.INTERFACES]
    assert lines() == {"LD_PRELOAD": ":".join(ours), "NVSHMEM_REMOTE_TRANSPORT": "libfabric"}
    assert lines(LD_PRELOAD="libm.so.6 libdl.so.2:libc.so.6")["LD_PRELOAD"].split(":") == [*ours, "libm.so.6", "libdl.so.2", "libc.so.6"]


def test_the_lines_twice_are_the_lines_once(lines):
    once = lines(LD_PRELOAD="libm.so.6")
    assert lines(**once) == once


def test_ibgda_is_switched_off_with_a_word(weft, lines):
    assert "NVSHMEM_IB_ENABLE_IBGDA" not in lines(NVSHMEM_IB_ENABLE_IBGDA="0")
    assert lines(NVSHMEM_IB_ENABLE_IBGDA="1")["NVSHMEM_IB_ENABLE_IBGDA"] == "0"
    done = run(weft / "bin" / "weft-nvshmem", "--plugin", **OFF | {"NVSHMEM_IB_ENABLE_IBGDA": "true"})
    assert done.stderr.startswith("weft-nvshmem: NVSHMEM_IB_ENABLE_IBGDA is switched off: ")


def test_without_the_plugin_the_evaluated_lines_fail(weft):
    (weft / "lib" / "libweft_nvshmem_transport.so").unlink()
    done = run("bash", "-c", f'eval "$({weft}/bin/weft-nvshmem --plugin)"', **OFF)
    assert done.returncode == 1 and "libweft_nvshmem_transport.so is missing; " in done.stderr


def test_a_folder_that_ld_preload_cannot_name_is_refused(bin_dir, tmp_path):
    weft = emulated_host.installation(tmp_path / "a b", bin_dir)
    done = run(weft / "bin" / "weft-nvshmem", "--plugin", **OFF)
    assert done.returncode == 1 and "because of the space or colon" in done.stderr


@pytest.mark.parametrize("words", [["--plugin", "--chek"], ["--plugin", "--check"], ["--plugin", "--check", "/no/program"]])
def test_wrong_words_are_answered_with_status_2(weft, words):
    done = run(weft / "bin" / "weft-nvshmem", *words, **OFF)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


# ---- What is said of programs.


def test_a_program_with_a_host_library_takes_it(check, program, tmp_path):
    status, found, problems = check(program, "--its-own", "argument")
    assert (status, problems, found[-1]) == (0, [], TAKES)
    assert f"NVSHMEM:   {tmp_path}/theirs/libnvshmem_host.so.3 (loaded), release 3.8.0, transport interface 7" in found
    assert any(line.startswith("preload:") and "transport_libfabric.so.7, in place of" in line for line in found)


def test_the_release_tells_the_interface_where_no_file_does(check, tmp_path):
    program = emulated_host.program(tmp_path / "program", emulated_host.host(tmp_path / "theirs", release="3.6.5", interfaces=()))
    status, found, problems = check(program)
    assert (status, problems) == (0, []) and any("release 3.6.5, transport interface 5" in line for line in found)


def test_a_statically_linked_host_library_takes_it(check, tmp_path):
    status, found, problems = check(emulated_host.static_program(tmp_path / "program", "3.7.2"))
    assert (status, problems) == (0, []) and any("linked statically" in line and "transport interface 6" in line for line in found)


def test_a_program_without_nvshmem_does_not(check):
    status, found, problems = check("/bin/true")
    assert status == 1 and found[-1] == TAKES_NOT
    assert len(problems) == 1 and "/bin/true loads no NVSHMEM; if it is a launcher" in problems[0]


@pytest.mark.parametrize("release, interfaces, what", [("3.9.0", (8,), "has transport interface 8, and this Weft supports 3 to 7"),
                                                       ("4.0.0", (), "which transport interface")])
def test_a_release_that_is_not_known_does_not(check, tmp_path, release, interfaces, what):
    program = emulated_host.program(tmp_path / "program", emulated_host.host(tmp_path / "theirs", release, interfaces))
    status, _, problems = check(program)
    assert status == 1 and len(problems) == 1 and what in problems[0]


def test_a_program_that_needs_a_host_library_that_is_gone_does_not(check, program, tmp_path):
    (tmp_path / "theirs" / "libnvshmem_host.so.3").unlink()
    status, _, problems = check(program)
    assert status == 1 and len(problems) == 1 and "which the loader does not find; set LD_LIBRARY_PATH" in problems[0]


def test_a_program_on_wefts_own_nvshmem_does_not_need_it(check, tmp_path):
    (tmp_path / "ours").mkdir()
    library = emulated_host.shared(tmp_path / "ours", "libweft_nvshmem_host.so.3", "int emulated_init(int n) { return n; }\n", "-Wl,-soname,libweft_nvshmem_host.so.3")
    status, _, problems = check(emulated_host.program(tmp_path / "program", library))
    assert status == 1 and len(problems) == 1 and "is built against Weft's NVSHMEM" in problems[0]


def test_a_program_without_the_loader_does_not(check, tmp_path):
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    if run("cc", "-static", tmp_path / "x.c", "-o", tmp_path / "x").returncode != 0:
        pytest.skip("no libc.a: install libc6-dev")
    status, _, problems = check(tmp_path / "x")
    assert status == 1 and "linked without the dynamic loader" in problems[0]


def test_a_program_with_rights_of_its_own_does_not(check, program):
    program.chmod(0o4755)
    status, _, problems = check(program)
    assert status == 1 and len(problems) == 1 and "(setuid)" in problems[0]


def test_a_shell_script_is_not_looked_into(check, tmp_path):
    (tmp_path / "job.sh").write_text("#!/bin/bash\n./program\n")
    (tmp_path / "job.sh").chmod(0o755)
    status, _, problems = check(tmp_path / "job.sh")
    assert status == 1 and problems[0].endswith("is a script of /bin/bash; name the program that it starts")


@pytest.mark.parametrize("variables, what", [({"NVSHMEM_IB_ENABLE_IBGDA": "1"}, "NVSHMEM_IB_ENABLE_IBGDA is on"),
                                             ({"NVSHMEM_REMOTE_TRANSPORT": "ibrc"}, "NVSHMEM_REMOTE_TRANSPORT is ibrc; set it to libfabric")])
def test_settings_that_lead_past_the_plugin_are_named(check, program, variables, what):
    status, _, problems = check(program, **variables)
    assert status == 1 and len(problems) == 1 and problems[0].startswith(what)


def test_an_installation_without_the_plugin_is_named(check, program, weft):
    (weft / "lib" / "libweft_nvshmem_transport.so").unlink()
    status, _, problems = check(program)
    assert status == 1 and len(problems) == 1 and "libweft_nvshmem_transport.so is missing" in problems[0]


@pytest.mark.parametrize("said, what", [("libfabric 2.5: rails use efa\n  opened: /opt/lib/libfabric.so.1", "libfabric: /opt/lib/libfabric.so.1"),
                                        ("libfabric: none could be opened", "problem:   libfabric: none could be opened")])
def test_libfabric_is_what_weft_info_finds(check, program, weft, said, what):
    (weft / "bin" / "weft-info").write_text(f"#!/bin/sh\necho 'weft'\necho '{said}'\n")
    (weft / "bin" / "weft-info").chmod(0o755)
    status, found, _ = check(program)
    assert what in found and status == what.startswith("problem")


def test_a_python_program_is_asked_for_its_package(check, tmp_path):
    emulated_host.host(tmp_path / "site" / "nvidia" / "nvshmem" / "lib", "3.6.5", (5,))
    (tmp_path / "main.py").write_text("import nvshmem.core\n")
    (tmp_path / "script").write_text(f"#!{shutil.which('env')} python3\n")
    (tmp_path / "script").chmod(0o755)
    for program in (sys.executable, tmp_path / "main.py", tmp_path / "script"):
        status, found, problems = check(program, PYTHONPATH=str(tmp_path / "site"), PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
        assert (status, problems) == (0, []), found
        assert any("(Python's package nvidia.nvshmem), release 3.6.5, transport interface 5" in line for line in found)


def test_a_python_without_the_package_does_not(check, tmp_path):
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "nvidia" / "__init__.py").touch()
    status, _, problems = check(sys.executable, PYTHONPATH=str(tmp_path))
    assert status == 1 and len(problems) == 1 and "has no package nvidia.nvshmem; install" in problems[0]
