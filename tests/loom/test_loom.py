"""`loom`: programs on emulated nodes, faults by command, clear words for bad input, nothing left behind. Weft runs
on it as on a cluster: each node has its NICs, whose counters are the kernel's for all tools."""
import os
import re
import signal
import subprocess
import time

import pytest

NICS = ["rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0"]


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.02)
    return value


def test_each_node_has_a_name_shared_memory_and_nics_of_its_own(loom, namespaces):
    script = "touch /dev/shm/$RANK; sleep 0.3; echo $(hostname) $(ls /sys/class/infiniband) $(ls /dev/shm)"
    ended = loom("run", "--nodes", 2, "--pes-per-node", 2, "--nics", 2, "--persona", "efa", "--", "sh", "-c", script)
    assert sorted(set(ended.stdout.splitlines())) == [f"node0 {' '.join(NICS)} 0 1", f"node1 {' '.join(NICS)} 2 3"]


def test_processes_know_their_place_as_torchrun_tells_it(loom):
    script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $LOOM_NODE $MASTER_ADDR"
    ended = loom("run", "--nodes", 2, "--pes-per-node", 2, "--", "sh", "-c", script)
    assert sorted(ended.stdout.splitlines()) == [
        "0 4 0 2 0 0 127.0.0.1", "1 4 1 2 0 0 127.0.0.1", "2 4 0 2 1 1 127.0.0.1", "3 4 1 2 1 1 127.0.0.1"]


def test_weft_needs_no_secret_on_nodes_of_one_machine(loom, bin_dir, environment):
    del environment["WEFT_JOB_SECRET"]
    ended = loom("run", "--nodes", 2, "--", bin_dir / "api_tour")
    assert "every function did what it says" in ended.stdout


def test_weft_runs_over_all_nics_of_the_nodes_and_both_counts_agree(loom, namespaces, bin_dir):
    ended = loom("run", "--nodes", 2, "--pes-per-node", 2, "--nics", 2, "--gbits", 1, "--persona", "efa", "--",
                 bin_dir / "weft-perf", "alltoall_latency", "-b", "1M", "-e", "1M", "--duration", 0.5)
    rows = re.findall(r"^(\d)\s+(rdmap\d+s0)\s+0000:\S+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$", ended.stdout, re.MULTILINE)
    assert [(host, nic) for host, nic, *_ in rows] == [(host, nic) for host in "01" for nic in NICS], ended.stdout
    for _, _, *counts in rows:
        tx, tx_kernel, rx, rx_kernel = map(int, counts)
        assert tx > 0 and tx_kernel == pytest.approx(tx, rel=0.05) and rx_kernel == pytest.approx(rx, rel=0.05)
    assert "emulated efa NICs, no real ones" in ended.stderr


@pytest.mark.parametrize("persona", ["efa-direct", "efa-rdm", "cxi", "verbs"])
def test_a_weft_program_gives_the_same_on_every_persona_in_any_order(loom, bin_dir, persona):
    ended = loom("run", "--nodes", 4, "--nics", 2, "--shredded", 1, "--jitter-us", 50, "--persona", persona, "--",
                 bin_dir / "weft-perf", "alltoall_latency", "-b", "8", "-e", "64K", "-f", 8, "-n", 10, "--verify",
                 WEFT_PROVIDER={"efa-direct": "efa", "efa-rdm": "efa"}.get(persona, persona))
    assert re.search(r"^32768 ", ended.stdout, re.MULTILINE)


def test_nics_that_refuse_unknown_peers_are_written_to_only_when_they_know_them(loom, bin_dir):
    for _ in range(3):
        ended = loom("run", "--nodes", 6, "--nics", 2, "--persona", "efa-direct", "--known-peers", 1, "--jitter-us", 500, "--",
                     bin_dir / "signal_order", 10)
        assert "does not reach" not in ended.stderr


@pytest.mark.parametrize("persona", ["efa-direct", "cxi", "verbs"])
def test_many_senders_lose_no_signal_to_a_target_that_is_stopped(loom, bin_dir, persona):
    ended = loom("run", "--nodes", 12, "--nics", 2, "--persona", persona, "--claims-guard", 1, "--",
                 bin_dir / "signal_flood", 1000, 200, 2)
    assert "round 2: 22000 of 22000 signals" in ended.stdout
    assert "does not reach" not in ended.stderr


