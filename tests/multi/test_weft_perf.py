"""weft-perf as processes through weft-run: each subcommand for a moment, tables and JSON, mistakes."""
import json
import os
import subprocess

import pytest

SUBCOMMANDS = {
    "put_bw": ["-b", "8", "-e", "4K", "-f", "8"],
    "get_bw": ["-b", "8", "-e", "4K", "-f", "8"],
    "put_latency": ["-b", "8", "-e", "64"],
    "get_latency": ["-b", "8", "-e", "64"],
    "put_signal_rate": ["-b", "64"],
    "put_signal_ping_pong": ["-b", "8", "-e", "64"],
    "putv_rate": ["-b", "64", "-e", "4K", "--window", "8"],
    "atomic_latency": [],
    "barrier_latency": [],
    "alltoall_latency": ["-b", "16", "-e", "4K", "-f", "16"],
    "paged_write": ["-b", "4K", "--total", "256K", "--interval", "5"],
    "cold_start": [],
    "all_get_all": ["-b", "8", "-e", "4K", "-f", "8"],
    "all_put_all": ["-b", "8", "-e", "4K", "-f", "8"],
    "exchange_get": ["-b", "8", "-e", "4K", "-f", "8"],
    "message_rate": [],
    "alltoall": ["-b", "16", "-e", "4K", "-f", "16"],
    "broadcast": ["-b", "16", "-e", "4K", "-f", "16"],
    "fcollect": ["-b", "16", "-e", "4K", "-f", "16"],
    "collect": ["-b", "16", "-e", "4K", "-f", "16"],
    "reduction": ["-b", "16", "-e", "4K", "-f", "16"],
    "barrier": [],
    "sync": [],
}
ALL_TOGETHER = [
    "all_get_all", "all_put_all", "exchange_get", "message_rate", "alltoall", "broadcast", "fcollect", "collect",
    "reduction", "barrier", "sync",
]
SPREAD = "   avg(us)       min(us)       max(us)"
ALLTOALL_HEADER = "size(B)     count     type      scope     latency(us)       algbw(GB/s)   busbw(GB/s)"
LATENCY_HEADER = "size(B)     scope     latency(us)"
HEADERS = {
    "put_bw": "size(B)     scope     BW (GB/sec)",
    "get_bw": "size(B)     scope     BW (GB/sec)",
    "put_latency": "size(B)     scope     latency(us)",
    "get_latency": "size(B)     scope     latency(us)",
    "put_signal_ping_pong": "size(B)     scope     latency(us)",
    "alltoall_latency": ALLTOALL_HEADER,
    "all_get_all": LATENCY_HEADER + SPREAD + "       BW (GB/sec)   mode",
    "alltoall": ALLTOALL_HEADER + SPREAD,
    "broadcast": ALLTOALL_HEADER + SPREAD,
    "fcollect": ALLTOALL_HEADER + SPREAD,
    "collect": ALLTOALL_HEADER + SPREAD,
    "reduction": ALLTOALL_HEADER + SPREAD + "       redop",
    "barrier": LATENCY_HEADER + SPREAD,
    "sync": LATENCY_HEADER + SPREAD,
}
# PEs that share memory; PEs that see only loopback addresses of each other; and two by two of each.
PLACES = {
    "memory": {},
    "rails": {"WEFT_NODE_SIZE": "1", "WEFT_NICS": "127.0.0.1,127.0.0.2", "WEFT_NICS_SHARED": "yes"},
    "pairs": {"WEFT_NODE_SIZE": "2", "WEFT_NICS": "127.0.0.1,127.0.0.2", "WEFT_NICS_SHARED": "yes"},
}
PATTERNS = [
    ["--window", "4"],
    ["--count-per-step", "3", "--window", "2"],
    ["--pattern", "incast"],
    ["--pattern", "pairs"],
    ["--pattern", "random"],
    ["--sizes", "pareto:1.2:7"],
    ["--alternate-signal"],
    ["--dir", "read"],
    ["--collective"],
    ["--duration", "0.05"],
]


