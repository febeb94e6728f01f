"""Counter pages of real jobs, read as docs/COUNTERS.md says by a reader of its own: they are there while the job runs,
agree with what the program is told, are gone afterwards, and no folder makes a job fail."""
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

NUMBERS = 9  # tx_bytes to errors
ROUNDS, TRANSFER = 300, 100_000
Page = collections.namedtuple("Page", "name version pe pe_count pid start_ticks job policy node namespace rails peers")


def read_page(path):
    data = path.read_bytes()
    (magic, version, header_bytes, rail_bytes, rail_count, peer_rail_bytes, stride, pe, pe_count, pid, start_ticks,
     file_bytes, rails_at, peers_at, namespace, _, _, node, _) = struct.unpack_from("<4s8IiQQQQQQIIQ", data)
    assert (magic, header_bytes, rail_bytes, peer_rail_bytes) == (b"WEFT", 384, 256, 16)
    assert len(data) == file_bytes
    text = lambda at, size: data[at:at + size].split(b"\0")[0].decode()
    rails = [list(struct.unpack_from("<9Q2I", data, rails_at + rail_bytes * i + 96)) for i in range(rail_count)]
    peers = [[list(struct.unpack_from("<2Q", data, peers_at + 16 * (peer * stride + i))) for i in range(stride)]
             for peer in range(pe_count if peers_at else 0)]
    return Page(path.name, version, pe, pe_count, pid, start_ticks, text(104, 64), text(168, 16), node, namespace,
                rails, peers)


def wait_for(what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what.__doc__ or what}"
        time.sleep(0.05)
    return value


class Job:
    """PEs that exchange something and then print their counters until they are let go; 0 for one without a launcher."""

    def __init__(self, bin_dir, tmp_path, *options, pe_count=2, folder=None, prefix=(), **environment):
        self.stop_file = tmp_path / "stop"
        self.output = tmp_path / "output"
        self.errors = tmp_path / "errors"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        variables |= {"WEFT_NICS": "127.0.0.1,127.0.0.2", "WEFT_NICS_SHARED": "yes", "WEFT_HEAP_SIZE": "8M"}
        variables |= environment
        if folder is not None:
            variables["WEFT_COUNTERS_DIR"] = str(folder)
        launcher = [bin_dir / "weft-run", "-n", pe_count, "--lab", "none", "--timeout", 100, *options, "--"]
        command = [*prefix, *(launcher if pe_count else []), bin_dir / "counted", self.stop_file]
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen([str(word) for word in command], env=variables, stdout=output, stderr=errors)

    def said(self):
        """The last full line of each PE, by PE."""
        lines = self.output.read_text().split("\n")[:-1]
        return {row["pe"]: row for row in map(json.loads, lines)}

    def wait_until_counted(self, pe_count):
        def all_have_counted():
            assert self.process.poll() is None, self.errors.read_text()
            return len(self.said()) == pe_count
        wait_for(all_have_counted)

    def end(self):
        self.stop_file.touch()
        return self.process.wait(60)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


@pytest.fixture
def start(bin_dir, tmp_path):
    jobs = []

    def started(*options, **keywords):
        own = tmp_path / f"job{len(jobs)}"
        own.mkdir()
        jobs.append(Job(bin_dir, own, *options, **keywords))
        return jobs[-1]

    yield started
    for job in jobs:
        job.stop()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "pages"
    made.mkdir()
    return made


def pages_in(folder):
    return sorted((read_page(path) for path in folder.glob("weft-*.page")), key=lambda page: page.pe)


