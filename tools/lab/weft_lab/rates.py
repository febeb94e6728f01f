"""Rates in tc's units, and the token bucket that holds a NIC to a rate. Pure.

Invariant: a rate is a whole number of bits per second, or None for unlimited.
"""

import re
from dataclasses import dataclass

from .errors import UserError

RATE_MIN_BITS_PER_S = 100_000
# struct tc_ratespec holds the rate as 32 bits of bytes per second (linux/pkt_sched.h).
RATE_MAX_BITS_PER_S = 34_000_000_000

# tc(8), "RATES": k, m and g are powers of 1000; a bare number is bits per second.
UNIT_BITS_PER_S = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}

BURST_MIN_BYTES = 24 * 1024
BURST_TIME_S = 0.005
QUEUE_MIN_BYTES = 64 * 1024
QUEUE_TIME_S = 0.020
# A NIC drops nothing that its own host sends: a full queue makes TCP wait, which keeps little in it
# (TCP small queues). More than all connections together put into it, so that none is dropped.
HOST_QUEUE_BYTES = 16 * 1024 * 1024


def parse_rate(text):
    """Bits per second of "40mbit", "2.5gbit", ...; None of "unlimited"."""
    if text.lower() == "unlimited":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in UNIT_BITS_PER_S:
        raise UserError(f"'{text}' is not a rate; write for example 800kbit, 40mbit, 2.5gbit or unlimited")
    bits_per_s = round(float(match[1]) * UNIT_BITS_PER_S[match[2]])
    if not RATE_MIN_BITS_PER_S <= bits_per_s <= RATE_MAX_BITS_PER_S:
        raise UserError(f"the rate '{text}' is outside 100kbit to 34gbit; give one inside, or unlimited")
    return bits_per_s


def format_rate(bits_per_s):
    """The shortest spelling that parse_rate reads back to the same value."""
    if bits_per_s is None:
        return "unlimited"
    for unit in ("gbit", "mbit", "kbit"):
        value = bits_per_s / UNIT_BITS_PER_S[unit]
        if value >= 1 and round(value, 3) == value:
            return f"{value:.3f}".rstrip("0").rstrip(".") + unit
    return f"{bits_per_s}bit"


@dataclass(frozen=True)
class TokenBucket:
    """The parameters of one tbf queue (tc-tbf(8))."""

    rate_bits_per_s: int
    burst_bytes: int
    queue_bytes: int


def token_bucket(rate_bits_per_s):
    """The bucket for a rate; README.md, "Rates", has the measurements behind the numbers."""
    bytes_per_s = rate_bits_per_s / 8
    return TokenBucket(
        rate_bits_per_s,
        burst_bytes=max(BURST_MIN_BYTES, int(bytes_per_s * BURST_TIME_S)),
        queue_bytes=max(QUEUE_MIN_BYTES, int(bytes_per_s * QUEUE_TIME_S)),
    )
