"""Balance in time: bursts of looks, what counts of them, and the verdict "uneven in time"."""

import os
import time

import pytest
from snapshots import Machine
from weft_top.collector import Collector, SourceOptions
from weft_top.delta import Decoder, Encoder
from weft_top.document import to_document
from weft_top.model import Look, Nic, PePage, Process, Rail, Snapshot
from weft_top.moments import COUNT_MIN, PIECE_BYTES, STEP_NS, MomentTrack, NicFinder, ratio
from weft_top.rates import RateHistory
from weft_top.sources.glances import Glances, Target

MBIT = 1_000_000
RATE = 40 * MBIT
FULL = RATE // 8 // 100  # what a NIC carries in 10 ms
SECOND_NS = 1_000_000_000
NICS = 4
IN_TURN = [[FULL if nic == turn else 0 for nic in range(NICS)] for turn in range(NICS)]
TOGETHER = [[FULL] * NICS] * NICS


def nic(index, received=0, rate=RATE, kind="net", name=None):
    name = name or f"nic{index}"
    return Nic(f"{kind}:{name}", kind, name, rate_bits_per_s=rate, counters={"tx_bytes": 0, "rx_bytes": received})


def page(received=0, policy="balanced", rails=NICS, up=lambda rail: True):
    made = tuple(Rail(index, f"nic{index}", "", up(index), True, RATE, 0,
                      {"tx_bytes": 0, "rx_bytes": received, "retries": 0, "errors": 0}) for index in range(rails))
    return PePage("job/3", "job", 3, 8, Process(1, "x"), policy, "", made)


def burst(rows, start_ns=0, step_ns=STEP_NS, nics=NICS):
    """Looks between which the NICs received what the rows say."""
    totals, looks = [0] * nics, []
    for row in [[0] * nics, *rows]:
        totals = [total + step for total, step in zip(totals, row)]
        looks.append(Look(start_ns + len(looks) * step_ns, tuple((f"net:nic{i}", 0, rx) for i, rx in enumerate(totals))))
    return tuple(looks)


