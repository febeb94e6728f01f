"""The fixture of all tests here: tests/python/jobs.py."""
import pytest

from jobs import Programs, programs_of


@pytest.fixture
def programs(request, tmp_path):
    return programs_of(Programs, request, tmp_path)
