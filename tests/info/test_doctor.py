"""weft-info --doctor: it passes where all is well, and names what is wrong, with what changes it."""

import ctypes
import json
import platform
import resource
import shutil
import socket
import struct

import pytest

THREE_ADDRESSES = "127.0.0.1,127.0.0.2,127.0.0.3"
PR_CAPBSET_DROP = 24
CAP_IPC_LOCK = 14
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
EPERM = 1


def findings_of(done, *, step=None, grade=None):
    return [
        finding
        for one in json.loads(done.stdout)["steps"]
        if step in (None, one["name"])
        for finding in one["findings"]
        if grade in (None, finding["grade"])
    ]


def the_one(findings):
    assert len(findings) == 1, findings
    return findings[0]


def test_this_machine_over_three_addresses_is_ready_and_every_rail_reaches_every_other(info):
    done = info("--doctor", "--json", WEFT_NICS=THREE_ADDRESSES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["ready"] is True
    tried = [finding["figures"] for finding in findings_of(done, step="rails") if finding["figures"]]
    rails = [one for one in tried if "rail" in one]
    assert [one["rail"] for one in rails] == [0, 1, 2]
    for one in rails:
        assert (one["peer_rails_reached"], one["peer_rails"]) == (3, 3)
        assert one["write_8_bytes_ns"] > 0
        assert one["bytes_per_s"] > 0
    assert the_one([one for one in tried if "connect_ms" in one])["connect_ms"] > 0


def test_text_and_json_say_the_same(info):
    text = info("--doctor", WEFT_NICS="127.0.0.1,127.0.0.2")
    done = info("--doctor", "--json", WEFT_NICS="127.0.0.1,127.0.0.2")
    assert text.returncode == done.returncode == 0
    said = [line.split()[:5] for line in text.stdout.splitlines() if line.startswith(("  ok ", "  skipped ", "  note "))]
    assert said == [[finding["grade"], *finding["text"].split()[:4]] for finding in findings_of(done)]
    verdict = text.stdout[text.stdout.index("verdict: "):]
    assert "this machine is ready: a heap of 256 MiB" in verdict
    assert "2 rails over " in verdict


def test_a_provider_that_is_not_here_is_a_problem_with_its_remedy(info):
    done = info("--doctor", WEFT_PROVIDER="carrier_pigeon")
    assert done.returncode == 1
    assert "this machine is not ready: 1 problem to solve" in done.stdout
    assert "  1. WEFT_PROVIDER=carrier_pigeon: " in done.stdout
    assert "     -> unset WEFT_PROVIDER" in done.stdout


def test_a_nic_that_does_not_exist_is_a_problem_that_lists_those_that_do(info):
    done = info("--doctor", "--json", WEFT_NICS="nosuch0")
    assert done.returncode == 1
    problem = the_one(findings_of(done, grade="problem"))
    assert "nosuch0" in problem["text"]
    assert "127.0.0.1" in problem["text"]


def test_a_heap_that_no_address_space_holds_is_a_problem(info):
    done = info("--doctor", "--json", WEFT_HEAP_SIZE="1000T", WEFT_NICS="lo")
    assert done.returncode == 1
    assert "WEFT_HEAP_SIZE" in the_one(findings_of(done, step="memory", grade="problem"))["text"]
    assert findings_of(done, step="attach", grade="ok")


def test_heaps_larger_than_the_memory_are_noted_and_the_remedy_fits(info):
    done = info("--doctor", "--json", "--pes", "1000", WEFT_HEAP_SIZE="4G", WEFT_NICS="lo")
    note = the_one([one for one in findings_of(done, step="memory", grade="note") if "1000 PEs" in one["text"]])
    assert note["remedy"].startswith("WEFT_HEAP_SIZE=")


def test_too_little_locked_memory_is_noted(info):
    def limit():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)  # root's privilege to lock anyway

    done = info("--doctor", "--json", prepare=limit, WEFT_NICS="lo")
    assert done.returncode == 0
    note = the_one(findings_of(done, step="memory", grade="note"))
    assert "locked memory is limited to 64 KiB" in note["text"]
    assert "ulimit -l unlimited" in note["remedy"]
    assert "an RDMA NIC could not" in info(prepare=limit).stdout


def test_a_full_shared_memory_folder_is_noted(info):
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not here")
    mount = 'mount -t tmpfs -o size=16k tmpfs /dev/shm && exec "$0" "$@"'
    done = info("--doctor", "--json", prefix=["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
                WEFT_NICS="lo")
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"mounting is forbidden here: {done.stderr.strip()}")
    assert done.returncode == 0
    note = the_one([one for one in findings_of(done, step="memory", grade="note") if "/dev/shm" in one["text"]])
    assert note["text"].startswith("/dev/shm takes no 256 KiB: No space left on device")
    assert "remount" in note["remedy"]


def forbid_cross_memory_attach():
    """A seccomp filter as containers have it: process_vm_readv and process_vm_writev end with EPERM."""
    load_number, jump_if_equal, leave = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | EPERM
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (load_number, 0, 0, 0), (jump_if_equal, 1, 0, 310), (jump_if_equal, 0, 1, 311), (leave, 0, 0, refuse),
            (leave, 0, 0, allow),
        )
    )
    memory = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has the system calls' numbers of x86-64")
def test_forbidden_cross_memory_attach_is_noted(info):
    done = info("--doctor", "--json", prepare=forbid_cross_memory_attach, WEFT_NICS="lo")
    assert done.returncode == 0
    note = the_one(findings_of(done, step="attach"))
    assert note["grade"] == "note"
    assert "Operation not permitted" in note["text"]
    assert "ptrace_scope" in note["remedy"]


def test_a_step_that_never_ends_is_ended_and_named(info):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        done = info("--doctor", "--json", "--step-limit", "2", WEFT_PE="0", WEFT_PE_COUNT="2", WEFT_JOB_SECRET="x",
                    WEFT_RENDEZVOUS=f"127.0.0.1:{silent.getsockname()[1]}")
    assert done.returncode == 1
    problem = the_one(findings_of(done, step="rails", grade="problem"))
    assert problem["text"] == "no answer within 2 s while joining the other PEs"


def test_the_pes_of_a_job_try_each_other_and_one_speaks(info, bin_dir):
    done = info("--doctor", prefix=[str(bin_dir / "weft-run"), "-n", "3"], WEFT_NICS="127.0.0.1", WEFT_NODE_SIZE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("verdict: this job's machines are ready: ") == 1
    assert "to 1 of 1 rails of PE 1 on " in done.stdout
    assert "3 of 3 PEs found nothing to change" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--all-nics"], "--doctor"), (["--step-limit", "5"], "--doctor"), (["--doctor", "--step-limit", "0"], "0"),
        (["--doctor", "--env"], "--env"), (["--doctor", "--topology", "x.xml"], "--topology"),
        (["--doctor", "--pe", "2", "--pes", "2"], "--pe 2"),
    ],
)
def test_bad_input_is_one_line_and_status_two(info, arguments, words):
    done = info(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_wrong_variable_is_bad_input(info):
    done = info("--doctor", WEFT_RAIL_POLICE="single")
    assert done.returncode == 2
    assert "WEFT_RAIL_POLICY" in done.stderr
