"""weft.torch out of the wheel: tests/python_torch, examples included, with the torch of .venv-torch (scripts/setup --torch)."""
import os
import subprocess


def test_what_the_build_passes_with_torch_the_wheel_passes(environment, project, tmp_path):
    python = project / ".venv-torch" / "bin" / "python"
    assert python.exists(), "torch is missing; scripts/setup --torch installs it into .venv-torch"
    platlib = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], capture_output=True, text=True,
                             check=True).stdout.strip()
    variables = os.environ | {"PYTHON_WITH_WEFT": str(environment / "python"), "PYTHONPATH": platlib}
    done = subprocess.run([python, "-m", "pytest", project / "tests" / "python_torch", project / "moe" / "tests" / "python_torch", "--quiet", "-p", "no:cacheprovider",
                           "--ignore-glob=*moe*", "--basetemp", tmp_path / "pytest"], env=variables, capture_output=True, text=True,
                          timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
