"""`--once`: a Frame as plain text for a terminal of 80 columns or a report. Pure."""

from .balance import UNEVEN

UNITS = {"Gbit/s": 1e9, "GB/s": 8e9}


def format_frame(frame, unit):
    """The text, without a last line break."""
    parts = [_nic_table(frame, unit)]
    if frame.pes:
        parts.append(_pe_table(frame, unit))
    verdicts = [pe.verdict for pe in frame.pes if pe.verdict]
    if frame.pes:
        parts.append("\n".join(verdicts) or f"no PE is uneven beyond max/mean {UNEVEN}")
    if frame.notices:
        parts.append("\n".join(f"note: {notice.source}: {notice.text}" for notice in frame.notices))
    return "\n\n".join(parts)


def _is_unused(nic):
    return nic.nic.state != "up" and not any(nic.nic.counters.values())


def _nic_table(frame, unit):
    shown = [nic for nic in frame.nics if not _is_unused(nic)]
    if not frame.nics:
        return "no NIC was found"
    names = [nic.nic.namespace + ":" * bool(nic.nic.namespace) + nic.nic.name for nic in shown]
    width = max([16, *map(len, names)])
    lines = [f"{'NIC':<{width}} state     line {'TX ' + unit:>9}    % {'RX ' + unit:>9}    %  drops errors"]
    for name, nic in zip(names, shown):
        state = nic.nic.state.replace("unknown", "?")
        lines.append(f"{name:<{width}} {state:<5} {_value(nic.nic.rate_bits_per_s, unit):>8}"
                     f" {_value(nic.tx_bits_per_s, unit):>9} {_percent(nic.tx_share):>4}"
                     f" {_value(nic.rx_bits_per_s, unit):>9} {_percent(nic.rx_share):>4}"
                     f" {_sum(nic, 'drops'):>6} {_sum(nic, 'errors'):>6}")
    if len(shown) < len(frame.nics):
        lines.append(f"({len(frame.nics) - len(shown)} that are down and never carried anything are left out)")
    return "\n".join(lines)


def _sum(nic, what):
    values = [nic.nic.counters[name] for name in (f"tx_{what}", f"rx_{what}") if name in nic.nic.counters]
    return str(sum(values)) if values else "-"


def _pe_table(frame, unit):
    lines = [f"{'job':<10} {'PE':>4} {'policy':<8} rails" + "".join(
        f" {direction:>9} max/mean worst" for direction in (f"TX {unit}", f"RX {unit}"))]
    for pe in frame.pes:
        up = sum(rail.rail.up for rail in pe.rails)
        rails = str(up) if up == len(pe.rails) else f"{up}/{len(pe.rails)}"
        lines.append(f"{pe.page.job[:10]:<10} {pe.page.pe:>4} {pe.page.policy[:8]:<8} {rails:>5}"
                     f" {_value(_total(pe, 'tx'), unit):>9} {_ratio(pe.tx_balance):>8} {_rail(pe.worst_tx_rail):>5}"
                     f" {_value(_total(pe, 'rx'), unit):>9} {_ratio(pe.rx_balance):>8} {_rail(pe.worst_rx_rail):>5}")
    return "\n".join(lines)


def _total(pe, direction):
    rates = [getattr(rail, f"{direction}_bits_per_s") for rail in pe.rails]
    return sum(rates) if rates and None not in rates else None


def _value(bits_per_s, unit):
    return "-" if bits_per_s is None else f"{bits_per_s / UNITS[unit]:.3f}"


def _percent(share):
    return "-" if share is None else f"{100 * share:.0f}"


def _ratio(value):
    return "-" if value is None else f"{value:.2f}"


def _rail(index):
    return "-" if index is None else str(index)