def test_a_cut_nic_does_not_stop_a_job_and_a_healed_one_returns(loom, start, bin_dir, tmp_path):
    job = start("--nodes", 2, "--nics", 4, "--gbits", 1, "--persona", "efa", "--timeout-ms", 100, "--job", "j", "--",
                bin_dir / "weft-perf", "put_bw", "-b", "256K", "-e", "256K", "--duration", 3)

    def carried(nic):
        shown = loom("show", "--job", "j").stdout
        return int(re.search(rf"node0/{nic}\s+\S+\s+\S+\s+\d+\s+(\d+)", shown).group(1))

    wait_for(lambda: (tmp_path / "loom" / "j.fabric").exists())
    wait_for(lambda: carried(NICS[1]) > 5_000_000)
    loom("cut", f"node0/{NICS[1]}", "--job", "j")
    time.sleep(0.3)
    before, others = carried(NICS[1]), carried(NICS[0])
    time.sleep(0.3)
    assert carried(NICS[1]) == before and carried(NICS[0]) > others + 5_000_000
    loom("heal", "all", "--job", "j")
    wait_for(lambda: carried(NICS[1]) > before + 1_000_000)
    output = job.communicate(timeout=60)[0]
    assert job.returncode == 0, output
    assert f"{NICS[1]}" in output and "does not reach" in output


@pytest.mark.parametrize("persona", ["efa", "cxi"])
def test_signals_of_four_pes_never_overtake_their_data_while_nics_die(loom, start, bin_dir, tmp_path, persona):
    job = start("--nodes", 4, "--nics", 4, "--persona", persona, "--shredded", 1, "--timeout-ms", 50, "--job", "j", "--",
                bin_dir / "signal_order", 20000)
    wait_for(lambda: (tmp_path / "loom" / "j.fabric").exists())
    nics = re.findall(r"node0/(\S+)", loom("show", "--job", "j").stdout)
    for turn in range(40):
        if job.poll() is not None:
            break
        loom("cut", f"node{turn % 4}/{nics[turn % 3]}", "--job", "j", status=None)
        time.sleep(0.1)
        loom("heal", "all", "--job", "j", status=None)
        time.sleep(0.2)
    output = job.communicate(timeout=120)[0]
    assert job.returncode == 0, output
    assert output.count("20000 messages from each peer, 0 early") == 4, output


@pytest.mark.parametrize("arguments, sentence", [
    (["run", "--persona", "ib", "--", "true"], "there is no persona 'ib'; the personas are loom, efa,"),
    (["run", "--gbits", "0", "--", "true"], "--gbits is '0'; it takes a number from 0.001 to 10000"),
    (["run", "--latency-us", "soon", "--", "true"], "--latency-us is 'soon'; it takes a number from 0 to"),
    (["run", "--nodes", "64", "--pes-per-node", "8", "--nics", "4", "--", "true"], "are more than the 512 NICs"),
    (["run"], "command is required"),
    (["cut", "node0/rdmap79s0"], "there is no fabric in"),
    (["cut", "x", "--job", "none"], "there is no fabric at"),
    (["dance"], "loom --help lists the commands"),
])
def test_bad_input_gets_one_sentence(loom, arguments, sentence):
    ended = loom(*arguments, status=2)
    assert sentence in ended.stderr and len(ended.stderr.strip().splitlines()) <= 2, ended.stderr


def test_a_bad_environment_gets_one_sentence(loom):
    ended = loom("run", "--", "true", status=2, LOOM_SEED="x")
    assert "LOOM_SEED is 'x'; it takes a number from" in ended.stderr


def test_a_program_without_the_runner_makes_a_fabric_of_its_own(loom, bin_dir, environment):
    environment.update(FI_PROVIDER_PATH=str(bin_dir.parent / "lib"), LOOM_PERSONA="efa", LOOM_NICS_PER_NODE="2")
    listed = subprocess.run([bin_dir / "weft-info"], env=environment, capture_output=True, text=True, check=True)
    assert NICS[0] in listed.stdout and NICS[1] in listed.stdout and NICS[2] not in listed.stdout


