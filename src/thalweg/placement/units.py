"""Amounts for people."""

from __future__ import annotations

from math import isfinite


def bps(value: float) -> str:
    """Bits per second with the prefix that suits: 12.5 Mbps."""
    return _prefixed(value, "bps") if isfinite(value) else "unlimited"


def bits(value: float) -> str:
    return _prefixed(value, "bit")


def amount(value: float) -> str:
    return f"{value:.4g}" if isfinite(value) else "unlimited"


def percent(used: float, capacity: float) -> str:
    """Of an unlimited capacity, no use is a share."""
    if not isfinite(capacity):
        return "-"
    if capacity == 0:
        return "0%" if used == 0 else "∞"
    return f"{100 * used / capacity:.0f}%"


def _prefixed(value: float, unit: str) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
