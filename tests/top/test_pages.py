"""Counter pages: what is read, and everything that can be wrong with them."""

import os
import struct
import subprocess
import sys
import threading

import pytest
from page_files import PageFile
from weft_top.collector import Collector, SourceOptions
from weft_top.sources.pages import PageSource

SECOND = 1_000_000_000


def label(inode, pid):
    return "" if inode == os.stat("/proc/self/ns/net").st_ino else f"net:[{inode}]"


def read(source, second=0):
    return source.read(second * SECOND, label)


def texts(source):
    return [notice.text for notice in source.notices()]


def test_a_page_is_read_with_its_rails_and_peers(pages):
    written = PageFile(pages, pe=1, pe_count=3, job="train-7")
    written.rails[2].update(tx_bytes=1 << 40, rx_bytes=2, tx_operations=3, rx_operations=4, tx_signals=5, rx_signals=6,
                            outstanding=7, retries=8, errors=9, rx_message_bytes=1, refused=10, up=0, warm=0, rate=100_000_000_000)
    written.peers = {(0, 1): (11, 0), (2, 3): (0, 13)}
    written.save()
    source = PageSource(str(pages))
    page, = read(source)
    assert (page.key, page.job, page.pe, page.pe_count, page.policy) == ("train-7/1", "train-7", 1, 3, "coupled")
    assert page.process.pid == os.getpid() and page.namespace == ""
    rail = page.rails[2]
    assert (rail.index, rail.nic, rail.address, rail.up, rail.warm) == (2, "nic2", "10.0.0.3", False, False)
    assert rail.rate_bits_per_s == 100_000_000_000 and rail.outstanding_bytes == 7
    assert rail.counters == dict(tx_bytes=1 << 40, rx_bytes=2, tx_operations=3, rx_operations=4, tx_signals=5,
                                 rx_signals=6, retries=8, errors=9, rx_message_bytes=1, refused=10)
    assert page.rails[0].rate_bits_per_s is None
    assert [(p.peer, p.rail, p.put_bytes, p.get_bytes) for p in page.peers] == [(0, 1, 11, 0), (2, 3, 0, 13)]
    assert source.notices() == []


def test_what_did_not_change_is_not_parsed_again_but_was_read(pages):
    written = PageFile(pages).save()
    source = PageSource(str(pages))
    first, = read(source, 1)
    again, = read(source, 2)
    assert again.rails is first.rails and again.peers is first.peers
    assert (first.read_ns, again.read_ns) == (SECOND, 2 * SECOND)
    written.rails[1]["tx_bytes"] = 5
    written.save()
    second, = read(source)
    assert second.rails[1].counters["tx_bytes"] == 5 and second.rails[0] == first.rails[0]


def test_a_job_of_one_node_has_pages_without_rails(pages):
    PageFile(pages, rails=0).save()
    page, = read(PageSource(str(pages)))
    assert page.rails == () and page.peers == ()


def test_pages_come_and_go_without_waiting_a_second(pages):
    source = PageSource(str(pages))
    assert read(source) == []
    first, second = PageFile(pages, pe=0).save(), PageFile(pages, pe=1).save()
    assert [page.pe for page in read(source)] == [0, 1]
    first.path.unlink()
    assert [page.pe for page in read(source)] == [1]
    second.path.unlink()
    assert read(source) == [] and source.notices() == []


def test_a_page_of_a_dead_process_is_left_out_and_named_once(pages):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    living = PageFile(pages, pe=1, pid=child.pid).save()
    source = PageSource(str(pages))
    assert len(read(source)) == 1
    child.communicate(b"\n")
    assert read(source, 2) == []
    assert texts(source) == [f"{living.path.name} in {pages} belongs to a process that is gone; it may be deleted"]
    assert len(read(PageSource(str(pages), trusted=True))) == 1


def test_a_number_that_was_given_to_another_process_is_noticed(pages):
    written = PageFile(pages)
    written.ticks -= 1
    written.save()
    source = PageSource(str(pages))
    assert read(source) == [] and "is gone" in texts(source)[0]


@pytest.mark.parametrize(
    "offset, word, words",
    [
        (0, 0x12345678, "is no counter page"),
        (4, 1, "is of version 1, this weft-top reads 2"),
        (4, 3, "is of version 3, this weft-top reads 2"),
        (8, 256, "is damaged"),
        (12, 64, "is damaged"),
        (16, 5000, "is damaged"),  # rails beyond the file
        (16, 0xFFFFFFFF, "is damaged"),
        (20, 8, "is damaged"),
        (24, 0xFFFFFFFF, "is damaged"),  # rails for each peer
        (28, 9, "is damaged"),  # the PE, of 2
        (32, 0xFFFFFFFF, "is damaged"),  # PEs
        (48, 1 << 30, "is truncated"),  # the file's size
        (56, 8, "is damaged"),  # where the rails are: in the header
        (60, 1, "is damaged"),  # far beyond 4 GiB
        (64, 1 << 30, "is damaged"),  # where the peers are
    ],
)
def test_a_page_whose_numbers_do_not_fit_is_refused_alone(pages, offset, word, words):
    broken = PageFile(pages, pe=0)
    broken.overrides[offset] = word
    broken.save()
    PageFile(pages, pe=1).save()
    source = PageSource(str(pages))
    assert [page.pe for page in read(source)] == [1]
    notice, = texts(source)
    assert notice.startswith(broken.path.name) and words in notice
    assert [page.pe for page in read(source, 5)] == [1] and len(texts(source)) == 1


@pytest.mark.parametrize("size", [0, 1, 100, 383, 384, 700, 1400])
def test_a_truncated_page_is_refused(pages, size):
    written = PageFile(pages)
    written.path.write_bytes(written.bytes()[:size])
    source = PageSource(str(pages))
    assert read(source) == [] and "is truncated" in texts(source)[0]


