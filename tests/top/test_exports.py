"""JSON, the table, Perfetto traces and Prometheus' metrics, read by other people's parsers where there are any."""

import json
import re
import urllib.request

import pytest
from snapshots import Machine
from weft_top import prometheus
from weft_top.document import to_document
from weft_top.model import Nic, Notice, PePage, PeerTraffic, Process, Rail, Snapshot
from weft_top.perfetto import PerfettoTrace
from weft_top.rates import RateHistory
from weft_top.table import format_frame

parser = pytest.importorskip("prometheus_client.parser", reason="the package prometheus_client is not installed")


def uneven_snapshot(step):
    """Two PEs of four rails; PE 0 puts 97 % to rail 1 of PE 1."""
    counters = dict(tx_bytes=step * 12_500_000, rx_bytes=0, tx_drops=1, rx_drops=2, tx_errors=0, rx_errors=3, blue=step)
    nics = (
        Nic("net:h0/nic0", "net", "nic0", "h0", "up", 10**9, "veth", "10.88.0.1", counters, (Process(5, "a"),)),
        Nic("net:/dead", "net", "dead", "", "down", None, "", "", {"tx_bytes": 0}),
        Nic("net:/quiet", "net", "quiet", "", "unknown", None, "", "", {"tx_bytes": 7}),
    )
    names = ("tx_operations", "rx_operations", "tx_signals", "rx_signals", "retries", "errors", "refused")

    def rails(pe):
        return tuple(Rail(rail, f"nic{rail}", "", rail != 3, True, 10**9 if rail else None, 9,
                          dict(tx_bytes=step * 1_250_000 * (1 - pe), rx_bytes=0, **dict.fromkeys(names, 4)))
                     for rail in range(4))

    peers = tuple(PeerTraffic(1, rail, step * (4_850_000 if rail == 1 else 50_000), 0) for rail in range(4))
    pes = tuple(PePage(f"train/{pe}", "train", pe, 2, Process(pe + 5, "a"), "coupled", "h0", rails(pe),
                       peers if pe == 0 else ()) for pe in range(2))
    return Snapshot(step * 10**8, 1_700_000_000_000_000_000 + step * 10**8, nics, pes, (Notice("nvlink", "none"),))


@pytest.fixture
def frame():
    history = RateHistory()
    return [history.add(uneven_snapshot(step)) for step in range(11)][-1]


def test_the_document_has_every_figure_with_its_unit(frame):
    document = json.loads(json.dumps(to_document(frame)))
    assert document["version"] == 1 and document["time"] == "2023-11-14T22:13:21.000Z"
    nic = document["nics"][0]
    assert nic["tx_bits_per_s"] == 10**9 and nic["tx_share"] == 1.0 and nic["counters"]["blue"] == 10
    assert nic["processes"] == [{"pid": 5, "command": "a"}]
    assert document["nics"][1]["rx_bits_per_s"] is None
    pe = document["pes"][1]
    assert pe["rx_max_over_mean"] == pytest.approx(3.88) and pe["worst_rx_rail"] == 1
    assert pe["rails"][1]["rx_bits_per_s"] == pytest.approx(388_000_000)
    assert document["pes"][0]["peers"][1]["bytes_per_s"] == pytest.approx(48_500_000)
    assert pe["verdict"].startswith("RX of PE 1 arrives 97 % on rail 1")
    assert document["notices"] == [{"source": "nvlink", "text": "none"}]


@pytest.mark.parametrize("unit, figure", [("Gbit/s", "1.000"), ("GB/s", "0.125")])
def test_the_table_fits_80_columns_and_says_what_is_wrong(frame, unit, figure):
    text = format_frame(frame, unit)
    assert max(map(len, text.splitlines())) <= 80
    row = next(line for line in text.splitlines() if line.startswith("h0:nic0"))
    assert row.split() == ["h0:nic0", "up", figure, figure, "100", "0.000", "0", "3", "3"]
    assert "RX of PE 1 arrives 97 % on rail 1; rail 3 is down" in text
    assert "(1 that are down and never carried anything are left out)" in text
    assert "note: nvlink: none" in text
    assert next(line for line in text.splitlines() if line.startswith("train")).split()[3] == "3/4"


def test_the_table_of_nothing_says_so():
    assert format_frame(RateHistory().add(Snapshot(0, 0)), "Gbit/s") == "no NIC was found"


# ---- Perfetto ------------------------------------------------------------------------------------


def test_a_trace_is_whole_json_after_every_frame_and_has_a_track_for_each_nic_and_rail(tmp_path):
    path, history, machine = tmp_path / "trace.json", RateHistory(), Machine(8)
    trace = PerfettoTrace(str(path))
    assert json.loads(path.read_text())
    for _ in range(30):
        frame = history.add(machine.look())
        trace.write(None, frame)
        events = json.loads(path.read_text())
    trace.close()
    names = {event["args"]["name"]: event["pid"] for event in events if event["ph"] == "M"}
    assert {"NICs of h0", "PE 0 of job job", "weft-top events"} <= names.keys()
    counters = [event for event in events if event["ph"] == "C"]
    assert {event["pid"] for event in counters} <= set(names.values())
    tracks = {(event["pid"], event["name"]) for event in counters}
    assert (names["NICs of h0"], "nic0 (net) TX") in tracks and (names["PE 0 of job job"], "rail 3 (nic3) RX") in tracks
    assert all(set(event["args"]) == {"Mbit/s"} and event["args"]["Mbit/s"] >= 0 for event in counters)
    times = [event["ts"] for event in counters]
    assert times == sorted(times) and times[-1] == pytest.approx(2_900_000, rel=0.01)
    assert any(event["ph"] == "i" and event["s"] == "g" and "is gone" in event["name"] for event in events)


