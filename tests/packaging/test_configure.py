"""What a configuration without parts of what the Python module needs says and leaves out (cmake/python.cmake)."""
import pathlib
import subprocess
import sys
import sysconfig

import pytest

PURELIB = pathlib.Path(sysconfig.get_path("purelib"))


@pytest.fixture
def configure(project, tmp_path):
    """configure(package, ..., WEFT_PYTHON=): with a Python that has these packages alone."""
    def run(*packages, **settings):
        (tmp_path / "CMakeLists.txt").write_text(f"""
            cmake_minimum_required(VERSION 3.25)
            project(probe LANGUAGES CXX)
            include({project}/cmake/python.cmake)
            """)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
        folder = next((tmp_path / "venv" / "lib").glob("python3*")) / "site-packages"
        for package in packages:
            (folder / package).symlink_to(PURELIB / package)
        options = [f"-D{name}={value}" for name, value in settings.items()]
        return subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DPython_EXECUTABLE={tmp_path}/venv/bin/python", *options],
                              capture_output=True, text=True, check=False)
    if not (PURELIB / "nanobind_backend").exists():
        pytest.skip("this Python has no nanobind_backend")
    return run


@pytest.mark.parametrize("packages, lack", [((), "nanobind >= 3.1"), (("nanobind",), "nanobind_backend (pip install nanobind-backend==1.0.0)")])
def test_auto_leaves_the_python_module_out_and_says_why(configure, packages, lack):
    done = configure(*packages, WEFT_PYTHON="AUTO")
    assert done.returncode == 0, done.stderr
    assert "Python module: left out, as it needs" in done.stdout and lack in done.stdout and "Python module: NO" in done.stdout


@pytest.mark.parametrize("packages, lack", [((), "nanobind >= 3.1"), (("nanobind",), "nanobind_backend")])
def test_on_is_an_error_without_them(configure, packages, lack):
    done = configure(*packages, WEFT_PYTHON="ON")
    text = " ".join(done.stderr.split())
    assert done.returncode != 0 and lack in text and "-DWEFT_PYTHON=OFF" in text


def test_auto_builds_it_where_all_is_there(configure):
    done = configure("nanobind", "nanobind_backend", WEFT_PYTHON="AUTO")
    assert done.returncode == 0 and "Python module: YES" in done.stdout, done.stdout + done.stderr
