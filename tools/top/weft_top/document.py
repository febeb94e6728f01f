"""Frames as JSON documents, for `--json`. docs/WEFT_TOP.md lists the fields. Pure.

Invariant: a field keeps its name and unit while the version stays; what is not known is null.
"""

import time

VERSION = 1


def to_document(frame):
    """A dictionary that json.dumps takes."""
    return {
        "version": VERSION,
        "time": _iso(frame.wall_ns),
        "wall_ns": frame.wall_ns,
        "time_ns": frame.time_ns,
        "interval_s": round(frame.interval_s, 6),
        "nics": [_nic(nic) for nic in frame.nics],
        "pes": [_pe(pe) for pe in frame.pes],
        "events": [
            {"time": _iso(event.wall_ns), "subject": event.subject, "text": event.text, "severity": event.severity}
            for event in frame.events
        ],
        "notices": [{"source": notice.source, "text": notice.text} for notice in frame.notices],
    }


def _iso(wall_ns):
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03d}Z"


def _rates(rates):
    return {name: round(rate, 3) for name, rate in rates.items()}


def _bits(rates):
    return {"tx_bits_per_s": _rounded(rates.tx_bits_per_s), "rx_bits_per_s": _rounded(rates.rx_bits_per_s)}


def _rounded(value, digits=3):
    return None if value is None else round(value, digits)


def _process(process):
    return {"pid": process.pid, "command": process.command}


def _nic(rates):
    nic = rates.nic
    return {
        "key": nic.key, "kind": nic.kind, "name": nic.name, "namespace": nic.namespace, "state": nic.state,
        "rate_bits_per_s": nic.rate_bits_per_s, "driver": nic.driver, "address": nic.address,
        **_bits(rates), "tx_share": _rounded(rates.tx_share, 6), "rx_share": _rounded(rates.rx_share, 6),
        "counters": dict(nic.counters), "rates": _rates(rates.rates),
        "processes": [_process(process) for process in nic.processes],
    }  # fmt: skip


def _pe(rates):
    page = rates.page
    return {
        "key": page.key, "job": page.job, "pe": page.pe, "pe_count": page.pe_count,
        "read_ns": page.read_ns, "process": _process(page.process), "policy": page.policy, "namespace": page.namespace,
        "tx_max_over_mean": _rounded(rates.tx_balance, 6), "rx_max_over_mean": _rounded(rates.rx_balance, 6),
        "tx_max_over_mean_in_10_ms": _rounded(rates.tx_balance_in_time, 6),
        "rx_max_over_mean_in_10_ms": _rounded(rates.rx_balance_in_time, 6),
        "worst_tx_rail": rates.worst_tx_rail, "worst_rx_rail": rates.worst_rx_rail, "verdict": rates.verdict,
        "rails": [_rail(rail) for rail in rates.rails],
        "peers": [
            {"peer": peer.peer, "rail": peer.rail, "put_bytes": peer.put_bytes, "get_bytes": peer.get_bytes,
             "bytes_per_s": round(rates.traffic.get((peer.peer, peer.rail), 0.0), 3)}
            for peer in page.peers
        ],
    }  # fmt: skip


def _rail(rates):
    rail = rates.rail
    return {
        "index": rail.index, "nic": rail.nic, "address": rail.address, "up": rail.up, "warm": rail.warm,
        "rate_bits_per_s": rail.rate_bits_per_s, "outstanding_bytes": rail.outstanding_bytes,
        **_bits(rates), "counters": dict(rail.counters), "rates": _rates(rates.rates),
    }  # fmt: skip
