"""RateHistory: rates, wraps, resets, balance, verdicts, events. Pure."""

import dataclasses
import random

import pytest
from weft_top.model import Nic, PePage, PeerTraffic, Process, Rail, Snapshot
from weft_top.rates import RateHistory
from weft_top.tracks import CounterTrack, wrap_of

STEP_NS = 100_000_000


def snapshot(step, nics=(), pes=()):
    return Snapshot(step * STEP_NS, 10**18 + step * STEP_NS, tuple(nics), tuple(pes))


def nic(rate=None, state="up", name="nic0", **counters):
    return Nic(f"net:/{name}", "net", name, state=state, rate_bits_per_s=rate, counters=counters)


def rail(index, up=True, rate=None, outstanding=0, **counters):
    names = dict(tx_bytes=0, rx_bytes=0, retries=0, errors=0)
    return Rail(index, f"nic{index}", "", up, True, rate, outstanding, names | counters)


def page(pe, rails, peers=(), policy="coupled", pid=None, job="a"):
    process = Process(pid or 100 + pe, "x")
    return PePage(f"{job}/{pe}", job, pe, 2, process, policy, "", tuple(rails), tuple(peers))


def last_frame(snapshots):
    history = RateHistory()
    return [history.add(one) for one in snapshots][-1]


def test_the_rate_is_the_average_of_the_last_second():
    # 10 steps of 1000 bytes, then 5 steps of 3000: the last second holds 5 of each.
    totals = [0]
    for step in range(15):
        totals.append(totals[-1] + (1000 if step < 10 else 3000))
    frame = last_frame(snapshot(step, [nic(tx_bytes=total, rx_bytes=0)]) for step, total in enumerate(totals))
    assert frame.nics[0].rates["tx_bytes"] == pytest.approx(20_000)
    assert frame.nics[0].tx_bits_per_s == pytest.approx(160_000)
    assert frame.nics[0].rx_bits_per_s == 0
    assert frame.interval_s == pytest.approx(0.1)


def test_nothing_is_known_from_one_look_and_the_share_needs_a_line_rate():
    first = last_frame([snapshot(0, [nic(tx_bytes=5, rx_bytes=5)])])
    assert first.nics[0].tx_bits_per_s is None and first.nics[0].rates == {}
    second = last_frame(snapshot(step, [nic(rate=8000, tx_bytes=step * 150, rx_bytes=0)]) for step in range(11))
    assert second.nics[0].tx_share == pytest.approx(1.5)
    third = last_frame(snapshot(step, [nic(tx_bytes=step, rx_bytes=0)]) for step in range(3))
    assert third.nics[0].tx_share is None


def test_a_counter_of_32_bits_that_wraps_keeps_its_rate():
    values = [(1 << 32) - 5000 + 1000 * step for step in range(11)]
    frame = last_frame(snapshot(step, [nic(tx_bytes=value % (1 << 32))]) for step, value in enumerate(values))
    assert frame.nics[0].rates["tx_bytes"] == pytest.approx(10_000)
    assert not frame.events


def test_a_reset_gives_no_rate_for_that_step_and_an_event():
    history = RateHistory()
    for step in range(5):
        history.add(snapshot(step, [nic(tx_bytes=10**12 + step * 1000, rx_bytes=7)]))
    frame = history.add(snapshot(5, [nic(tx_bytes=500, rx_bytes=7)]))
    assert "tx_bytes" not in frame.nics[0].rates and frame.nics[0].tx_bits_per_s is None
    assert frame.nics[0].rates["rx_bytes"] == 0
    assert [(event.text, event.severity) for event in frame.events] == [("counters began anew: tx_bytes", "info")]
    frame = history.add(snapshot(6, [nic(tx_bytes=1500, rx_bytes=7)]))
    assert frame.nics[0].rates["tx_bytes"] == pytest.approx(10_000)
    assert not frame.events


@pytest.mark.parametrize(
    "before, after, step_max, modulus",
    [
        ((1 << 32) - 1, 0, None, 1 << 32),
        ((1 << 32) - 1, 0, 1e9, 1 << 32),
        ((1 << 32) - 1, 1 << 29, 1000, 0),  # a NIC of that line rate cannot have sent so much
        (1000, 5, None, 0),
        (1 << 31, 5, None, 0),  # it was not near its end
        ((1 << 34) - 4, 0, 1e9, 1 << 34),  # 32 bits of words of 4 bytes
        ((1 << 34) - 4, 0, None, 0),  # believed only where the line rate is known
        (1 << 40, 3, 1e9, 0),
    ],
)
def test_a_wrap_is_believed_only_where_it_is_likely(before, after, step_max, modulus):
    assert wrap_of(before, after, step_max) == modulus


