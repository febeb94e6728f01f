"""`--prometheus`: what was seen last, in Prometheus' text format, with prometheus_client.

Owner: write() belongs to the sampling thread; collect() runs in the server's threads and reads one reference,
which is replaced as a whole. Invariants: base units (bytes, seconds, ratios), counters end in _total and are
the source's own values, so that Prometheus itself sees resets; the names are listed in docs/WEFT_TOP.md.
"""

from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
NIC_LABELS = ("kind", "nic", "namespace")
RAIL_LABELS = ("job", "pe", "rail", "nic")
PE_LABELS = ("job", "pe")


@dataclass(frozen=True)
class Metric:
    """One metric's name (a counter's without _total), help text and labels."""

    name: str
    text: str
    labels: tuple


def _of_nic(name, text):
    return Metric(f"weft_nic_{name}", text, NIC_LABELS)


def _of_rail(name, text):
    return Metric(f"weft_rail_{name}", text, RAIL_LABELS)


NIC_COUNTERS = {
    "tx_bytes": _of_nic("transmit_bytes", "Bytes that the NIC has sent."),
    "rx_bytes": _of_nic("receive_bytes", "Bytes that the NIC has received."),
    "tx_packets": _of_nic("transmit_packets", "Packets that the NIC has sent."),
    "rx_packets": _of_nic("receive_packets", "Packets that the NIC has received."),
    "tx_drops": _of_nic("transmit_drops", "Packets that were dropped instead of sent."),
    "rx_drops": _of_nic("receive_drops", "Packets that were received and dropped."),
    "tx_errors": _of_nic("transmit_errors", "Errors in sending."),
    "rx_errors": _of_nic("receive_errors", "Errors in receiving."),
    "retransmits": _of_nic("retransmits", "Times that something was sent again."),
}
NIC_OTHER = Metric("weft_nic_device_counter", "Counters that only some devices have, by the device's own name.",
                   (*NIC_LABELS, "counter"))
NIC_UP = _of_nic("up", "1 if the link is up, 0 if it is down; missing when not known.")
NIC_LINE_RATE = _of_nic("line_rate_bytes_per_second", "Line rate of one direction.")
RAIL_COUNTERS = {
    "tx_bytes": _of_rail("transmit_bytes", "Bytes of puts and messages that the PE has sent by this rail."),
    "rx_bytes": _of_rail("receive_bytes", "Bytes of the PE's gets, and of messages that it has received."),
    "tx_operations": _of_rail("transmit_operations", "Operations that the PE has posted to send."),
    "rx_operations": _of_rail("receive_operations", "Gets that the PE has posted, and messages received."),
    "tx_signals": _of_rail("transmit_signals", "Signals sent."),
    "rx_signals": _of_rail("receive_signals", "Signals received."),
    "retries": _of_rail("retries", "Posts that had to be tried again."),
    "errors": _of_rail("errors", "Operations that failed."),
    "refused": _of_rail("refused", "Messages whose signature is wrong."),
}
RAIL_OUTSTANDING = _of_rail("outstanding_bytes", "Bytes that are posted and not complete.")
RAIL_UP = _of_rail("up", "1 if the rail is in use, 0 if it is down.")
RAIL_WARM = _of_rail("warm", "1 if the rail's connections are made.")
RAIL_LINE_RATE = _of_rail("line_rate_bytes_per_second", "Line rate of one direction.")
RAIL_RATES = {
    "tx": _of_rail("transmit_bytes_per_second", "Average of the last second, with what peers got from this rail."),
    "rx": _of_rail("receive_bytes_per_second", "Average of the last second, with what peers put to this rail."),
}
PE_BALANCE = Metric("weft_pe_balance_ratio", "Busiest rail divided by the mean of all; 1 is even.",
                    (*PE_LABELS, "direction"))
PE_INFO = Metric("weft_pe_info", "Always 1; what is known of the PE.", (*PE_LABELS, "policy", "pid", "namespace"))
NOTICES = Metric("weft_top_notices", "Sources or pages that cannot be used, by source.", ("source",))
LAST_SAMPLE = Metric("weft_top_last_sample_timestamp_seconds", "When the figures were read.", ())


