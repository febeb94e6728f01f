"""Rows of `scripts/bench emulated` whose puts come from kernels and whose data lies in GPU memory: they need two GPUs.

`direct`: the emulated NICs read and write the GPUs' memory themselves; `staged`: through the host, as without FI_HMEM.
"""
import shutil
import statistics
import subprocess
from dataclasses import dataclass

from .emulated_pages import FIRST_PACKET_US
from .places import SECRET, Perf, json_lines, program

NICS = 4
PAGED_NICS = 32
PAGED_GBITS = 0.03


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


@dataclass(frozen=True)
class PagedOnGpu:
    """2 nodes, each a PE with a GPU and 32 NICs: pages in random order into the memory of one GPU. `run` gives the share of the
    NICs from a second after the start on; the whole, with the first pages, goes into the details. PEs may share a GPU."""

    name: str
    says: str
    is_direct: bool
    warmup: str
    reach: float = 0.97
    at_least: bool = True
    unit: str = ""

    def command(self, _seconds):
        return [program("loom"), "run", "--nodes", "2", "--nics", str(PAGED_NICS), "--persona", "efa", "--gbits", str(PAGED_GBITS),
                "--first-packet-us", FIRST_PACKET_US, "--", program("weft-perf"), "device", "paged_write", "--total", "256M", "--json"]

    def run(self, seconds):
        environment = {"WEFT_JOB_SECRET": SECRET, "WEFT_DEVICE_DIRECT": "on" if self.is_direct else "off", "WEFT_WARMUP": self.warmup,
                       "WEFT_DEVICE_SHARED": "yes" if gpu_count() == 1 else "no"}
        lines = json_lines(self.command(seconds), environment)
        looks = [(line["time_ms"], line["value"]) for line in lines if line.get("table") == "paged_write"]
        steady = [rate for time_ms, rate in looks[:-1] if time_ms > 1000]
        whole = next(line for line in lines if line.get("table") == "paged_write_total")
        link = PAGED_NICS * PAGED_GBITS / 8
        return statistics.mean(steady) / link, environment | {"whole": whole["gb_per_s"] / link, "first_200_ms": [
            {"time_ms": time_ms, "share": rate / link} for time_ms, rate in looks if time_ms <= 201]}


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
    *[PagedOnGpu(f"gpu_paged_{way}_{warmup}", f"paged_write into a GPU, {PAGED_NICS} NICs of {PAGED_GBITS} Gbit/s, {way}, warm-up {warmup}: share",
                 way == "direct", {"on": "yes", "off": "no"}[warmup]) for way in ("direct", "staged") for warmup in ("on", "off")],
]