def test_the_status_is_that_of_the_process_that_failed_which_is_named(loom):
    ended = loom("run", "--nodes", 2, "--", "sh", "-c", "[ $RANK = 1 ] && exit 7; sleep 60", status=7)
    assert re.search(r"loom: rank 1 on node1 \(pid \d+\) exited with status 7", ended.stderr)
    ended = loom("run", "--", "sh", "-c", "kill -KILL $$", status=137)
    assert re.search(r"loom: rank 0 on node0 \(pid \d+\) was ended by signal 9 \(Killed\)", ended.stderr)
    ended = loom("run", "--", "no-such-program", status=127)
    assert "no-such-program cannot be started: No such file or directory" in ended.stderr


def test_two_fabrics_of_other_names_run_side_by_side_and_one_name_is_used_once(loom, start, tmp_path):
    start("--job", "a", "--", "sleep", 60)
    wait_for(lambda: (tmp_path / "loom" / "a.fabric").exists())
    loom("run", "--job", "b", "--", "true")
    assert "is in use" in loom("run", "--job", "a", "--", "true", status=2).stderr


def alive(pid):
    try:
        return b"Z" not in open(f"/proc/{pid}/stat", "rb").read().split(b")")[1][:3]
    except (FileNotFoundError, ProcessLookupError):  # it ended before the file was opened, or before it was read
        return False


def test_nothing_is_left_of_a_runner_that_was_killed(loom, start, tmp_path):
    runner = start("--nodes", 2, "--job", "k", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid.$RANK; exec sleep 600")
    pids = wait_for(lambda: [f.read_text() for f in tmp_path.glob("pid.*") if f.read_text()][1:] and
                    [int(f.read_text()) for f in tmp_path.glob("pid.*")])
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    wait_for(lambda: not any(alive(pid) for pid in pids))
    loom("run", "--job", "next", "--", "true")
    assert list((tmp_path / "loom").iterdir()) == []


def test_a_runner_that_is_killed_while_a_node_starts_its_processes_leaves_none_of_them(start, tmp_path):
    script = f'''echo $$ > {tmp_path}/pid.$RANK
                 if [ $RANK = 0 ]; then
                     read -r pid name state runner rest < /proc/$PPID/stat
                     echo $PPID > {tmp_path}/node; kill -KILL $runner
                 fi
                 exec sleep 600'''
    runner = start("--pes-per-node", 64, "--", "sh", "-c", script)
    assert runner.wait(timeout=20) == -signal.SIGKILL
    node = int((tmp_path / "node").read_text())
    wait_for(lambda: not alive(node))
    assert not any(alive(int(text)) for text in (file.read_text() for file in tmp_path.glob("pid.*")) if text)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_the_processes_have_started_ends_with_the_runner(start, tmp_path, how):
    deaf = f"trap '' TERM; echo $$ > {tmp_path}/pid.$RANK; while :; do sleep 600; done"
    runner = start("--nodes", 2, "--", "sh", "-c", f'setsid sh -c "$0" & sh -c "setsid sleep 601 &"; sleep 600', deaf)
    pids = wait_for(lambda: [f.read_text() for f in tmp_path.glob("pid.*") if f.read_text()][1:] and
                    [int(f.read_text()) for f in tmp_path.glob("pid.*")])
    runner.send_signal(how)
    runner.wait(timeout=20)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert subprocess.run(["pgrep", "-f", "^sleep 601$"], capture_output=True).stdout == b""


def test_a_process_that_outlives_its_parent_ends_with_the_job(loom, tmp_path):
    loom("run", "--", "sh", "-c", f"setsid sleep 600 & echo $! > {tmp_path}/pid")
    assert not alive(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_all_processes(start, tmp_path):
    runner = start("--nodes", 2, "--", "sh", "-c", f"echo $$ > {tmp_path}/pid.$RANK; exec sleep 600")
    pids = wait_for(lambda: [f.read_text() for f in tmp_path.glob("pid.*") if f.read_text()][1:] and
                    [int(f.read_text()) for f in tmp_path.glob("pid.*")])
    runner.send_signal(signal.SIGINT)
    assert runner.wait(timeout=20) == 130
    assert not any(alive(pid) for pid in pids)
