"""Rows of `scripts/bench emulated` with a NIC that is slow, cut or healed while a program runs.

What arrived is read from the counters of the emulated NICs (bytes of writes that were delivered), which the library
does not touch. A time is counted from when the command that breaks or heals the NIC had ended.
"""
import contextlib
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from .places import LIMIT_S, SECRET, Missing, program, without_settings

NICS = ["rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0"]
GBITS = 1
PAYLOAD_SHARE = 8192 / (8192 + 64)  # of a packet
FULL = GBITS * 1e9 / 8 * PAYLOAD_SHARE  # bytes per second of one NIC
SAMPLE_S = 0.01
WINDOW_S = 0.2  # over which a rate is taken
ENOUGH = 0.9
JOB = "bench"
FABRIC = f"--nodes 2 --nics 4 --persona efa --gbits {GBITS} --job {JOB}"
PERF = "put_bw -b 1M -e 1M --duration {duration} --no-counters"


class Watched:
    """A job, and what PE 1's NICs have received, sampled."""

    def __init__(self, folder, words):
        self.environment = without_settings({"WEFT_JOB_SECRET": SECRET, "LOOM_DIR": folder})
        self.process = subprocess.Popen(list(map(str, words)), env=self.environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ports = pathlib.Path(folder) / f"{JOB}.sys" / "node1" / "class" / "infiniband"
        self.files = [ports / nic / "ports" / "1" / "hw_counters" / "rdma_write_recv_bytes" for nic in NICS]
        self.samples = []  # (time, bytes)

    def loom(self, *words):
        """When the command had ended."""
        subprocess.run([program("loom"), *map(str, words), "--job", JOB], env=self.environment, check=True,
                       capture_output=True)
        return time.monotonic()

    def sample(self):
        with contextlib.suppress(FileNotFoundError, ValueError):
            self.samples.append((time.monotonic(), sum(int(file.read_text()) for file in self.files)))

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            self.sample()
            time.sleep(SAMPLE_S)

    def wait_until_it_flows(self):
        """Until a tenth of a second has been at full rate: init and warm-up are over."""
        end = time.monotonic() + 30
        while not (len(self.samples) > 20 and self.rate(self.samples[-1][0] - WINDOW_S) > ENOUGH * 4 * FULL):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Missing(f"the job did not reach its rate: {self.process.communicate(timeout=LIMIT_S)[1][-500:]}")
            self.watch(SAMPLE_S)

    def rate(self, start):
        """Bytes per second over WINDOW_S from `start`; 0 if it was not sampled."""
        inside = [sample for sample in self.samples if start <= sample[0] <= start + WINDOW_S + SAMPLE_S]
        if len(inside) < 2 or inside[-1][0] - inside[0][0] < WINDOW_S / 2:
            return 0
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def time_until(self, rate, begin):
        """Seconds from `begin` to the first window with 0.9 of `rate`."""
        for at, _ in self.samples:
            if at >= begin and self.rate(at) >= ENOUGH * rate:
                return at - begin
        raise Missing(f"the rate of {rate / 1e6:.0f} MB/s was not reached again")

    def finish(self):
        errors = self.process.communicate(timeout=LIMIT_S)[1]
        if self.process.returncode != 0:
            raise Missing(f"weft-perf ended with {self.process.returncode}: {errors.strip()[-500:]}")

    def timeline(self, origin):
        """[seconds from `origin`, MB/s since the sample before] for the data."""
        pairs = zip(self.samples[::2], self.samples[2::2])
        return [[round(b[0] - origin, 3), round((b[1] - a[1]) / (b[0] - a[0]) / 1e6, 1)] for a, b in pairs]


def command(duration):
    return [program("loom"), "run", *FABRIC.split(), "--", program("weft-perf"), *PERF.format(duration=duration).split()]


@dataclass(frozen=True)
class Broken:
    """`run` gives the row's figure, and the rate over time around what was done to the NIC."""

    name: str
    says: str
    event: str  # slow_rate, slow, cut or heal
    reach: float | None
    at_least: bool
    unit: str
    spare_s: float = 4.0
    program: Callable[[str, float], list] = lambda _folder, seconds: command(seconds)  # what runs, for so long

    def command(self, _seconds):
        return self.program("", 2 + 2 * self.spare_s)

    def run(self, _seconds):
        with tempfile.TemporaryDirectory() as folder:
            job = Watched(folder, self.program(folder, 2 + 2 * self.spare_s))
            try:
                return self.measure(job)
            finally:
                job.process.kill()
                job.process.wait()

    def measure(self, job):
        job.wait_until_it_flows()
        nic = f"node0/{NICS[1]}"
        left = 3.25 * FULL if self.event.startswith("slow") else 3 * FULL
        words = ["slow", nic, 0.25] if self.event.startswith("slow") else ["cut", nic]
        origin = job.loom(*words)
        job.watch(self.spare_s)
        if self.event == "heal":
            origin, left = job.loom("heal", "all"), 4 * FULL
            job.watch(self.spare_s)
        more = {"timeline": job.timeline(origin)}
        if self.event == "slow_rate":
            begin, end = next(sample for sample in job.samples if sample[0] >= origin + 2), job.samples[-1]
            value = (end[1] - begin[1]) / (end[0] - begin[0]) / left
        else:
            value = job.time_until(left, origin)
        job.loom("heal", "all")
        job.finish()
        return value, more


ROWS = [
    Broken("slow_nic", "put_bw, one of 4 NICs of 1 Gbit/s at a quarter of its rate, from 2 s after the change: share of the remaining capacity",
           "slow_rate", 0.9, True, ""),
    Broken("slow_nic_time", "the same: time until 0.9 of the remaining capacity", "slow", None, False, "s"),
    Broken("cut_nic", "put_bw, one of 4 NICs cut: time until 0.9 of the remaining capacity", "cut", 1, False, "s"),
    Broken("heal_nic", "that NIC healed after 4 s: time until 0.9 of four NICs", "heal", 1, False, "s"),
]
