"""How evenly a PE's rails are used, as a figure and as a sentence. Pure.

Invariants: a balance is max/mean over the rails that are up or carry something, never below 1.0; a verdict
names the direction that is worse, and says what would help only where that follows from the page. What is even
over a second may be uneven at each moment (moments.py); that is said only of what is even otherwise.
"""

from . import rail_policies

# Below this nobody's time is lost, and a few control messages would look like an imbalance.
QUIET_BITS_PER_S = 100_000
UNEVEN = 1.1
# In 10 ms: the last pieces of a step are never even, and a quarter of the rails' time is worth a word.
UNEVEN_IN_TIME = 1.33


def max_over_mean(values):
    """1.0 is even; None where there is next to nothing, or one value only."""
    total = sum(values)
    if len(values) < 2 or total < QUIET_BITS_PER_S:
        return None
    return max(values) * len(values) / total


def balances(rails):
    """(tx balance, rx balance, busiest rail in TX, in RX) of a PE's RailRates; None where that says nothing."""
    tx, worst_tx = _balance(rails, [rail.tx_bits_per_s or 0.0 for rail in rails])
    rx, worst_rx = _balance(rails, [rail.rx_bits_per_s or 0.0 for rail in rails])
    return tx, rx, worst_tx, worst_rx


def _balance(rails, rates):
    """(max/mean over the rails that are up or carry something, index of the first that carries most)."""
    used = [rate for rail, rate in zip(rails, rates) if rate or rail.rail.up]
    balance = max_over_mean(used)
    return (None, None) if balance is None else (balance, rails[rates.index(max(rates))].rail.index)


def _rates(rails, direction):
    return [getattr(rail, f"{direction}_bits_per_s") or 0.0 for rail in rails]


def _excess(rails, direction):
    """How much longer than the average rail the busiest one needs, where all line rates are known and differ;
    else something uneven. A policy that gives a slow rail less is not to blame."""
    rates = _rates(rails, direction)
    lines = [rail.rail.rate_bits_per_s for rail in rails]
    if not all(lines) or len(set(lines)) < 2:
        return UNEVEN + 1
    whole = sum(rates) / sum(lines)
    return max(rate / line for rate, line in zip(rates, lines)) / whole if whole else 0.0


def verdict(pe):
    """One sentence on a PeRates whose balances are set; "" where there is nothing to say."""
    sides = [("tx", pe.tx_balance, pe.worst_tx_rail), ("rx", pe.rx_balance, pe.worst_rx_rail)]
    uneven = [side for side in sides if side[1] and side[1] > UNEVEN and _excess(pe.rails, side[0]) > UNEVEN]
    if not uneven:
        return _verdict_in_time(pe)
    direction, _, worst = max(uneven, key=lambda side: side[1])
    rates = _rates(pe.rails, direction)
    share = 100 * max(rates) / sum(rates)
    moves = f"RX of PE {pe.page.pe} arrives {share:.0f} % on rail {worst}" if direction == "rx" else (
        f"TX of PE {pe.page.pe} leaves {share:.0f} % by rail {worst}")
    return f"{moves}; {_advice(pe)}"


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