def test_a_counter_in_a_trace_is_written_only_when_it_changes(tmp_path, frame):
    path = tmp_path / "trace.json"
    trace = PerfettoTrace(str(path))
    trace.write(None, frame)
    size = path.stat().st_size
    trace.write(None, frame)
    trace.close()
    assert path.stat().st_size == size


# ---- Prometheus ----------------------------------------------------------------------------------


@pytest.fixture
def exporter():
    made = prometheus.Exporter("127.0.0.1", 0)
    yield made
    made.close()


def scrape(exporter):
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        return list(parser.text_string_to_metric_families(answer.read().decode()))


def test_what_is_served_is_read_by_prometheus_own_parser(exporter, frame):
    exporter.write(None, frame)
    families = {family.name: family for family in scrape(exporter)}
    assert all(family.documentation for family in families.values())
    sent = {(s.labels["pe"], s.labels["rail"]): s for s in families["weft_rail_transmit_bytes"].samples}
    assert sent["0", "2"].labels == {"job": "train", "pe": "0", "rail": "2", "nic": "nic2"}
    assert sent["0", "2"].value == 12_500_000
    assert families["weft_rail_transmit_bytes"].type == "counter"
    assert families["weft_rail_transmit_bytes"].samples[0].name == "weft_rail_transmit_bytes_total"
    ratio = {(s.labels["pe"], s.labels["direction"]): s.value for s in families["weft_pe_balance_ratio"].samples}
    assert ratio["1", "receive"] == pytest.approx(3.88)
    up = {sample.labels["nic"]: sample.value for sample in families["weft_nic_up"].samples}
    assert up == {"nic0": 1, "dead": 0}
    line, = families["weft_nic_line_rate_bytes_per_second"].samples
    assert line.value == 125_000_000
    other, = families["weft_nic_device_counter"].samples
    assert other.labels == {"kind": "net", "nic": "nic0", "namespace": "h0", "counter": "blue"} and other.value == 10
    assert families["weft_top_last_sample_timestamp_seconds"].samples[0].value == pytest.approx(1_700_000_001)


def test_names_and_units_are_as_prometheus_wants_them(exporter, frame):
    exporter.write(None, frame)
    for family in scrape(exporter):
        assert re.fullmatch(r"weft_[a-z_]+", family.name)
        assert "bit" not in family.name and not family.name.endswith(("_ms", "_percent"))
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")


def test_labels_with_odd_characters_survive_and_before_the_first_look_there_is_nothing(exporter):
    assert scrape(exporter) == []
    odd = 'a"b\\c\u00e9?'
    nic = Nic("net:/x", "net", odd, "", "up", None, "", "", {"tx_bytes": 1, odd: 2})
    exporter.write(None, RateHistory().add(Snapshot(0, 0, (nic,))))
    families = {family.name: family for family in scrape(exporter)}
    assert families["weft_nic_transmit_bytes"].samples[0].labels["nic"] == odd


@pytest.mark.parametrize("text, wanted", [
    (":9400", ("127.0.0.1", 9400)), ("9400", ("127.0.0.1", 9400)), ("0.0.0.0:1", ("0.0.0.0", 1)),
    ("[::1]:80", ("::1", 80)), ("node7:9400", ("node7", 9400))])
def test_an_address_is_on_loopback_unless_a_host_is_given(text, wanted):
    assert prometheus.parse_address(text) == wanted


@pytest.mark.parametrize("text", ["", ":", "a:", ":x", ":70000", "http://a:1", ":-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="write for example"):
        prometheus.parse_address(text)


def exported_names():
    """Every name that may be served, with _total where it is a counter."""
    names = set()
    for value in vars(prometheus).values():
        for metric in value.values() if isinstance(value, dict) else [value]:
            if isinstance(metric, prometheus.Metric):
                names |= {metric.name, metric.name + "_total"}
    return names


def test_the_dashboard_asks_only_for_metrics_that_exist(project):
    folder = project / "examples" / "monitoring"
    dashboard = json.loads((folder / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    expressions += [variable["query"] for variable in dashboard["templating"]["list"] if "query" in variable]
    found = {name for text in expressions for name in re.findall(r"\bweft_\w+", text)}
    assert len(found) >= 8 and found <= exported_names()


def test_the_guide_lists_every_metric(project):
    text = (project / "docs" / "WEFT_TOP.md").read_text()
    listed = set(re.findall(r"`(weft_\w+)`", text))
    assert {name for name in exported_names() if not name.endswith("_total")} <= {
        name.removesuffix("_total") for name in listed}
    assert listed <= exported_names()


def test_the_daemonset_parses_and_names_only_options_that_exist(project):
    yaml = pytest.importorskip("yaml", reason="no yaml module at hand")
    from weft_top.options import parse

    path = project / "deploy" / "weft-top-daemonset.yaml"
    documents = list(yaml.safe_load_all(path.read_text()))
    daemonset = next(document for document in documents if document["kind"] == "DaemonSet")
    container, = daemonset["spec"]["template"]["spec"]["containers"]
    assert parse(container["args"]).prometheus
