"""How evenly a PE's rails are used, as a figure and as a sentence. Pure.

Invariants: a rail's load is the time that its bytes need at its NIC's line rate, relative to the mean of the rails that
are up or carry something; where line rates are not all known, or are equal, bytes are compared. A balance is the largest
load, never below 1.0. A verdict names the direction that is worse, and says what would help only where that follows from
the page. What is even over a second may be uneven at each moment (moments.py); that is said only of what is even otherwise.
"""

from . import rail_policies
from .nic_counters import over_mean

# Below this nobody's time is lost, and a few control messages would look like an imbalance.
QUIET_BITS_PER_S = 100_000
UNEVEN = 1.1
# In 10 ms: the last pieces of a step are never even, and a quarter of the rails' time is worth a
# word.
UNEVEN_IN_TIME = 1.33


def loads(rails, direction):
    """The load of each of a PE's RailRates, 1.0 is even; () where there is next to nothing, or one rail only. A policy that
    gives a slow rail less is not to blame, and one that gives it as much as the others is."""
    rates = [getattr(rail, f"{direction}_bits_per_s") or 0.0 for rail in rails]
    used = [bool(rate) or rail.rail.up for rail, rate in zip(rails, rates)]
    total = sum(rates)
    if sum(used) < 2 or total < QUIET_BITS_PER_S:
        return ()
    lines = [rail.line_bits_per_s for rail, counts in zip(rails, used) if counts]
    is_by_line = all(lines) and len(set(lines)) > 1
    found = iter(over_mean([rate for rate, counts in zip(rates, used) if counts], lines if is_by_line else None))
    return tuple(next(found) if counts else 0.0 for counts in used)


def balances(rails):
    """(tx balance, rx balance, worst rail in TX, in RX) of a PE's RailRates; None where that says nothing."""
    tx, worst_tx = _balance(rails, "tx")
    rx, worst_rx = _balance(rails, "rx")
    return tx, rx, worst_tx, worst_rx


def _balance(rails, direction):
    """(the largest load, index of the first rail that has it)."""
    found = loads(rails, direction)
    return (max(found), rails[found.index(max(found))].rail.index) if found else (None, None)


def verdict(pe):
    """One sentence on a PeRates whose balances are set; "" where there is nothing to say."""
    sides = [("tx", pe.tx_balance, pe.worst_tx_rail), ("rx", pe.rx_balance, pe.worst_rx_rail)]
    uneven = [side for side in sides if side[1] and side[1] > UNEVEN]
    if not uneven:
        return _verdict_in_time(pe)
    direction, _, worst = max(uneven, key=lambda side: side[1])
    verb, way = ("arrives", "on") if direction == "rx" else ("leaves", "by")
    share, line = _shares(pe.rails, direction, worst)
    of_line = f", which has {100 * line:.0f} % of the line rate" if line else ""
    return f"{direction.upper()} of PE {pe.page.pe} {verb} {100 * share:.0f} % {way} rail {worst}{of_line}; {_advice(pe)}"


def _shares(rails, direction, worst):
    """Of that rail: (its share of the bits, its share of the line rate where line rates are all known and differ)."""
    rates = {rail.rail.index: getattr(rail, f"{direction}_bits_per_s") or 0.0 for rail in rails}
    lines = {rail.rail.index: rail.line_bits_per_s for rail in rails if rail.rail.up or rates[rail.rail.index]}
    known = all(lines.values()) and len(set(lines.values())) > 1
    return rates[worst] / sum(rates.values()), lines[worst] / sum(lines.values()) if known else None


def _verdict_in_time(pe):
    """Even over a second, uneven at each moment: the rails take turns."""
    sides = [("TX", pe.tx_balance, pe.tx_balance_in_time), ("RX", pe.rx_balance, pe.rx_balance_in_time)]
    uneven = [side for side in sides if side[2] and side[2] > UNEVEN_IN_TIME]
    if not uneven:
        return ""
    direction, over_all, in_time = max(uneven, key=lambda side: side[2])
    # What peers on other nodes put here is on no page in sight.
    whole = f"{over_all:.2f} over a second, " if over_all else ""
    return f"{direction} of PE {pe.page.pe} is uneven in time: max/mean {whole}{in_time:.2f} in 10 ms"


def _advice(pe):
    down = [rail.rail.index for rail in pe.rails if not rail.rail.up]
    if down:
        rails = "rail " + str(down[0]) if len(down) == 1 else "rails " + ", ".join(map(str, down))
        return f"{rails} {'is' if len(down) == 1 else 'are'} down"
    policy = pe.page.policy or "unknown"
    if policy == rail_policies.DEFAULT:
        return f"policy is {policy} already; look at the line rates and at which rails its peers reach"
    return f"policy is {policy}; {rail_policies.DEFAULT} would spread it"
