"""weft-c++ asks for the C++ that Weft's headers need, wherever the compiler's default is older; without it the headers say so."""
import subprocess

import pytest

PROGRAM = "#include <weft/weft.hpp>\nint main() { return weft_initialized(); }\n"
PROGRAM_OF_EXPERTS = "#include <weft/moe.hpp>\nint main() { return weft_initialized(); }\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "program.cpp"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def compiler(tmp_path):
    """A compiler whose default is the C++ that it is given."""
    def made(standard):
        path = tmp_path / "compiler"
        path.write_text(f'#!/bin/sh\nexec c++ -std=gnu++{standard} "$@"\n')
        path.chmod(0o755)
        return str(path)
    return made


def run(command, *arguments, **environment):
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **environment}
    return subprocess.run([str(command), *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("standard", [14, 17, 20])
def test_weft_cxx_compiles_with_a_compiler_of_any_default(bin_dir, source, compiler, standard):
    done = run(bin_dir / "weft-c++", "-Wall", "-Werror", source, "-o", source.with_suffix(""), SHMEM_CXX=compiler(standard))
    assert done.returncode == 0, done.stderr
    assert run(source.with_suffix("")).returncode == 0


def test_weft_cxx_leaves_the_standard_to_who_gives_one_or_has_a_newer_default(bin_dir, source, compiler):
    assert run(bin_dir / "weft-c++", "-showme:compile", SHMEM_CXX=compiler(17)).stdout.split()[-1] == "-std=gnu++20"
    assert "-std" not in run(bin_dir / "weft-c++", "-showme:compile", SHMEM_CXX=compiler(20)).stdout
    shown = run(bin_dir / "weft-c++", "-show", "-std=c++23", source, SHMEM_CXX=compiler(17)).stdout
    assert shown.count("-std=") == 1 and "-std=c++23" in shown
    assert "-std" not in run(bin_dir / "oshc++", "-showme:compile", SHMEM_CXX=compiler(17)).stdout


@pytest.mark.parametrize("program", [PROGRAM, PROGRAM_OF_EXPERTS])
def test_the_headers_say_which_cxx_they_need(bin_dir, source, program):
    source.write_text(program)
    done = run(bin_dir / "weft-c++", "-std=c++17", "-fsyntax-only", source)
    assert done.returncode != 0 and "needs C++20: compile with -std=c++20, which weft-c++ does by itself" in done.stderr
