"""Comparison operators: how they turn round and how they are denied."""

from __future__ import annotations

# The operator that says the same with its sides exchanged.
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The operator that is true where this one is false, and NULL where it is NULL: orders are total,
# as there is no NaN.
DENIED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
COMPARISONS = frozenset(MIRRORED)