def test_pages_agree_with_what_the_program_is_told_and_go_with_it(start, folder):
    job = start("--node-size", 1, folder=folder)
    job.wait_until_counted(2)

    def agree():
        """the pages say what weft_counters and weft_peer_counters say"""
        said = job.said()
        return all(page.rails == said[page.pe]["rails"] and
                   [row for row in page.peers if any(map(any, row))] == list(filter(None, said[page.pe]["peers"]))
                   for page in pages_in(folder))

    wait_for(agree)
    pages = pages_in(folder)
    assert [(page.pe, page.pe_count, page.node, page.version) for page in pages] == [(0, 2, 0, 2), (1, 2, 1, 2)]
    assert pages[0].job == pages[1].job != "" and pages[0].policy == "balanced"
    for page in pages:
        fields = pathlib.Path(f"/proc/{page.pid}/stat").read_text().rpartition(")")[2].split()
        assert page.start_ticks == int(fields[22 - 3])
        assert page.namespace == pathlib.Path("/proc/self/ns/net").stat().st_ino
        assert page.name == f"weft-{os.geteuid()}-{page.job}-{page.pe}-{page.pid}.page"
        tx_bytes, rx_bytes, *_, errors, up, warm = map(sum, zip(*page.rails))
        put_bytes, get_bytes = (sum(entry[i] for row in page.peers for entry in row) for i in range(2))
        assert tx_bytes == put_bytes >= ROUNDS * TRANSFER and rx_bytes >= get_bytes >= ROUNDS * TRANSFER
        assert (errors, up, warm) == (0, 2, 2)
        assert not any(map(any, page.peers[page.pe]))
        tx_signals, rx_signals = (sum(rail[i] for rail in page.rails) for i in (4, 5))
        assert tx_signals >= ROUNDS and rx_signals >= ROUNDS
    assert job.end() == 0, job.errors.read_text()
    assert list(folder.iterdir()) == []


def test_a_job_on_one_node_has_pages_without_rails(start, folder):
    job = start(pe_count=3, folder=folder)
    job.wait_until_counted(3)
    assert [(page.pe, page.rails, page.peers) for page in pages_in(folder)] == [(pe, [], []) for pe in range(3)]
    assert job.end() == 0 and list(folder.iterdir()) == []


def test_pages_are_in_shared_memory_unless_told_otherwise(start):
    shared = pathlib.Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        pytest.skip("no /dev/shm that takes files")
    job = start("--node-size", 1)
    job.wait_until_counted(2)

    def is_of_the_job(path):
        try:
            command = pathlib.Path("/proc", path.stem.rpartition("-")[2], "cmdline").read_bytes()
        except OSError:  # of another job, whose process has ended, maybe since the page was listed
            return False
        return str(job.stop_file).encode() in command.split(b"\0")

    mine = list(filter(is_of_the_job, shared.glob("weft-*.page")))
    assert len(mine) == 2
    assert job.end() == 0 and not any(path.exists() for path in mine)


def test_a_killed_pe_leaves_a_page_that_the_next_job_removes(start, folder):
    alone = start(pe_count=0, folder=folder)
    alone.wait_until_counted(1)
    alone.process.kill()
    alone.process.wait(60)
    assert [page.pid for page in pages_in(folder)] == [alone.process.pid]
    following = start(pe_count=0, folder=folder)
    following.wait_until_counted(1)
    assert [page.pid for page in pages_in(folder)] == [following.process.pid]
    assert following.end() == 0 and list(folder.iterdir()) == []


def test_a_pe_that_is_killed_under_weft_run_leaves_nothing(start, folder):
    job = start("--node-size", 1, folder=folder)
    job.wait_until_counted(2)
    os.kill(pages_in(folder)[0].pid, signal.SIGKILL)
    assert job.process.wait(60) != 0
    assert list(folder.iterdir()) == []


