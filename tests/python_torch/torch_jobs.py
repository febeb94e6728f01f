"""Jobs of programs with torch: those of tests/python, run by the interpreter that has torch (.venv-torch)."""
import pytest

from jobs import Programs, programs_of


class TorchPrograms(Programs):
    LIMIT_S = 240  # torch.compile starts a compiler
    PREAMBLE = Programs.PREAMBLE + "import torch\nimport weft.torch\n"

    def __init__(self, bin_dir, package, folder):
        super().__init__(bin_dir, package, folder)
        # What a job that was ended left half written is not found by the next one.
        self.environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")


@pytest.fixture
def programs(request, tmp_path):
    return programs_of(TorchPrograms, request, tmp_path)
