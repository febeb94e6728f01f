"""The command line: what is accepted, and the one line that ends what is not."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from device_trees import efa
from page_files import PageFile
from weft_top.cli import main
from weft_top.collector import Collector, SourceOptions
from weft_top.options import UsageError, parse

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "top" / "weft-top"


@pytest.fixture
def command(pages, devices):
    """weft-top as a process, on directories of its own."""
    environment = {**os.environ, "WEFT_COUNTERS_DIR": str(pages), "WEFT_LAB_DIR": str(pages)}

    def start(*words, **keywords):
        arguments = [sys.executable, PROGRAM, "--rdma-root", str(devices), *words]
        return subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **keywords)

    return start


def run(process):
    output, errors = process.communicate(timeout=30)
    return process.returncode, output, errors


def lines_until(process, count):
    return [process.stdout.readline() for _ in range(count)]


@pytest.mark.parametrize("words, message", [
    (["--interval", "0.05"], "not between 0.1 and 10"),
    (["--interval", "nan"], "not between 0.1 and 10"),
    (["--interval", "x"], "not between 0.1 and 10"),
    (["--duration", "0"], "no number of seconds"),
    (["--unit", "furlongs"], "write Gbit/s or GB/s"),
    (["--prometheus", "x"], "write for example :9400"),
    (["--replay", "a", "--prometheus", ":1"], "does not go with --replay"),
    (["--replay", "a", "--duration", "1"], "does not go with --replay"),
    (["--once", "--duration", "1"], "leave out --duration"),
    (["--record", "a", "--perfetto", "a"], "need two files"),
    (["--nonsense"], "see weft-top --help"),
])
def test_what_cannot_be_is_refused_in_one_line(words, message, capsys):
    assert main(words) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1 and errors.startswith("weft-top: ")


@pytest.mark.parametrize("text, unit", [("GB/s", "GB/s"), ("gbit", "Gbit/s"), ("Gbit/s", "Gbit/s"), ("gb", "GB/s")])
def test_units_are_taken_as_people_write_them(text, unit):
    assert parse(["--unit", text]).unit == unit


def test_a_recording_is_not_overwritten_by_its_own_replay(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"")
    for option in ("--record", "--perfetto"):
        with pytest.raises(UsageError, match="would overwrite"):
            parse(["--replay", str(path), option, str(tmp_path / "." / "a")])


def test_sources_can_be_left_out(pages, devices):
    efa(devices, "efa_0")
    PageFile(pages).save()
    everything = dict(pages_directory=str(pages), rdma_root=str(devices), lab_directory=str(pages))
    for left_out in ("pages", "rdma", "net"):
        collector = Collector(SourceOptions(**everything, **{left_out: False}))
        snapshot = collector.sample()
        found = {nic.kind for nic in snapshot.nics} | ({"pages"} if snapshot.pes else set())
        assert found == {"pages", "rdma", "net"} - {left_out}
        collector.close()


def test_once_prints_a_table_or_one_document(command, devices):
    efa(devices, "rdmap79s0")
    status, output, errors = run(command("--once", "--interval", "0.1"))
    assert status == 0 and "rdmap79s0" in output and errors == ""
    status, output, errors = run(command("--once", "--json", "--interval", "0.1"))
    document = json.loads(output)
    assert status == 0 and document["interval_s"] >= 0.1
    assert "rdma:rdmap79s0/1" in [nic["key"] for nic in document["nics"]]


def test_without_a_terminal_it_says_what_to_use(command):
    status, output, errors = run(command())
    assert status == 2 and output == "" and "--once" in errors and errors.count("\n") == 1
    status, _, errors = run(command("--headless"))
    assert status == 2 and "--json" in errors


def test_everything_at_once_and_the_replay_shows_the_same(command, devices, pages, tmp_path):
    port = efa(devices, "efa_0")
    PageFile(pages).save()
    record, trace = str(tmp_path / "r"), str(tmp_path / "p.json")
    process = command("--json", "--interval", "0.1", "--duration", "0.5", "--record", record, "--perfetto", trace,
                      "--prometheus", "127.0.0.1:0")
    first = lines_until(process, 2)
    port.set("tx_bytes", 10**9)
    status, output, errors = run(process)
    assert status == 0 and "serving metrics on 127.0.0.1" in errors
    live = first + output.splitlines(keepends=True)
    assert 3 <= len(live) <= 6 and json.loads(live[-1])["nics"][0]["counters"]["tx_bytes"] == 10**9
    assert json.load(open(trace))
    status, output, errors = run(command("--replay", record, "--json"))
    assert (status, output, errors) == (0, "".join(live), "")
    status, output, _ = run(command("--replay", record, "--once"))
    assert status == 0 and "efa_0" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_at_once_with_complete_files(command, tmp_path, number):
    record, trace = str(tmp_path / "r"), str(tmp_path / "p.json")
    process = command("--json", "--interval", "10", "--record", record, "--perfetto", trace)
    lines_until(process, 1)
    start = time.monotonic()
    process.send_signal(number)
    status, _, errors = run(process)
    assert status == 0 and errors == "" and time.monotonic() - start < 5
    assert json.load(open(trace))
    assert run(command("--replay", record, "--json"))[0] == 0


def test_a_signal_at_any_step_of_a_wait_does_not_hang_it():
    program = """