def test_a_launcher_that_is_killed_leaves_nothing(start, folder):
    job = start("--node-size", 1, folder=folder)
    job.wait_until_counted(2)
    job.process.kill()

    def is_empty():
        """the agent, which is left, ends the PEs and removes their pages"""
        return list(folder.iterdir()) == []

    wait_for(is_empty)


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_running(page):
    try:
        return pathlib.Path(f"/proc/{page.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:  # it may go between open and read
        return False


def test_what_nobody_was_left_to_remove_is_named_and_goes_with_the_next_launcher(start, folder, bin_dir):
    job = start("--node-size", 1, folder=folder)
    job.wait_until_counted(2)
    pages = pages_in(folder)
    agent = parent_of(pages[0].pid)
    assert parent_of(agent) == job.process.pid
    for pid in [job.process.pid, agent]:
        os.kill(pid, signal.SIGSTOP)  # so that neither removes anything before it is killed
    for pid in [*(page.pid for page in pages), agent, job.process.pid]:
        os.kill(pid, signal.SIGKILL)
    job.process.wait(60)
    names = sorted(page.name for page in pages)
    wait_for(lambda: not any(map(is_running, pages)))
    assert sorted(path.name for path in folder.iterdir()) == names

    environment = os.environ | {"WEFT_COUNTERS_DIR": str(folder)}
    report = subprocess.run([bin_dir / "weft-info"], env=environment, capture_output=True, text=True, check=True).stdout
    line = next(line for line in report.splitlines() if "left behind" in line)
    assert line.split("or: ")[1] == f"cd {folder} && rm {' '.join(names)}"
    found = subprocess.run([bin_dir / "weft-info", "--json"], env=environment, capture_output=True, check=True).stdout
    assert json.loads(found)["counter_pages"] == {"folder": str(folder), "trouble": "", "left_behind": names}

    subprocess.run([bin_dir / "weft-run", "-n", "1", "--lab", "none", "--", "true"], env=environment, check=True)
    assert list(folder.iterdir()) == []


def test_rails_that_fail_are_seen_in_the_pages(start, folder):
    job = start("--node-size", 1, folder=folder, WEFT_FAULTS="seed=7,refuse=0.2,kill=500")  # not before init has ended, also on a busy machine
    job.wait_until_counted(2)
    page = pages_in(folder)[0]
    retries, errors = (sum(rail[i] for rail in page.rails) for i in (7, 8))
    assert retries > 0 and errors > 0
    assert job.end() == 0, job.errors.read_text()


@pytest.mark.parametrize("name", ["../../x", "a/b", "ä" * 200, "-1-2-3.page"])
def test_no_name_of_a_job_leads_out_of_the_folder(start, folder, name):
    job = start(pe_count=0, folder=folder, WEFT_JOB_ID=name)
    job.wait_until_counted(1)
    before = sorted(path.name for path in folder.parent.iterdir())
    page, = pages_in(folder)
    assert name.encode().startswith(page.job.encode()) and page.pid == job.process.pid
    assert job.end() == 0
    assert list(folder.iterdir()) == [] and sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_name_with_a_control_character_is_refused(start, folder):
    job = start(pe_count=0, folder=folder, WEFT_JOB_ID="\n")
    assert job.process.wait(30) != 0
    assert "WEFT_JOB_ID=\\n: it has a control character" in job.errors.read_text()
    assert list(folder.iterdir()) == []


def test_a_job_without_a_name_is_called_after_its_first_pe(start, folder):
    job = start(pe_count=0, folder=folder)
    job.wait_until_counted(1)
    assert pages_in(folder)[0].job == f"{socket.gethostname()}-{job.process.pid}"
    assert job.end() == 0


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_text("a file")], ids=["missing", "a file"])
def test_without_a_folder_the_job_goes_on_after_one_warning(start, tmp_path, make):
    bad = tmp_path / "elsewhere"
    make(bad)
    job = start("--node-size", 1, folder=bad)
    job.wait_until_counted(2)
    assert job.end() == 0
    warnings = job.errors.read_text().splitlines()
    assert len(warnings) == 1 and f"no counters in {bad}: " in warnings[0] and "WEFT_COUNTERS_DIR" in warnings[0]


def test_off_means_none_and_no_warning(start, tmp_path):
    job = start("--node-size", 1, folder="off")
    job.wait_until_counted(2)
    assert job.end() == 0 and job.errors.read_text() == ""


def test_a_full_folder_is_a_warning_and_no_bus_error(start, folder):
    unshare = shutil.which("unshare")
    inside = f"mount -t tmpfs -o size=4k tmpfs '{folder}' && head -c 4096 /dev/zero > '{folder}/filler' && exec \"$@\""
    prefix = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh"]
    if unshare is None or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a folder of his own")
    job = start("--node-size", 1, folder=folder, prefix=prefix)
    job.wait_until_counted(2)
    assert job.end() == 0
    warnings = job.errors.read_text().splitlines()
    assert len(warnings) == 2 and all("do not fit: No space left on device" in line for line in warnings)