@pytest.fixture
def perf(bin_dir):
    def run(*words, pe_count=2, place="memory"):
        command = [bin_dir / "weft-run", "-n", str(pe_count), "--timeout", "100", "--", bin_dir / "weft-perf", *words]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        environment |= PLACES[place]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    return run


def rows_of(output):
    return [json.loads(line) for line in output.splitlines()]


def names_in_help(bin_dir):
    help_text = subprocess.run([bin_dir / "weft-perf", "--help"], capture_output=True, text=True, check=True).stdout
    _, _, listed = help_text.partition("Subcommands:\n")
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def test_every_benchmark_of_the_host_is_run_here(bin_dir):
    assert set(SUBCOMMANDS) == names_in_help(bin_dir) - {"device", "stream"}


def test_every_benchmark_is_in_the_readme(bin_dir, project):
    text = (project / "tools" / "perf" / "README.md").read_text(encoding="utf-8")
    assert {name for name in names_in_help(bin_dir) if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_each_subcommand_prints_its_table(perf, subcommand, place):
    done = perf(subcommand, "-n", "16", "-w", "2", *SUBCOMMANDS[subcommand], place=place)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"#{subcommand}"
    assert lines[1] == HEADERS.get(subcommand, lines[1])
    assert len(lines) > 2
    assert ("#nics" in lines) == (place == "rails")


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_each_subcommand_prints_json_lines(perf, subcommand):
    done = perf(subcommand, "-n", "16", "-w", "2", "--json", *SUBCOMMANDS[subcommand])
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows
    for row in rows:
        assert row["subcommand"] == subcommand
        assert row["kind"] == "row"
        assert row["pes"] == 2
        assert {"size", "value", "unit", "policy", "nodes", "machine", "date", "versions", "command"} <= set(row)


def test_json_goes_to_a_file_beside_the_table(perf, tmp_path):
    output = tmp_path / "rows.jsonl"
    done = perf("put_latency", "-n", "4", "-b", "8", "-e", "8", f"--json={output}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#put_latency")
    assert [row["size"] for row in rows_of(output.read_text())] == [8]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("words", PATTERNS, ids=" ".join)
def test_every_byte_of_every_pattern_is_right(perf, words, place):
    done = perf("alltoall_latency", "-b", "4K", "-e", "64K", "-f", "16", "-n", "7", "-w", "2", "--verify", *words,
                pe_count=3, place=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("subcommand", ["put_bw", "get_bw", "put_latency", "get_latency", "put_signal_rate"])
def test_tests_for_two_pes_verify_too(perf, subcommand):
    done = perf(subcommand, "-n", "70", "-w", "2", "-b", "1000", "-e", "1000", "--verify", place="rails")
    assert done.returncode == 0, done.stderr


def test_put_signals_to_all_others_in_turn_reach_each_of_them(perf):
    done = perf("put_signal_rate", "-n", "80", "-w", "7", "-b", "64", "--pattern", "alltoall", "--verify", pe_count=4,
                place="rails")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pe_count", [2, 4])
@pytest.mark.parametrize("subcommand", ALL_TOGETHER)
def test_what_all_pes_do_together_verifies(perf, subcommand, pe_count):
    done = perf(subcommand, "-n", "40", "-w", "3", "-b", "1000", "-e", "64K", "-f", "8", "--verify",
                pe_count=pe_count)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 2


@pytest.mark.parametrize("subcommand", ALL_TOGETHER)
def test_what_all_pes_do_together_verifies_over_rails(perf, subcommand):
    done = perf(subcommand, "-n", "10", "-w", "1", "-b", "1000", "-e", "64K", "-f", "8", "--verify", "--repeats", "2",
                pe_count=3, place="rails")
    assert done.returncode == 0, done.stderr
    assert "tx max/mean library" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("element", ["int8", "uint64", "float", "long_double", "complex_double"])
def test_every_reduction_that_a_type_allows_verifies(perf, element):
    done = perf("reduction", "-o", "all", "-d", element, "-n", "3", "-b", "16", "-e", "64K", "-f", "64", "--verify",
                "--json", pe_count=3)
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    reductions = {row["reduction"] for row in rows}
    allowed = {"sum", "prod"}
    if "complex" not in element:
        allowed |= {"min", "max"}
    if "int" in element:
        allowed |= {"and", "or", "xor"}
    assert reductions == allowed
    assert {row["type"] for row in rows} == {element}


def test_aggregation_can_be_chosen(perf):
    words = ["all_get_all", "-n", "20", "-b", "8", "-e", "8", "--json"]
    modes = {
        option: [row["mode"] for row in rows_of(perf(*words, *option).stdout)]
        for option in [(), ("--aggregate",), ("--no-aggregate",)]
    }
    assert modes == {(): ["aggregate", "each"], ("--aggregate",): ["aggregate"], ("--no-aggregate",): ["each"]}


def test_all_pes_end_a_duration_together(perf):
    for subcommand in ["reduction", "sync", "all_get_all"]:
        done = perf(subcommand, "--duration", "0.1", "-b", "1K", "-e", "1K", "--json", pe_count=3)
        assert done.returncode == 0, done.stderr
        assert rows_of(done.stdout)[0]["iterations"] > 1


def test_collectives_move_the_bytes_that_they_must(perf):
    size, calls = 256 * 1024, 20
    done = perf("alltoall", "-b", str(size), "-e", str(size), "-n", str(calls), "-w", "0", "--repeats", "1", "--json",
                pe_count=2, place="rails")
    assert done.returncode == 0, done.stderr
    balance = rows_of(done.stdout)[-1]
    for node in (0, 1):
        sent = sum(nic["tx_bytes_library"] for nic in balance["nics"] if nic["node"] == node)
        assert calls * size / 2 <= sent < 1.05 * calls * size / 2


def test_bytes_of_the_nics_are_those_that_were_put(perf):
    done = perf("put_bw", "-b", "256K", "-e", "256K", "-n", "64", "-w", "0", "--json", place="rails")
    assert done.returncode == 0, done.stderr
    row, balance = rows_of(done.stdout)
    assert balance["kind"] == "balance"
    sent = sum(nic["tx_bytes_library"] for nic in balance["nics"] if nic["node"] == 0)
    received = sum(nic["rx_bytes_library"] for nic in balance["nics"] if nic["node"] == 1)
    payload = 64 * 256 * 1024
    assert row["bytes"] == payload
    assert payload <= sent < 1.05 * payload
    assert payload <= received < 1.05 * payload


def test_who_sent_how_much_to_whom_is_recorded(perf):
    words = ["-b", "256K", "-e", "256K", "-n", "64", "-w", "0", "--json"]
    payload = 64 * 256 * 1024
    for subcommand, source, target in [("put_bw", 0, 1), ("get_bw", 1, 0)]:
        done = perf(subcommand, *words, place="rails")
        assert done.returncode == 0, done.stderr
        peers = rows_of(done.stdout)[-1]["peers"]
        assert payload <= peers[source][target] < 1.05 * payload
        assert peers[target][source] < 0.05 * payload
        assert peers[0][0] == peers[1][1] == 0


def test_throughput_over_time_is_recorded_with_the_warm_up(perf):
    for warmup in ("on", "off"):
        pages = rows_of(perf("paged_write", "-b", "4K", "--total", "256K", "--interval", "5", "--warmup", warmup, "--json",
                             place="rails").stdout)
        times = [row["time_ms"] for row in pages if row.get("table") == "paged_write"]
        assert times and times == sorted(times)
        puts = rows_of(perf("cold_start", "-n", "16", "--warmup", warmup, "--json", place="rails").stdout)[0]
        assert len(puts["times"]) == 16
        assert {row["warmup"] for row in pages if "warmup" in row} == {puts["warmup"]} == {warmup == "on"}


def test_each_client_of_a_paged_write_has_its_buffer_filled(perf):
    rows = rows_of(perf("paged_write", "-b", "4K", "--total", "256K", "--clients", "2", "--json", place="pairs", pe_count=4).stdout)
    total = next(row for row in rows if row.get("table") == "paged_write_total")
    assert total["clients"] == 2 and total["bytes"] == 2 * 4 * 256 * 1024
    peers = rows[-1]["peers"]
    assert peers[2][0] > 4 * 256 * 1024 < peers[3][1] and peers[2][1] < 100_000 > peers[3][0]
    done = perf("paged_write", "--clients", "2", place="rails")
    assert done.returncode == 2 and "needs 2 PEs on the first node and 2 others to serve them; there are 1 and 1" in done.stderr


def test_bytes_of_the_nics_are_those_that_were_got(perf):
    done = perf("get_bw", "-b", "256K", "-e", "256K", "-n", "64", "-w", "0", "--json", place="rails")
    assert done.returncode == 0, done.stderr
    balance = rows_of(done.stdout)[-1]
    sent = sum(nic["tx_bytes_library"] for nic in balance["nics"] if nic["node"] == 1)
    received = sum(nic["rx_bytes_library"] for nic in balance["nics"] if nic["node"] == 0)
    payload = 64 * 256 * 1024
    assert payload <= sent < 1.05 * payload
    assert payload <= received < 1.05 * payload


def test_the_share_of_the_rails_is_the_time_needed_of_the_time_taken(perf):
    words = ["put_bw", "-b", "256K", "-e", "256K", "-n", "64", "-w", "0", "--json", "--nic-rate", "800mbit"]
    row, balance = rows_of(perf(*words, place="rails").stdout)
    assert balance["time_taken_s"] == pytest.approx(row["seconds"])
    rates = [nic["rate_bits_per_s"] * nic["payload_share_of_rate"] / 8 for nic in balance["nics"] if nic["node"] == 0]
    sent = sum(nic["tx_bytes_library"] for nic in balance["nics"] if nic["node"] == 0)
    assert balance["time_needed_s"] == pytest.approx(sent / sum(rates), rel=0.05)
    assert balance["share_of_rails"] == pytest.approx(balance["time_needed_s"] / balance["time_taken_s"])


def test_where_no_rate_is_known_a_sentence_says_why(perf):
    done = perf("put_bw", "-b", "64K", "-e", "64K", "-n", "8", place="rails")
    assert "share of the rails -: the kernel knows no rate of lo; --nic-rate says it" in done.stdout
    balance = rows_of(perf("put_bw", "-b", "64K", "-e", "64K", "-n", "8", "--json", place="rails").stdout)[-1]
    assert balance["share_of_rails"] is None and "--nic-rate" in balance["share_unknown_because"]
    assert balance["max_over_mean_per_interval"] is None  # too short a run to look at it


def test_moments_are_looked_at_where_the_run_is_long_or_when_asked(perf):
    words = ["alltoall_latency", "-b", "256K", "-e", "256K", "--json"]
    long = rows_of(perf(*words, "--duration", "0.6", place="rails").stdout)[-1]["max_over_mean_per_interval"]
    asked = rows_of(perf(*words, "-n", "50", "--interval-ms", "5", place="rails").stdout)[-1]["max_over_mean_per_interval"]
    none = rows_of(perf(*words, "--duration", "0.6", "--interval-ms", "0", place="rails").stdout)[-1]
    assert long["interval_ms"] >= 10 and long["look_us"] > 0 and asked["interval_ms"] >= 5
    assert none["max_over_mean_per_interval"] is None
    # Loopback addresses are one device: the kernel's counters say nothing of the rails, by time or
    # by step.
    for moments in (long, long["per_step"]):
        assert moments["kernel"]["pe"]["rx"] == {"mean": None, "worst": None, "intervals": 0}
        assert set(moments["library"]) == set(moments["kernel"]) == {"pe", "node"}


def steps_of(perf, *words):
    """What the library's counters say of a run in steps of some ms: a PE's NICs, and the record `balance`."""
    done = perf(*words, "-w", "0", "--interval-ms", "10", "--json", place="rails")
    assert done.returncode == 0, done.stderr
    balance = rows_of(done.stdout)[-1]
    return balance["max_over_mean_per_interval"]["per_step"]["library"]["pe"], balance


def test_nics_that_take_turns_are_even_over_the_run_and_uneven_in_each_step(perf):
    # Two rails; in each step one message to the only peer, which coupled gives to one rail after
    # the other.
    words = ["alltoall_latency", "-b", "32M", "-e", "32M", "-n", "12", "--window", "1"]
    coupled, balance = steps_of(perf, *words, "--policy", "coupled")
    for direction in ("tx", "rx"):
        assert balance[f"{direction}_max_over_mean_library"] < 1.05
        assert coupled[direction]["intervals"] > 0
        assert coupled[direction]["mean"] > 1.9 and coupled[direction]["worst"] <= 2
    balanced, _ = steps_of(perf, *words, "--policy", "balanced")
    # 2 would be one rail a step. The rails of loopback have no rate of their own: on a busy machine
    # they differ.
    assert balanced["tx"]["mean"] < 1.5 and balanced["rx"]["mean"] < 1.5


def test_steps_without_barriers_tell_of_the_puts_or_gets_of_each_pe(perf):
    for subcommand, known, unknown in (("put_bw", "tx", "rx"), ("get_bw", "rx", "tx")):
        steps, _ = steps_of(perf, subcommand, "-b", "4M", "-e", "4M", "-n", "64", "--window", "8")
        assert steps[known]["intervals"] > 0 and 1 <= steps[known]["mean"] <= 2
        assert steps[unknown] == {"mean": None, "worst": None, "intervals": 0}


def test_balance_in_time_has_a_line_for_intervals_and_one_for_steps(perf):
    done = perf("alltoall_latency", "-b", "4M", "-e", "4M", "-n", "8", "--interval-ms", "5", place="rails")
    by_time, by_step = [line for line in done.stdout.splitlines() if line.startswith("max/mean of a PE's NICs each ")]
    assert by_time.startswith("max/mean of a PE's NICs each 5 ms, mean (worst): tx library ")
    assert by_step.startswith("max/mean of a PE's NICs each step, mean (worst): tx library ") and "   rx library " in by_step


def test_a_rate_that_is_none_needs_no_job(bin_dir):
    done = subprocess.run([bin_dir / "weft-perf", "put_bw", "--nic-rate", "fast"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "'fast' is no rate; write for example 800kbit" in done.stderr


def test_too_few_pes_is_one_clear_line(perf):
    done = perf("put_bw", pe_count=1)
    assert done.returncode == 2
    assert "put_bw needs 2 PEs; start it with weft-run -n 2" in done.stderr


def test_a_policy_that_does_not_exist_ends_with_the_librarys_words(perf):
    done = perf("put_bw", "--policy", "best")
    assert done.returncode != 0
    assert "balanced" in done.stderr


def test_a_mistake_on_the_command_line_needs_no_job(bin_dir):
    done = subprocess.run([bin_dir / "weft-perf", "put_bw", "-b", "x"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "'x' is not a size" in done.stderr


def test_a_file_that_cannot_be_written_is_named(perf):
    done = perf("put_latency", "-b", "8", "-e", "8", "-n", "4", "--output", "/nowhere/rows.jsonl")
    assert done.returncode == 2
    assert "/nowhere/rows.jsonl" in done.stderr
