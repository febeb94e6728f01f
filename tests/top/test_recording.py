"""Recordings: what is played is what was seen; files that are cut off, damaged or something else."""

import json
import zlib

import pytest
from snapshots import Machine
from weft_top.delta import Decoder, Encoder
from weft_top.frames import ReplaySource
from weft_top.rates import RateHistory
from weft_top.record import Recorder, Recording, RecordingError


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.weft")


def record(path, snapshots):
    recorder = Recorder(path)
    for snapshot in snapshots:
        recorder.write(snapshot, None)
    recorder.close()


def play(path):
    recording = Recording(path)
    played = list(recording.snapshots())
    recording.close()
    return played, recording.trouble


@pytest.mark.parametrize("seed", range(6))
def test_what_is_played_is_what_was_recorded(path, seed):
    machine = Machine(seed)
    seen = [machine.look() for _ in range(40)]
    record(path, seen)
    played, trouble = play(path)
    assert played == seen and trouble == ""


def test_the_replayed_frames_equal_the_live_ones(path):
    machine, live = Machine(3), RateHistory()
    seen = [machine.look() for _ in range(60)]
    record(path, seen)
    source = ReplaySource(Recording(path))
    for snapshot in seen:
        assert source.next_frame() == live.add(snapshot)
    assert source.next_frame() is None and source.is_replay and source.trouble == ""
    assert source.frames_interval_s == pytest.approx(0.1, rel=0.01)
    source.close()


def test_a_recording_that_is_cut_off_anywhere_plays_what_is_whole(path):
    machine = Machine(1, nic_count=2, pe_count=1)
    seen = [machine.look() for _ in range(4)]
    record(path, seen)
    data = open(path, "rb").read()
    header = data.index(b"\n") + 1
    counts = set()
    for size in range(header, len(data), 3):
        with open(path, "wb") as file:
            file.write(data[:size])
        played, trouble = play(path)
        assert played == seen[:len(played)]
        ends_between_frames = size == header or (not trouble and played)
        assert ends_between_frames or "cut off after frame" in trouble
        counts.add(len(played))
    assert counts == {0, 1, 2, 3}


def test_a_recording_of_a_program_that_was_killed_is_whole(path):
    machine = Machine(2)
    seen = [machine.look() for _ in range(5)]
    recorder = Recorder(path)
    for snapshot in seen:
        recorder.write(snapshot, None)
    assert play(path) == (seen, "")
    recorder.close()


def test_a_flipped_byte_ends_the_replay_there_with_one_message(path):
    machine = Machine(4)
    seen = [machine.look() for _ in range(6)]
    record(path, seen)
    data = bytearray(open(path, "rb").read())
    data[len(data) * 2 // 3] ^= 0x40
    with open(path, "wb") as file:
        file.write(data)
    played, trouble = play(path)
    assert 0 < len(played) < 6 and played == seen[:len(played)]
    assert trouble == f"{path} is damaged or cut off after frame {len(played)}; what comes before is whole"


@pytest.mark.parametrize("content", [b"", b"hello\n", b"weft-top recording", b"weft-top recording x {}\n",
                                     b"\x00" * 9000])
def test_a_foreign_file_is_refused(path, content):
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(RecordingError, match="is no recording of weft-top"):
        Recording(path)


def test_another_version_a_missing_file_and_a_folder_are_refused(path, tmp_path):
    with pytest.raises(RecordingError, match="No such file"):
        Recording(path)
    with pytest.raises(RecordingError, match="Is a directory"):
        Recording(str(tmp_path))
    with open(path, "wb") as file:
        file.write(b"weft-top recording 2 {}\n")
    with pytest.raises(RecordingError, match="is of version 2, this weft-top plays 1"):
        Recording(path)


@pytest.mark.parametrize(
    "document",
    [[], 5, {}, {"t": 1}, {"t": 1, "w": 2, "no": [0]}, {"t": 1, "w": 2, "n": {"0": {"c": [0, 1]}}},
     {"t": 1, "w": 2, "n": {"x": {}}}, {"t": 1, "w": 2, "n": {"0": {"f": []}}}, {"t": "a", "w": 2},
     {"t": 1, "w": 2, "e": {"0": {"f": [1, 2, [[1, []]]]}}}, {"t": 1, "w": 2, "m": [[1]]}, None],
)  # fmt: skip
def test_a_whole_block_with_nonsense_inside_is_damage(path, document):
    record(path, [])
    deflate = zlib.compressobj()
    block = deflate.compress(json.dumps(document).encode()) + deflate.flush(zlib.Z_SYNC_FLUSH)
    with open(path, "ab") as file:
        file.write(len(block).to_bytes(4, "little") + zlib.crc32(block).to_bytes(4, "little") + block)
    assert play(path) == ([], f"{path} is damaged or cut off after frame 0; what comes before is whole")


def test_what_does_not_change_takes_next_to_nothing(path):
    snapshot = Machine(5, nic_count=32, pe_count=8).look()
    record(path, [snapshot])
    first = len(open(path, "rb").read())
    record(path, [snapshot] * 101)
    assert (len(open(path, "rb").read()) - first) / 100 < 60


def test_documents_say_only_what_is_new():
    machine, encoder, decoder = Machine(6, pe_count=1), Encoder(), Decoder()
    first = machine.look()
    encoder.encode(first)
    again = encoder.encode(first)
    assert again == {"t": 0, "w": 0}
    document = Encoder().encode(first)
    assert decoder.decode(json.loads(json.dumps(document))) == first
