"""weft-top beside real jobs in a lab: what it says against the kernel's own counters and the known amount.

The counters are read before the job begins and after it has ended, by weft-lab's own reader, and weft-top looks
all the while. So both have seen the same bytes, and the time of each look does not matter.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_lab import NICS, PES

TOP = Path(__file__).resolve().parents[2] / "tools" / "top" / "weft-top"
INTERVAL_S = 0.1
# Headers of a full frame are 66 of 1514 bytes, acknowledgements come on top; the kernel counts
# fewer with GSO.
WIRE_OVERHEAD_MAX = 1.10


class Watch:
    """weft-top --json in the background; the documents are there once it has ended."""

    def __init__(self, lab, folder, pages):
        self._output = open(folder / "top.jsonl", "w+")
        command = [sys.executable, TOP, "--json", "--interval", str(INTERVAL_S), "--pages", str(pages)]
        self._process = subprocess.Popen(command, env=lab.environment, stdout=self._output)
        while not os.path.getsize(folder / "top.jsonl"):
            assert self._process.poll() is None
            time.sleep(0.02)

    def end(self):
        time.sleep(1.5)  # until the last rate has fallen to 0
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(timeout=20) == 0
        self._output.seek(0)
        documents = [json.loads(line) for line in self._output]
        self._output.close()
        return documents


def kernel(lab):
    """(host, NIC, direction) -> bytes, as weft-lab reads them."""
    hosts = json.loads(lab.ok("counters", "--json"))["hosts"]
    return {(host["name"], nic["name"], way): nic[f"{way}_bytes"]
            for host in hosts for nic in host["nics"] for way in ("tx", "rx")}


def seen(document):
    return {(nic["namespace"], nic["name"], way): nic["counters"][f"{way}_bytes"]
            for nic in document["nics"] if nic["namespace"] and nic["name"] != "lo" for way in ("tx", "rx")}


def windows(documents):
    """The documents, from the last one backwards, whose rates are averages over times that touch but do not
    overlap: [(document, seconds)]. A rate reaches back to the last look that is at least a second old."""
    chosen, index = [], len(documents) - 1
    while index > 0:
        now_ns = documents[index]["time_ns"]
        start = max((i for i in range(index) if documents[i]["time_ns"] <= now_ns - 10**9), default=0)
        chosen.append((documents[index], (now_ns - documents[start]["time_ns"]) / 1e9))
        index = start
    return chosen


def integrated(documents):
    """The same from the rates alone: what they add up to over the time that was watched."""
    totals = dict.fromkeys(seen(documents[0]), 0.0)
    for document, seconds in windows(documents):
        for nic in document["nics"]:
            for way in ("tx", "rx"):
                place = (nic["namespace"], nic["name"], way)
                if place in totals:
                    totals[place] += nic[f"{way}_bits_per_s"] / 8 * seconds
    return totals


def job(lab, bin_dir, pages, *words):
    environment = lab.environment | {"WEFT_RUN": str(bin_dir / "weft-run"), "WEFT_COUNTERS_DIR": str(pages)}
    done = subprocess.run([*lab.command, "run", "-n", str(PES), "--", bin_dir / "weft-perf", *words, "--no-counters"],
                          env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def watched(lab, bin_dir, pages, folder, *words):
    """(documents, bytes that the kernel has counted meanwhile) of a job."""
    before = kernel(lab)
    watch = Watch(lab, folder, pages)
    job(lab, bin_dir, pages, *words)
    documents = watch.end()
    after = kernel(lab)
    return documents, {place: after[place] - before[place] for place in after}


def assert_agrees(documents, counted):
    first, last, rates = seen(documents[0]), seen(documents[-1]), integrated(documents)
    assert {place: last[place] - first[place] for place in first} == counted
    for place, value in counted.items():
        assert rates[place] == pytest.approx(value, rel=0.01, abs=100)


def busiest(documents):
    """The document with the most traffic of all whose pages are complete and warm."""
    complete = [document for document in documents if len(document["pes"]) == PES]
    assert complete, "the pages were never seen"
    return max(complete, key=lambda document: sum(nic["tx_bits_per_s"] or 0 for nic in document["nics"]))


def test_all_to_all_coupled_agrees_with_the_kernel_and_is_called_uneven(lab, bin_dir, pages, tmp_path):
    steps, warm, message = 40, 5, 65536
    documents, counted = watched(lab, bin_dir, pages, tmp_path, "alltoall_latency", "-b", str(message * PES), "-e",
                                 str(message * PES), "-n", str(steps), "-w", str(warm), "--policy", "coupled")
    assert_agrees(documents, counted)
    # Each PE sends one message in each step to each of the two PEs of the other host.
    payload = (steps + warm) * message * PES * 2
    sent = sum(value for (_, _, way), value in counted.items() if way == "tx")
    assert payload <= sent <= payload * WIRE_OVERHEAD_MAX
    moment = busiest(documents)
    assert all(nic["rate_bits_per_s"] == 40_000_000 for nic in moment["nics"] if nic["name"].startswith("nic"))
    assert all(pe["policy"] == "coupled" and len(pe["rails"]) == NICS // 2 for pe in moment["pes"])
    put = sum(peer["put_bytes"] for pe in last_pages(documents) for peer in pe["peers"])
    assert put <= payload * 1.01 and put >= payload * 0.5
    assert any(pe["verdict"].startswith(f"RX of PE {pe['pe']} arrives ") and "policy is coupled" in pe["verdict"]
               for document in documents for pe in document["pes"])


def last_pages(documents):
    """The last that was seen of each PE."""
    pages = {}
    for document in documents:
        pages.update({pe["pe"]: pe for pe in document["pes"]})
    return pages.values()


def test_incast_balanced_agrees_with_the_kernel_and_is_called_even(lab, bin_dir, pages, tmp_path):
    documents, counted = watched(lab, bin_dir, pages, tmp_path, "alltoall_latency", "--pattern", "incast", "-b", "256K",
                                 "-e", "256K", "-n", "40", "-w", "5", "--policy", "balanced")
    assert_agrees(documents, counted)
    moment = busiest(documents)
    target = next(pe for pe in moment["pes"] if pe["pe"] == 0)
    rails = [rail["rx_bits_per_s"] for rail in target["rails"]]
    assert min(rails) > 1_000_000 and target["rx_max_over_mean"] < 1.2
    # What the pages say arrives at PE 0's rails is what the kernel says arrives at their NICs, less
    # the headers.
    nics = {nic["name"]: nic["rx_bits_per_s"] for nic in moment["nics"] if nic["namespace"] == target["namespace"]}
    arrived = sum(nics[rail["nic"]] for rail in target["rails"])
    assert sum(rails) == pytest.approx(arrived, rel=0.25)


def test_an_idle_lab_shows_zero_everywhere(lab, pages, tmp_path):
    before = kernel(lab)
    documents = Watch(lab, tmp_path, pages).end()
    assert seen(documents[-1]) == before == kernel(lab)
    rates = [nic[f"{way}_bits_per_s"] for document in documents[1:] for nic in document["nics"] if nic["namespace"]
             for way in ("tx", "rx")]
    assert rates and set(rates) == {0.0}


def test_a_lab_that_goes_down_is_let_go_and_one_that_comes_up_is_found(lab, pages, tmp_path):
    watch = Watch(lab, tmp_path, pages)
    lab.ok("down")
    time.sleep(1.2)
    lab.start("--hosts", "1", "--nics", "1", "--name", "other")
    documents = watch.end()
    assert {nic["namespace"] for nic in documents[0]["nics"]} == {"", "h0", "h1"}
    assert {nic["namespace"] for nic in documents[-1]["nics"]} == {"", "other/h0"}
    texts = {event["text"] for document in documents for event in document["events"]}
    assert "is gone" in texts


def test_a_nic_that_is_cut_is_an_event_at_once(lab, pages, tmp_path):
    watch = Watch(lab, tmp_path, pages)
    lab.ok("nic", "down", "0", "1")
    documents = watch.end()
    events = [event for document in documents for event in document["events"]]
    assert ("NIC nic1 in h0", "is down, was up", "error") in [
        (event["subject"], event["text"], event["severity"]) for event in events]
