"""What weft-perf knows of NICs' counters in C++ is what weft-top and weft-lab know in Python."""

import re
from pathlib import Path

from weft_lab.rates import UNIT_BITS_PER_S
from weft_top import moments
from weft_top.sources.rdma_names import meaning

PERF = Path(__file__).resolve().parents[2] / "tools" / "perf"


def found(name, pattern):
    return re.findall(pattern, (PERF / name).read_text())


def test_files_of_rdma_ports_mean_the_same():
    files = found("kernel_counters.cpp", r'port\.path\(\) / "\w+/(\w+)", (\d+), &NicBytes::(\w+)')
    assert len(files) == 4
    for file, factor, name in files:
        assert meaning(file, "") == (name, int(factor))


def test_intervals_that_count_are_the_same():
    assert found("intervals.hpp", r"kPieceBytes = std::uint64_t\{(\d+)\} << (\d+)U") == [("64", "10")]
    assert moments.PIECE_BYTES == 64 << 10
    assert found("nic_groups.cpp", r"kLateIntervals = (\d+);") == [str(moments.LATE_NS // moments.STEP_NS)]


def test_units_of_rates_are_the_same():
    units = {unit: int(float(bits)) for unit, bits in found("nic_rates.cpp", r'std::pair\{"(\w+)"sv, ([\de.]+)\}')}
    assert units == {unit: bits for unit, bits in UNIT_BITS_PER_S.items() if unit}