def test_no_rate_is_ever_negative_whatever_the_counters_do():
    chance = random.Random(7)
    for _ in range(100):
        history, value = RateHistory(), chance.choice([0, 1 << 31, (1 << 32) - 100, 1 << 63, (1 << 64) - 1])
        for step in range(25):
            value = chance.choice([value, value + chance.randrange(10**6), value // 2, chance.randrange(1 << 64), 0])
            names = chance.sample(["tx_bytes", "rx_bytes", "odd"], chance.randrange(4))
            made = nic(rate=chance.choice([None, 10**9]), **dict.fromkeys(names, value))
            present = [] if chance.random() < 0.1 else [made]
            puts = [PeerTraffic(1, 0, value, 0)] if chance.random() < 0.7 else []
            pes = [page(0, [rail(0, tx_bytes=value), rail(1)], puts), page(1, [rail(0), rail(1)])]
            frame = history.add(snapshot(step, present, pes))
            rates = [rate for entry in frame.nics for rate in entry.rates.values()]
            for pe in frame.pes:
                rates += [rate for entry in pe.rails for rate in entry.rates.values()] + list(pe.traffic.values())
            assert all(rate >= 0 for rate in rates)


def test_a_history_has_a_point_a_second_and_a_minute_at_most():
    history = RateHistory()
    for step in range(900):
        frame = history.add(snapshot(step, [nic(tx_bytes=step * 1000, rx_bytes=step * 500)]))
        if step == 35:
            assert len(frame.nics[0].history) == 3
    points = frame.nics[0].history
    assert len(points) == 60
    assert points[-1] == pytest.approx((80_000, 40_000))


def test_a_put_is_counted_as_rx_of_the_rail_that_it_went_to():
    def look(step):
        puts = [PeerTraffic(1, rail, step * load, 0) for rail, load in enumerate((1000, 97_000, 2000))]
        sender = page(0, [rail(index, tx_bytes=step * 33_333) for index in range(3)], puts)
        return snapshot(step, (), [sender, page(1, [rail(index) for index in range(3)])])

    sender, target = last_frame(look(step) for step in range(11)).pes
    assert target.rails[1].rx_bits_per_s == pytest.approx(970_000 * 8)
    assert target.rails[1].rates["rx_bytes_by_puts"] == pytest.approx(970_000)
    assert target.worst_rx_rail == 1 and target.rx_balance == pytest.approx(2.91)
    assert target.tx_balance is None and target.worst_tx_rail is None
    assert target.verdict == "RX of PE 1 arrives 97 % on rail 1; policy is coupled; balanced would spread it"
    assert sender.tx_balance == pytest.approx(1.0) and sender.verdict == ""
    assert sender.traffic[1, 1] == pytest.approx(970_000)


def test_a_get_is_counted_as_tx_of_the_rail_that_it_came_from():
    def look(step):
        getter = page(0, [rail(0, rx_bytes=step * 90_000), rail(1)], [PeerTraffic(1, 1, 0, step * 90_000)])
        return snapshot(step, (), [getter, page(1, [rail(0), rail(1)])])

    getter, source = last_frame(look(step) for step in range(11)).pes
    assert getter.rails[0].rx_bits_per_s == source.rails[1].tx_bits_per_s == pytest.approx(7_200_000)
    assert source.verdict == "TX of PE 1 leaves 100 % by rail 1; policy is coupled; balanced would spread it"


def test_a_page_that_was_not_read_again_keeps_its_rates_and_its_own_time():
    def look(step):
        read = step // 2 * 2
        made = page(0, [rail(0, tx_bytes=read * 100_000), rail(1)])
        return snapshot(step, (), [dataclasses.replace(made, read_ns=(read + 1) * STEP_NS)])

    history = RateHistory()
    frames = [history.add(look(step)) for step in range(20)]
    assert frames[19].pes is frames[18].pes and frames[18].pes is not frames[17].pes
    assert frames[18].pes[0].rails[0].tx_bits_per_s == pytest.approx(8_000_000)


def test_pages_of_other_jobs_do_not_add_to_a_pe():
    def look(step):
        other = page(0, [rail(0), rail(1)], [PeerTraffic(1, 0, step * 10**6, 0)], job="b")
        return snapshot(step, (), [page(1, [rail(0), rail(1)]), other])

    assert last_frame(look(step) for step in range(11)).pes[0].rails[0].rx_bits_per_s == 0


@pytest.mark.parametrize(
    "policy, rails, words",
    [
        ("single", [(True, 9, None), (True, 0, None)], "policy is single; balanced would spread it"),
        ("balanced", [(True, 9, None), (False, 0, None), (True, 3, None)], "rail 1 is down"),
        ("balanced", [(True, 9, None), (True, 1, None)], "policy is balanced already"),
        ("", [(True, 9, None), (True, 1, None)], "policy is unknown"),
        ("balanced", [(True, 9, 9000), (True, 1, 1000)], ""),  # as much as each can carry
        ("balanced", [(True, 5, 9000), (True, 5, 1000)], "50 % by rail 1, which has 10 % of the line rate; policy is balanced"),
        ("coupled", [(True, 5, None), (True, 5, None)], ""),
        ("coupled", [(True, 9, None)], ""),
    ],
)
def test_a_verdict_names_what_would_help(policy, rails, words):
    def look(step):
        made = [rail(i, up, line, tx_bytes=step * load * 100_000) for i, (up, load, line) in enumerate(rails)]
        return snapshot(step, (), [page(3, made, policy=policy)])

    verdict = last_frame(look(step) for step in range(11)).pes[0].verdict
    assert words in verdict and bool(words) == bool(verdict)


def slow_nic(policy, loads, lines):
    """A PE whose page knows no line rates, as over tcp; its NICs do."""
    def look(step):
        nics = [nic(line, name=f"nic{i}", tx_bytes=0, rx_bytes=0) for i, line in enumerate(lines)]
        rails = [rail(i, tx_bytes=step * load * 100_000) for i, load in enumerate(loads)]
        return snapshot(step, nics, [page(4, rails, policy=policy)])

    return last_frame(look(step) for step in range(11)).pes[0]


def test_rails_are_judged_by_the_line_rates_of_their_nics():
    right = slow_nic("balanced", [1, 2, 2, 2], [10**9, 2 * 10**9, 2 * 10**9, 2 * 10**9])
    assert right.verdict == "" and right.tx_balance == pytest.approx(1.0)
    wrong = slow_nic("offset", [2, 2, 2, 2], [10**9, 2 * 10**9, 2 * 10**9, 2 * 10**9])
    assert wrong.tx_balance == pytest.approx(1.75) and wrong.worst_tx_rail == 0
    assert wrong.verdict.startswith("TX of PE 4 leaves 25 % by rail 0, which has 14 % of the line rate; policy is offset")
    equal = slow_nic("coupled", [1, 2, 2, 2], [10**9] * 4)
    assert equal.tx_balance == pytest.approx(8 / 7) and equal.verdict.startswith("TX of PE 4 leaves 29 % by rail 1; policy")


def test_a_few_control_messages_are_no_imbalance():
    frame = last_frame(snapshot(step, (), [page(0, [rail(0, tx_bytes=step * 100), rail(1)])]) for step in range(11))
    assert frame.pes[0].tx_balance is None and frame.pes[0].verdict == ""


def test_what_comes_goes_and_breaks_becomes_an_event():
    history = RateHistory()
    assert not history.add(snapshot(0, [nic(tx_errors=0)], [page(0, [rail(0)])])).events
    events = history.add(snapshot(1, [nic(tx_errors=2, state="down"), nic(name="nic1")], [
        page(0, [rail(0, up=False, errors=1)]), page(1, [])])).events
    assert {(event.subject, event.text, event.severity) for event in events} == {
        ("NIC nic0", "is down, was up", "error"),
        ("NIC nic0", "2 TX errors", "error"),
        ("NIC nic1", "appeared, up", "info"),
        ("PE 0 rail 0 (nic0)", "is down", "error"),
        ("PE 0 rail 0 (nic0)", "1 failed operations", "error"),
        ("PE 1 of job a", "began: process 101, 0 rails, policy coupled", "info"),
    }
    events = history.add(snapshot(2, [nic(tx_errors=2)], [page(0, [rail(0, errors=1)], pid=7)])).events
    assert {(event.subject, event.text) for event in events} == {
        ("NIC nic0", "is up, was down"), ("NIC nic1", "is gone"),
        ("PE 0 of job a", "ended"), ("PE 1 of job a", "ended"),
        ("PE 0 of job a", "began: process 7, 1 rails, policy coupled"),
    }  # fmt: skip


def test_what_keeps_happening_is_reported_every_ten_seconds_with_its_sum():
    history, texts = RateHistory(), []
    for step in range(250):
        texts += [event.text for event in history.add(snapshot(step, [nic(rx_drops=step * 2)])).events]
    assert texts == ["2 packets dropped in RX", "200 packets dropped in RX", "200 packets dropped in RX"]


def test_a_counter_that_was_reset_twice_in_the_window_still_has_a_rate_of_what_followed():
    track = CounterTrack(1.0)
    for step, value in enumerate([100, 200, 50, 150, 20, 120, 220]):
        track.add(step * STEP_NS, {"a": value, "b": step})
    assert track.rates() == {"a": pytest.approx(1000), "b": pytest.approx(10)}