def parse_address(text):
    """(host, port) of "[HOST]:PORT"; loopback where no host is given. ValueError if it is none."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not port.isdigit() or not 0 <= int(port) <= 65535 or (colon and "/" in host):
        raise ValueError(f"'{text}' is no address; write for example :9400 or 0.0.0.0:9400")
    return host, int(port)


class MetricsCollector:
    """Turns the last Frame into metric families; prometheus_client calls collect()."""

    def __init__(self):
        self.frame = None

    def describe(self):
        """No families: what there is depends on the machine, and must not be collected at registration."""
        return []

    def collect(self):
        frame = self.frame
        return _Families(frame).all() if frame else []


class _Families:
    """The metric families of one Frame."""

    def __init__(self, frame):
        # Imported here, so that all else works without the package.
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        self._kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        self._frame = frame
        self._made = {}

    def all(self):
        for nic in self._frame.nics:
            self._nic(nic.nic)
        for pe in self._frame.pes:
            self._pe(pe)
        counts = {}
        for notice in self._frame.notices:
            counts[notice.source] = counts.get(notice.source, 0) + 1
        for source, count in counts.items():
            self._add("gauge", NOTICES, (source,), count)
        self._add("gauge", LAST_SAMPLE, (), self._frame.wall_ns / 1e9)
        return list(self._made.values())

    def _add(self, kind, metric, labels, value):
        if metric.name not in self._made:
            self._made[metric.name] = self._kinds[kind](metric.name, metric.text, labels=metric.labels)
        self._made[metric.name].add_metric([str(label) for label in labels], value)

    def _nic(self, nic):
        labels = (nic.kind, nic.name, nic.namespace)
        for name, value in nic.counters.items():
            if name in NIC_COUNTERS:
                self._add("counter", NIC_COUNTERS[name], labels, value)
            else:
                self._add("counter", NIC_OTHER, (*labels, name), value)
        if nic.state != "unknown":
            self._add("gauge", NIC_UP, labels, int(nic.state == "up"))
        if nic.rate_bits_per_s:
            self._add("gauge", NIC_LINE_RATE, labels, nic.rate_bits_per_s / 8)

    def _pe(self, pe):
        page = pe.page
        self._add("gauge", PE_INFO, (page.job, page.pe, page.policy, page.process.pid, page.namespace), 1)
        for direction, balance in (("transmit", pe.tx_balance), ("receive", pe.rx_balance)):
            if balance is not None:
                self._add("gauge", PE_BALANCE, (page.job, page.pe, direction), balance)
        for rates in pe.rails:
            self._rail((page.job, page.pe, rates.rail.index, rates.rail.nic), rates)

    def _rail(self, labels, rates):
        rail = rates.rail
        for name, value in rail.counters.items():
            if name in RAIL_COUNTERS:
                self._add("counter", RAIL_COUNTERS[name], labels, value)
        self._add("gauge", RAIL_OUTSTANDING, labels, rail.outstanding_bytes)
        self._add("gauge", RAIL_UP, labels, int(rail.up))
        self._add("gauge", RAIL_WARM, labels, int(rail.warm))
        if rail.rate_bits_per_s:
            self._add("gauge", RAIL_LINE_RATE, labels, rail.rate_bits_per_s / 8)
        for direction, rate in (("tx", rates.tx_bits_per_s), ("rx", rates.rx_bits_per_s)):
            if rate is not None:
                self._add("gauge", RAIL_RATES[direction], labels, rate / 8)


class Exporter:
    """A sink that serves the last Frame. OSError if the address cannot be had, ImportError without the package."""

    name = "prometheus"

    def __init__(self, host, port):
        from prometheus_client import CollectorRegistry, start_http_server

        self._collector = MetricsCollector()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._collector)
        self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        self.port = self._server.server_port

    def write(self, snapshot, frame):
        self._collector.frame = frame

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
