"""Sums of doubles that are exact whatever was added and taken away.

A double is an integer times a power of two. Cut at multiples of 32 bits it fills at most three
*lanes*, 64-bit integers that stand for multiples of 2^(32·lane). Lanes add up without rounding
(up to 2^31 terms), so a sum has no history: what was added and taken away has left no trace.
"""

from __future__ import annotations

import math

import numpy as np

LANE_BITS = 32
_MASK = np.int64((1 << LANE_BITS) - 1)
LARGEST = float(np.finfo(np.float64).max)


def lanes_of(values: np.ndarray, weights: np.ndarray) -> dict[int, np.ndarray]:
    """Each value times its weight as a row of lanes; only lanes that are used."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)  # exact: |mantissa| < 1 has 53 bits
    exponent = exponent.astype(np.int64) - 53
    lane, places = exponent // LANE_BITS, exponent % LANE_BITS
    sign = np.sign(whole) * weights
    whole = np.abs(whole)
    low = (whole & _MASK) << places
    high = (whole >> LANE_BITS) << places
    pieces = (low & _MASK, (low >> LANE_BITS) + (high & _MASK), high >> LANE_BITS)
    used = np.unique(lane[whole != 0])
    found = {int(n + k) for n in used for k in range(3)}
    result = {}
    for number in sorted(found):
        column = np.zeros(len(values), dtype=np.int64)
        for k, piece in enumerate(pieces):
            column += np.where(lane + k == number, piece, 0)
        column *= sign
        if column.any():
            result[number] = column
    return result


def to_pair(lanes: dict[int, np.ndarray], length: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum as an unevaluated pair of doubles, high and low, together good to 100 bits."""
    high, low = np.zeros(length), np.zeros(length)
    if not lanes:
        return high, low
    _, overflow = _digits(lanes, length)
    sign = np.where(overflow < 0, -1, 1)
    digits, top = _digits({n: column * sign for n, column in lanes.items()}, length)
    with np.errstate(over="ignore", invalid="ignore"):
        for number, digit in reversed([*digits, (max(lanes) + 1, top)]):
            term = np.ldexp(digit.astype(np.float64), LANE_BITS * number)
            total = high + term
            # What the addition rounded away (Knuth's two-sum).
            part = total - high
            low += (high - (total - part)) + (term - part)
            high = total
        total = np.where(np.isfinite(high), high + low, high)
        rest = np.where(np.isfinite(total), low - (total - high), 0.0)
        return total * sign, rest * sign


def _digits(
    lanes: dict[int, np.ndarray], length: int
) -> tuple[list[tuple[int, np.ndarray]], np.ndarray]:
    """Lanes with carries propagated: digits of 32 bits, lowest first, and what is above them."""
    digits = []
    carry = np.zeros(length, dtype=np.int64)
    for number in range(min(lanes), max(lanes) + 1):
        total = lanes.get(number, np.zeros(length, dtype=np.int64)) + carry
        digits.append((number, total & _MASK))
        carry = total >> LANE_BITS
    return digits, carry


def sums(lanes: dict[int, np.ndarray], length: int) -> np.ndarray:
    """The sums, each rounded once; infinite where no DOUBLE is that large."""
    with np.errstate(all="ignore"):
        high, low = to_pair(lanes, length)
        return _settled(high, low, lanes, np.ones(length, dtype=np.int64))


def means(lanes: dict[int, np.ndarray], length: int, count: np.ndarray) -> np.ndarray:
    """The sums by their counts, each rounded once: a mean of equal values is that value."""
    with np.errstate(all="ignore"):
        high, low = to_pair(lanes, length)
        divisor = count.astype(np.float64)
        guess = high / divisor
        more = (_remainder(high, guess, divisor) + low) / divisor
        better = guess + more
        return _settled(better, more - (better - guess), lanes, count)


def _settled(
    found: np.ndarray, rest: np.ndarray, lanes: dict[int, np.ndarray], count: np.ndarray
) -> np.ndarray:
    """Where the rest is so near to half a unit of the last place that what a pair leaves out may
    decide, and where pairs are not exact, in whole numbers."""
    size = np.abs(found)
    doubtful = np.abs(rest) > 0.4999 * np.spacing(size)
    doubtful |= ~np.isfinite(found) | (size > _HUGE) | ((size < _TINY) & (size > 0))
    rows = np.flatnonzero(doubtful)
    if len(rows):
        found = found.copy()
        found[rows] = [_exactly(lanes, row, int(count[row])) for row in rows]
    return found


_HUGE, _TINY = 2.0**960, 2.0**-900  # beyond, halves and products of doubles are not exact


def _exactly(lanes: dict[int, np.ndarray], row: int, count: int) -> float:
    lowest = min(lanes)
    whole = sum(int(lane[row]) << LANE_BITS * (n - lowest) for n, lane in lanes.items())
    shift = LANE_BITS * lowest
    try:
        return (whole << max(shift, 0)) / (count << max(-shift, 0))  # of integers: rounded once
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def _remainder(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a - b·c without rounding (Dekker's product), for moderate magnitudes."""
    product = b * c
    b_high, b_low = _halves(b)
    c_high, c_low = _halves(c)
    error = ((b_high * c_high - product) + b_high * c_low + b_low * c_high) + b_low * c_low
    return (a - product) - error


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high