import os, signal, threading
from weft_top.cli import _Ending
ending = _Ending()
sender = threading.Thread(target=lambda: [os.kill(os.getpid(), signal.SIGTERM) for _ in range(20000)])
sender.start()
while sender.is_alive():
    ending.wait_until(0)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=PROGRAM.parent, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_is_killed_leaves_files_that_open(command, tmp_path):
    record, trace = str(tmp_path / "r"), str(tmp_path / "p.json")
    process = command("--json", "--interval", "0.1", "--record", record, "--perfetto", trace)
    lines_until(process, 3)
    process.kill()
    process.communicate()
    assert json.load(open(trace))
    status, output, errors = run(command("--replay", record, "--json"))
    assert status in (0, 1) and output.count("\n") >= 3 and errors.count("\n") == status


def test_a_recording_that_is_cut_off_plays_and_ends_with_one_line_and_status_one(command, tmp_path):
    record = tmp_path / "r"
    _, output, _ = run(command("--json", "--interval", "0.1", "--duration", "0.3", "--record", str(record)))
    whole = output.count("\n") - 1
    record.write_bytes(record.read_bytes()[:-3])
    status, output, errors = run(command("--replay", str(record), "--json"))
    assert status == 1 and output.count("\n") == whole
    assert errors == f"weft-top: {record} is damaged or cut off after frame {whole}; what comes before is whole\n"


def test_a_full_disk_stops_the_recording_and_nothing_else(command):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    status, output, errors = run(command("--json", "--interval", "0.1", "--duration", "0.2", "--perfetto", "/dev/full"))
    assert status == 2 and "No space left" in errors and errors.count("\n") == 1


def test_a_reader_that_has_enough_ends_it_silently(command):
    process = command("--json", "--interval", "0.1")
    lines_until(process, 1)
    process.stdout.close()
    assert process.wait(timeout=10) == 0
    assert process.stderr.read() == ""


def test_an_address_that_is_taken_is_one_line(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, errors = run(command("--headless", "--prometheus", f":{port}"))
    assert status == 2 and f"cannot listen on 127.0.0.1, port {port}" in errors and errors.count("\n") == 1


def test_a_name_with_letters_that_the_output_has_not_is_printed_all_the_same(devices):
    efa(devices, "caf\u00e9")
    environment = {**os.environ, "WEFT_LAB_DIR": str(devices), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, PROGRAM, "--rdma-root", devices, "--once", "--interval", "0.1"],
                          env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "caf?" in done.stdout, done.stderr
