"""`scripts/bench policies --simulated` and `--emulated`: rows that the lab cannot show, or not in time.

The figure of a row is that of the grid: (best other policy's rate) / (the default's rate). On emulated NICs a slow NIC is
made so once the job runs (`loom slow`), and what is found out of it counts in the rate.
"""
import csv
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

from .places import LIMIT_S, SECRET, Missing, Perf, program, without_settings

NICS = 4
GBITS = 0.1
FABRIC = f"--nics {NICS} --gbits {GBITS} --persona efa --job policies"


@dataclass(frozen=True)
class Emulated:
    """One row: `slow` is the part of its rate that NIC 0 keeps, of every PE or of PE 1 alone."""

    name: str
    nodes: int
    pes_per_node: int
    traffic: str
    slow: float = 1
    is_plane: bool = True

    @property
    def pes(self):
        return self.nodes * self.pes_per_node


STEPS = "alltoall_latency -b {bytes} -e {bytes} --window {steps}"
SHAPES = ((2, 2), (2, 4), (8, 1))


def steps(kib, count, pes):
    """weft-perf's words: `kib` to each peer, `count` steps between two quiets."""
    return STEPS.format(bytes=kib * 1024 * pes, steps=count)


ROWS = [
    *(Emulated(f"NIC 0 of all PEs at {part:g}, {kib} KiB, 4 steps", *shape, steps(kib, 4, shape[0] * shape[1]), part)
      for part in (0.5, 0.25) for shape in SHAPES for kib in (64, 256)),
    Emulated("NIC 0 of PE 1 at 0.5, 256 KiB, 4 steps, two peers", 3, 1, steps(256, 4, 3), 0.5, is_plane=False),
    Emulated("NIC 0 of PE 1 at 0.5, 256 KiB, 4 steps, two peers", 2, 2, steps(256, 4, 4), 0.5, is_plane=False),
    Emulated("peers in shuffled order, 256 KiB, 1 step", 2, 4, steps(256, 1, 8) + " --pattern shuffled"),
    Emulated("peers in shuffled order, 256 KiB, 1 step", 8, 1, steps(256, 1, 8) + " --pattern shuffled"),
    Emulated("PEs start up to 50 us apart, 256 KiB, 1 step", 2, 4, steps(256, 1, 8) + " --start-apart 50"),
    Emulated("32 MiB to each peer", 2, 4, steps(32 * 1024, 1, 8)),
]


def slow_nics(row, environment):
    """Waits for the fabric, and slows NICs; every NICS-th one of a node is NIC 0 of a PE."""
    end = time.monotonic() + 30
    shown = ""
    while shown.count("/") < row.pes * NICS:
        if time.monotonic() > end:
            raise Missing("the emulated fabric did not start")
        time.sleep(0.1)
        shown = subprocess.run([program("loom"), "show", "--job", "policies"], env=environment, capture_output=True,
                               text=True, check=False).stdout
    names = sorted({word.strip(":,") for word in shown.split() if word.startswith("node") and "/" in word},
                   key=lambda name: (int(name.split("/")[0][4:]), name.split("/")[1]))
    chosen = names[::NICS] if row.is_plane else names[NICS : NICS + 1]
    for name in chosen:
        subprocess.run([program("loom"), "slow", "--job", "policies", name, str(row.slow)], env=environment, check=True,
                       capture_output=True)


def rate(row, policy, seconds):
    """Bytes a second between nodes."""
    with tempfile.TemporaryDirectory() as folder:
        environment = without_settings({"WEFT_JOB_SECRET": SECRET, "LOOM_DIR": folder})
        command = [program("loom"), "run", "--nodes", row.nodes, "--pes-per-node", row.pes_per_node, *FABRIC.split(), "--",
                   program("weft-perf"), *row.traffic.split(), "--duration", seconds, "--policy", policy, "--json"]
        with subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as job:
            try:
                if row.slow < 1:
                    slow_nics(row, environment)
                out, errors = job.communicate(timeout=LIMIT_S)
            finally:
                job.kill()
    if job.returncode != 0:
        raise Missing(f"weft-perf ended with {job.returncode}: {errors.strip()[-500:]}")
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return Perf(lines).value("GB_per_s_between_nodes") * 1e9


