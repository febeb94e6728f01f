"""Where a row runs: a lab, two PEs that share memory, or loopback; and the programs that it runs there."""
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

from .nic_counters import max_over_mean

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
LAB = ROOT / "tools" / "lab" / "weft-lab"
GOODPUT = ROOT / "bench" / "tcp_goodput.py"
SECRET = "of a benchmark on one machine"  # of a job's PEs, which pretend to be on several
LIMIT_S = 300
# What weft-perf says of balance in time (tools/perf/README.md).
IN_TIME = ("share_of_rails", "time_needed_s", "time_taken_s", "max_over_mean_per_interval")


class Missing(Exception):
    """Something that the row needs is not here; the text says what, and how to get it."""


def program(name):
    path = BIN / name
    if not path.exists():
        raise Missing(f"{path} is not built; run scripts/build release")
    return path


def without_settings(more=None):
    """The environment without settings of Weft, and with `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | (more or {})


def json_lines(command, environment=None):
    """The objects that a command prints, a line each; raises Missing if it fails."""
    done = subprocess.run(list(map(str, command)), env=without_settings(environment), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Perf:
    """What one weft-perf printed: its rows, and the balance of its NICs if there were rails."""

    def __init__(self, lines):
        self.rows = [line for line in lines if line["kind"] == "row"]
        self.balance = next((line for line in lines if line["kind"] == "balance"), None)

    def value(self, key="value", size=None):
        """Of the last row, or of the last with this size."""
        return [row[key] for row in self.rows if size is None or row["size"] == size][-1]

    def tables(self):
        """The last row of each table."""
        return {row["table"]: row for row in self.rows}

    def balance_ratio(self, direction):
        kernel = self.balance[f"{direction}_max_over_mean_kernel"]
        return kernel if kernel is not None else self.balance[f"{direction}_max_over_mean_library"]

    def in_time(self):
        """The figures of balance in time, as they are; {} of a run without rails."""
        return {name: self.balance[name] for name in IN_TIME if name in (self.balance or ())}

    def worst_pe(self, direction):
        """The highest max/mean over the NICs of one PE: what remains when PEs have unequal work."""
        counts = {}
        for nic in self.balance["nics"]:
            counts.setdefault((nic["node"], str(nic["pes"])), []).append(nic[f"{direction}_bytes_kernel"])
        return max(max_over_mean(mine) for mine in counts.values())


class Here:
    """PEs on this machine: through memory, or (rails above 0) over that many loopback addresses."""

    def __init__(self, rails=0):
        self.environment = {}
        if rails:
            nics = ",".join(f"127.0.0.{index + 1}" for index in range(rails))
            self.environment = {"WEFT_NICS": nics, "WEFT_NICS_SHARED": "yes", "WEFT_NODE_SIZE": "1"}

    def perf(self, pe_count, *words, **environment):
        command = [program("weft-run"), "-n", pe_count, "--", program("weft-perf"), *words, "--json"]
        return Perf(json_lines(command, self.environment | environment))


class Lab:
    """A lab of this run's own."""

    def __init__(self, name):
        self.name = name

    def perf(self, pe_count, *words, **environment):
        command = [LAB, "run", "--name", self.name, "-n", pe_count, "--", program("weft-perf"), *words, "--json"]
        return Perf(json_lines(command, {"WEFT_RUN": str(program("weft-run"))} | environment))

    def start(self, pe_count, *words):
        """The same in the background; `finish` waits for it."""
        command = [LAB, "run", "--name", self.name, "-n", pe_count, "--", program("weft-perf"), *words, "--json"]
        return subprocess.Popen(list(map(str, command)), env=os.environ | {"WEFT_RUN": str(program("weft-run"))},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def nic(self, *words):
        subprocess.run([LAB, "nic", words[0], "--name", self.name, *map(str, words[1:])], check=True,
                       capture_output=True)

    def tcp_goodput(self, pairs, seconds):
        """Bytes per second of plain sockets from host 0 to host 1, over (local, remote) addresses."""
        inside = [str(LAB), "run", "--name", self.name, "--host"]
        server = subprocess.Popen([*inside, "1", "--", str(GOODPUT), "serve", *[remote for _, remote in pairs]],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            server.stdout.readline()
            words = ["send", "--duration", str(seconds + 2), *[f"{local}={remote}" for local, remote in pairs]]
            sender = subprocess.Popen([*inside, "0", "--", str(GOODPUT), *words])
            time.sleep(1.5)  # slow start is over
            first = self._sample(server)
            time.sleep(seconds)
            second = self._sample(server)
            sender.wait(30)
        finally:
            server.stdin.close()
            server.wait(10)
        return sum(second["bytes"].values()) - sum(first["bytes"].values()), second["time_s"] - first["time_s"]

    @staticmethod
    def _sample(server):
        server.stdin.write("sample\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())


def finish(process):
    output, errors = process.communicate(timeout=LIMIT_S)
    if process.returncode != 0:
        raise Missing(f"weft-perf ended with {process.returncode}: {errors.strip()[-500:]}")
    return Perf([json.loads(line) for line in output.splitlines() if line.startswith("{")])


@contextlib.contextmanager
def lab(nics, rate, hosts=2):
    name = f"bench-{os.getpid()}"
    up = [LAB, "up", "--name", name, "--hosts", str(hosts), "--nics", str(nics), "--rate", rate]
    started = subprocess.run(up, capture_output=True, text=True)
    if started.returncode != 0:
        raise Missing(f"the lab did not come up: {started.stderr.strip()}")
    try:
        yield Lab(name)
    finally:
        subprocess.run([LAB, "down", "--name", name], capture_output=True)


def nic_address(host, nic):
    return f"10.88.{host}.{nic + 1}"


def oshmem():
    """Builds and runs bench/oshmem_latency.c; {(what, size): value}."""
    if not shutil.which("oshcc") or not shutil.which("oshrun"):
        raise Missing("oshcc and oshrun are not here; install openmpi-bin and libopenmpi-dev")
    binary = ROOT / "build" / "oshmem_latency"
    subprocess.run(["oshcc", "-O2", ROOT / "bench" / "oshmem_latency.c", "-o", binary], check=True)
    # Without ^patcher OpenMPI 4.1.4's memory hooks end in a segmentation fault on Debian 12.
    command = ["oshrun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "--mca", "spml", "ucx",
               "--mca", "memory", "^patcher",
               "-x", "SHMEM_SYMMETRIC_SIZE=256M", binary]
    return {(line["what"], line["size"]): line["value"] for line in json_lines(command)}


def provider():
    """What Weft takes for loopback (docs/decisions/0003); both sides of a comparison are told it."""
    found = subprocess.run(["pkg-config", "--atleast-version=1.18", "libfabric"])
    return "tcp" if found.returncode == 0 else "tcp;ofi_rxm"


def median(values):
    return statistics.median(values)
