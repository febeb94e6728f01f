"""Rows of `scripts/bench emulated` whose puts come from kernels and whose data lies in GPU memory: they need two GPUs.

`direct`: the emulated NICs read and write the GPUs' memory themselves; `staged`: through the host, as without FI_HMEM.
"""
import shutil
import subprocess
from dataclasses import dataclass

from .places import SECRET, Perf, json_lines, program

NICS = 4


def gpu_count():
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    return listed.stdout.count("GPU ")


@dataclass(frozen=True)
class OnGpu:
    """One row: 2 nodes, each a PE with a GPU and 4 NICs."""

    name: str
    says: str
    gbits: float  # of a NIC
    perf: str
    figure: str  # a member of the row, GB/s of the NICs; or "commands_per_s"
    is_direct: bool
    reach: float | None = None
    at_least: bool = True
    unit: str = ""

    def command(self, _seconds):
        return [program("loom"), "run", "--nodes", "2", "--nics", str(NICS), "--persona", "efa", "--gbits", str(self.gbits), "--",
                program("weft-perf"), "device", *self.perf.split(), "--json"]

    def run(self, seconds):
        environment = {"WEFT_JOB_SECRET": SECRET, "WEFT_DEVICE_DIRECT": "on" if self.is_direct else "off"}
        value = Perf(json_lines(self.command(seconds), environment)).value(self.figure)
        share = value * 8 / (NICS * self.gbits)
        return (value / 1e6 if self.figure == "commands_per_s" else share), {"device_direct": environment["WEFT_DEVICE_DIRECT"]}


def both(name, says, gbits, perf, figure, **more):
    return [OnGpu(f"{name}_{way}", f"{says}, {way}", gbits, perf, figure, way == "direct", **more) for way in ("direct", "staged")]


PUT = "shmem_put_bw -b 16M -e 16M -n 60 -w 5"
EXCHANGE = "alltoall -s grid -b 16M -e 16M -n 60 -w 5"
ROWS = [
    *both("gpu_put_bw_1", "put_bw of kernels, GPU to GPU, 2 PEs x 4 NICs of 1 Gbit/s: share", 1, PUT, "gb_per_s", reach=0.95),
    *both("gpu_put_bw_10", "the same, NICs of 10 Gbit/s", 10, PUT.replace("60", "300"), "gb_per_s"),
    *both("gpu_put_bw_25", "the same, NICs of 25 Gbit/s", 25, PUT.replace("60", "500"), "gb_per_s"),
    *both("gpu_alltoall_1", "all-to-all of kernels, 2 PEs x 4 NICs of 1 Gbit/s, 8 MiB to each: share", 1, EXCHANGE, "bus_gb_per_s",
          reach=0.95),
    *both("gpu_alltoall_10", "the same, NICs of 10 Gbit/s", 10, EXCHANGE.replace("60", "300"), "bus_gb_per_s"),
    *both("gpu_put_signal", "put_signals of 64 B from 8,192 threads of a kernel through the proxy, NICs of 100 Gbit/s", 100,
          "put_signal_rate", "commands_per_s", unit="M/s"),
]