def capacity(row):
    """Bytes a second that all PEs' NICs carry; where one PE is slow, the others wait for it."""
    return row.pes * (NICS - 1 + row.slow) * GBITS * 1e9 / 8


def measure(row, default, others, settings):
    rates = {}
    for turn in range(settings.rounds):
        for policy in (default, *others) if turn % 2 == 0 else (*reversed(others), default):
            rates.setdefault(policy, []).append(rate(row, policy, max(settings.seconds, 4)))
    return rates


def emulated_rows(default, others, settings):
    others = [policy for policy in others if policy != "single"]
    for row in ROWS:
        rates = measure(row, default, others, settings)
        medians = {policy: statistics.median(values) for policy, values in rates.items()}
        yield ({"row": row.name, "hosts": row.nodes, "pes_per_host": row.pes_per_node, "bytes_per_s": rates},
               {policy: value / capacity(row) for policy, value in medians.items()})


# Simulated, on NICs of p5.48xlarge: traffics, faults and networks, with the words of weft-sim.
SLOW_PLANE = "--warm-up 20 --windows 20 --slow nic0@all:"
CONDITIONS = {
    "even": "",
    "NIC 0 of all PEs at a half": SLOW_PLANE + "0.5",
    "NIC 0 of all PEs at a quarter": SLOW_PLANE + "0.25",
    "NIC 0 of one PE at a half": "--warm-up 20 --windows 20 --slow n1.g0.nic0:0.5",
    "leaves 2:1": "--oversubscribe 2 --shared-leaf",
    "leaves 2:1 for each NIC": "--oversubscribe 2",
    "peers in shuffled order": "--shuffled",
    "PEs start up to 50 us apart": "--start-apart 50",
}
SMALL = ((2, 1), (2, 2), (2, 4), (3, 1), (3, 2), (4, 1), (4, 2), (8, 1))
LARGE = ((8, 8, ""), (64, 8, "--sample 16,48"), (512, 8, "--sample 16,48"))


def simulated_words():
    """Name, nodes, PEs a node, words."""
    for nodes, pes in SMALL:
        for kib in (64, 256):
            for steps_of_window in (1, 4, 16):
                for name, words in CONDITIONS.items():
                    yield (f"{name}, {kib} KiB, {steps_of_window} steps", nodes, pes,
                           f"{words} --leaf {(nodes + 1) // 2} --sizes {kib}K --window {steps_of_window}")
        yield "32 MiB to each peer", nodes, pes, "--sizes 32M"
    for nodes, pes, sample in LARGE:
        for kib in (64, 256):
            for name in ("even", "NIC 0 of all PEs at a half"):
                yield f"{name}, {kib} KiB, 4 steps", nodes, pes, f"{CONDITIONS[name]} {sample} --sizes {kib}K --window 4"


def simulated_rows(default, others):
    for name, nodes, pes, words in simulated_words():
        command = [program("weft-sim"), "alltoall", "--machine", "p5.48xlarge", "--nodes", nodes, "--pes-per-node", pes,
                   "--policy", ",".join((default, *others)), *words.split(), "--csv"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing(done.stderr.strip())
        found = csv.DictReader(done.stdout.splitlines())
        yield ({"row": name, "hosts": nodes, "pes_per_host": pes, "words": words},
               {row["policy"]: float(row["share_of_rails"]) for row in found})


def report(rows, default, data):
    """Prints and keeps `rows`: what describes a row, and each policy's share in it. Data of the same day is replaced."""
    data.path.unlink(missing_ok=True)
    worst = (0, "")
    for line, shares in rows:
        other = max((policy for policy in shares if policy != default), key=shares.get)
        ratio = shares[other] / shares[default]
        text = f"{line['row']}; {line['hosts']} x {line['pes_per_host']} x {NICS}"
        worst = max(worst, (ratio, text))
        data.add({**line, "shares": shares, "best_other": other, "ratio": round(ratio, 3)})
        print(f"{text:<75} {default} {shares[default]:.3f}   {other} {shares[other]:.3f}   ratio {ratio:.3f}", flush=True)
    print(f"regret {worst[0]:.3f}, in: {worst[1]}; data: {data.path}")
    return 0