def watched(rows, seconds=3, **kind):
    """The last Frame of a PE whose NICs receive alike in each second, and in each burst as the rows say."""
    history = RateHistory()
    for second in range(seconds + 1):
        received = second * 25 * FULL
        looks = burst(rows, second * SECOND_NS - SECOND_NS // 2) if second else ()
        nics = tuple(nic(index, received) for index in range(NICS))
        frame = history.add(Snapshot(second * SECOND_NS, second, nics, (page(received, **kind),), (), looks))
    return frame


def test_rails_that_take_turns_are_called_uneven_in_time():
    pe = watched(IN_TURN, seconds=4).pes[0]
    assert pe.rx_balance == pytest.approx(1.0) and pe.rx_balance_in_time == pytest.approx(4.0)
    assert pe.verdict == "RX of PE 3 is uneven in time: max/mean 1.00 over a second, 4.00 in 10 ms"
    assert len(pe.verdict) <= 79
    assert to_document(watched(IN_TURN, seconds=4))["pes"][0]["rx_max_over_mean_in_10_ms"] == 4.0


def test_nics_tell_what_peers_on_other_nodes_hide():
    history = RateHistory()
    for second in range(5):
        nics = tuple(nic(index, second * 25 * FULL) for index in range(NICS))
        looks = burst(IN_TURN, second * SECOND_NS)
        frame = history.add(Snapshot(second * SECOND_NS, 0, nics, (page(),), (), looks))  # the page saw nothing arrive
    assert frame.pes[0].rx_balance is None
    assert frame.pes[0].verdict == "RX of PE 3 is uneven in time: max/mean 4.00 in 10 ms"


def test_rails_that_work_together_get_no_verdict():
    pe = watched(TOGETHER, seconds=4).pes[0]
    assert pe.rx_balance_in_time == pytest.approx(1.0) and pe.tx_balance_in_time is None and pe.verdict == ""


def test_few_intervals_say_nothing():
    assert COUNT_MIN == 10
    assert watched(IN_TURN, seconds=2).pes[0].verdict == ""  # 8 intervals
    assert watched(IN_TURN, seconds=3).pes[0].verdict != ""  # 12


def test_what_is_uneven_over_the_second_keeps_its_own_verdict():
    history = RateHistory()
    for second in range(5):
        rails = page()
        rails = PePage(*[getattr(rails, name) for name in rails.__slots__[:7]], tuple(
            rail._replace(counters=rail.counters | {"rx_bytes": second * FULL * (90 if rail.index == 1 else 1)})
            for rail in rails.rails))
        looks = burst(IN_TURN, second * SECOND_NS)
        frame = history.add(Snapshot(second * SECOND_NS, 0, tuple(map(nic, range(NICS))), (rails,), (), looks))
    assert frame.pes[0].verdict.startswith("RX of PE 3 arrives 97 % on rail 1")


def test_an_interval_counts_only_if_the_busiest_nic_was_busy_for_half_of_it():
    lines = [RATE, RATE]
    assert ratio([FULL // 2, 0], lines, 0.01) == pytest.approx(2.0)
    assert ratio([FULL // 2 - 1, 0], lines, 0.01) is None
    assert ratio([FULL, FULL], lines, 0.01) == pytest.approx(1.0)
    assert ratio([0, 0], lines, 0.01) is None and ratio([FULL], lines[:1], 0.01) is None
    assert ratio([PIECE_BYTES, 0], [RATE, None], 0.01) == pytest.approx(2.0)
    assert ratio([PIECE_BYTES - 1, 0], [RATE, None], 0.01) is None


def test_a_slow_nic_that_carries_its_share_is_even():
    assert ratio([FULL, FULL // 2], [RATE, RATE // 2], 0.01) == pytest.approx(1.0)
    assert ratio([FULL // 2, FULL // 2], [RATE, RATE // 2], 0.01) == pytest.approx(1.5)


def test_late_looks_and_old_ones_do_not_count():
    track, nics = MomentTrack(), [nic(index) for index in range(NICS)]
    track.add(burst(IN_TURN * 5, step_ns=3 * STEP_NS), nics)
    assert track.balances(SECOND_NS) == (None, None)
    track.add(burst(IN_TURN * 5), nics)
    assert track.balances(SECOND_NS) == (None, pytest.approx(4.0))
    assert track.balances(12 * SECOND_NS) == (None, None)


def test_a_nic_that_was_reset_or_is_missing_spoils_nothing():
    looks = list(burst(TOGETHER * 5))
    looks[3] = Look(looks[3].time_ns, looks[3].nics[1:])
    looks[7] = Look(looks[7].time_ns, tuple((key, 0, 0) for key, *_ in looks[7].nics))
    track = MomentTrack()
    track.add(looks, [nic(index) for index in range(NICS)])
    assert track.balances(SECOND_NS)[1] == pytest.approx(1.0)


def test_a_pe_needs_different_nics_for_its_rails():
    nics = [nic(index) for index in range(3)]
    assert NicFinder(nics).of_page(page()) == ()  # one is not in sight
    assert NicFinder(nics).of_page(page(up=lambda rail: rail < 3)) == tuple(nics)
    loopback = PePage("a/0", "a", 0, 2, Process(1, "x"), "", "", tuple(
        Rail(index, "lo", f"127.0.0.{index}", True, True, None, 0, {}) for index in range(2)))
    assert NicFinder([nic(0, name="lo")]).of_page(loopback) == ()
    efa = PePage("a/0", "a", 0, 2, Process(1, "x"), "", "h0", tuple(
        Rail(index, f"rdmap{index}s0-rdm", "", True, True, None, 0, {}) for index in range(2)))
    devices = [nic(index, kind="rdma", name=f"rdmap{index}s0") for index in range(2)]
    assert NicFinder(devices).of_page(efa) == tuple(devices)


@pytest.mark.parametrize("seed", range(3))
def test_a_recording_has_the_bursts_and_gives_the_same_verdicts(seed):
    machine, encoder, decoder = Machine(seed), Encoder(), Decoder()
    live, replayed = RateHistory(), RateHistory()
    for step in range(20):
        seen = machine.look()
        keys = [one.key for one in seen.nics]
        looks = tuple(Look(seen.time_ns - 10**8 + look * STEP_NS, tuple(
            (key, 10**12 + machine.chance.randrange(10**9), look) for key in keys)) for look in range(4))
        seen = Snapshot(seen.time_ns, seen.wall_ns, seen.nics, seen.pes, seen.notices, looks if step % 3 else ())
        played = decoder.decode(encoder.encode(seen))
        assert played == seen
        assert replayed.add(played) == live.add(seen)


def test_a_burst_looks_again_and_again_beside_the_caller(tmp_path):
    path = tmp_path / "number"
    path.write_text("7")
    descriptor = os.open(path, os.O_RDONLY)
    glances = Glances(step_ns=1_000_000, look_count=5, period_ns=10**15)
    try:
        target = Target([descriptor], lambda own: os.pread(own, 64, 0), lambda data: {"a": (int(data[0]), 1)})
        assert glances.is_due(0)
        glances.begin(0, [target])
        os.close(descriptor)  # the burst has its own
        assert not glances.is_due(10**16)
        looks = ()
        while not looks:
            looks = glances.take()
            time.sleep(0.001)
        assert [look.nics for look in looks] == [(("a", 7, 1),)] * 5
        assert all(before.time_ns < after.time_ns for before, after in zip(looks, looks[1:]))
        assert glances.take() == () and not glances.is_due(10**14) and glances.is_due(10**15)
    finally:
        glances.close()
    assert target.descriptors == []


def test_a_burst_ends_with_the_program():
    target = Target([], None, lambda data: {"a": (1, 1)})
    glances = Glances(look_count=10**6)
    glances.begin(0, [target])
    glances.close()  # the burst alone would take hours
    assert glances.is_due(10**18)


def test_nothing_is_looked_at_where_no_pe_has_several_nics(pages):
    collector = Collector(SourceOptions(pages_directory=str(pages), rdma=False, nvlink=False))
    try:
        assert collector.sample().looks == ()
        time.sleep(0.05)
        assert collector.sample().looks == ()
    finally:
        collector.close()