def test_a_page_that_shrinks_while_it_is_read_is_refused_and_taken_again_when_whole(pages):
    written = PageFile(pages).save()
    source = PageSource(str(pages))
    assert len(read(source)) == 1
    os.truncate(written.path, 500)
    assert read(source) == [] and "is truncated" in texts(source)[0]
    written.save()
    assert len(read(source, 3)) == 1 and source.notices() == []


def test_what_is_no_file_is_refused(pages):
    os.mkfifo(pages / "weft-0-pipe-0-1.page")
    (pages / "weft-0-folder-0-1.page").mkdir()
    (pages / "weft-0-link-0-1.page").symlink_to("/dev/zero")
    (pages / ".weft-0-new-0-1.page").write_bytes(b"x")
    (pages / "other.page").write_bytes(b"x")
    source = PageSource(str(pages))
    assert read(source) == []
    assert len(texts(source)) == 3


def test_text_cannot_reach_the_terminal_as_control_characters(pages):
    written = PageFile(pages, job="a")
    written.job, written.policy = b"\x1b[2Jevil\r\n\xff" + b"j" * 100, "bal\tanced"
    written.rails[0]["nic"] = "\x1b]0;title\x07"
    written.save()
    page, = read(PageSource(str(pages)))
    shown = page.job + page.policy + page.rails[0].nic
    assert shown.isprintable() and "evil" in page.job and page.policy == "bal?anced"


def test_two_jobs_of_one_name_stay_apart(pages):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        PageFile(pages).save()
        PageFile(pages, pid=child.pid).save()
        keys = [page.key for page in read(PageSource(str(pages)))]
        assert len(set(keys)) == 2
    finally:
        child.communicate(b"\n")


def test_a_file_that_replaces_a_page_under_its_name_is_read_anew(pages):
    written = PageFile(pages).save()
    source = PageSource(str(pages))
    read(source)
    other = PageFile(pages)
    other.policy = "balanced"
    other.path = pages / "new"
    other.save().path.rename(written.path)
    read(source, 2)
    assert read(source, 4)[0].policy == "balanced"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_page_of_another_user_that_may_not_be_read_is_said(pages):
    PageFile(pages).save().path.chmod(0)
    source = PageSource(str(pages))
    assert read(source) == [] and "belongs to another user" in texts(source)[0]


def test_another_user_sees_what_may_be_read_and_hears_of_the_rest(pages):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    child = os.fork()
    if child == 0:
        try:
            PageFile(pages, pe=0).save()
            PageFile(pages, pe=1).save().path.chmod(0)
            os.chdir(pages)
            os.setegid(54321)
            os.seteuid(54321)
            source = PageSource(".")
            seen = read(source)
            os._exit(0 if [page.pe for page in seen] == [0] and "another user" in texts(source)[0] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_missing_directory_is_one_notice(tmp_path):
    source = PageSource(str(tmp_path / "none"))
    assert read(source) == [] and read(source, 1) == []
    assert len(texts(source)) == 1 and "WEFT_COUNTERS_DIR" in texts(source)[0]


def test_any_bytes_at_all_are_survived(pages):
    """Headers with one word replaced at every place, by every kind of number."""
    whole = PageFile(pages, rails=2)
    data, path = whole.bytes(), whole.path
    for offset in range(0, 104, 4):
        for word in (0, 1, 2, 255, 1 << 16, 1 << 31, 0xFFFFFFFF):
            path.write_bytes(data[:offset] + struct.pack("<I", word) + data[offset + 4:])
            source = PageSource(str(pages))
            read(source)
            source.close()


def test_a_page_that_is_rewritten_all_the_time_gives_only_whole_values(pages):
    """A writer flips all counters between two values; a reader never sees a third one in any single counter."""
    low, high = 0x0101010101010101, 0x0202020202020202
    written = PageFile(pages, rails=8)
    images = []
    for value in (low, high):
        for rail in written.rails:
            rail.update(tx_bytes=value, rx_bytes=value, retries=value)
        images.append(written.bytes())
    written.save()
    stop = threading.Event()

    def flip():
        descriptor = os.open(written.path, os.O_WRONLY)
        while not stop.is_set():
            for image in images:
                os.pwrite(descriptor, image[384:], 384)
        os.close(descriptor)

    writer = threading.Thread(target=flip)
    writer.start()
    try:
        source = PageSource(str(pages))
        for _ in range(300):
            page, = read(source)
            assert all(rail.counters["tx_bytes"] in (low, high) for rail in page.rails)
    finally:
        stop.set()
        writer.join()


def test_the_collector_says_what_is_wrong_and_goes_on(pages, devices):
    PageFile(pages, pe=0).save()
    broken = PageFile(pages, pe=1)
    broken.overrides[4] = 9
    broken.save()
    places = dict(pages_directory=str(pages), rdma_root=str(devices), lab_directory="/nonexistent")
    collector = Collector(SourceOptions(**places))
    try:
        snapshot = collector.sample()
        assert [page.pe for page in snapshot.pes] == [0]
        assert [(notice.source, "version 9" in notice.text) for notice in snapshot.notices] == [("pages", True)]
        assert any(nic.name == "lo" for nic in snapshot.nics)
        collector._nic_sources[0].read = lambda *_: 1 / 0
        for _ in range(2):
            snapshot = collector.sample()
        assert [notice.text for notice in snapshot.notices if notice.source == "rdma"] == [
            "failed (ZeroDivisionError: division by zero); it is tried again every 5 s"]
        assert snapshot.pes and any(nic.name == "lo" for nic in snapshot.nics)
    finally:
        collector.close()
