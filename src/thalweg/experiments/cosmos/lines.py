"""Rows of several methods, measured one after the other, as lines of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thalweg.experiments.sqpr.figures import Draw, curves

Rows = Sequence[Mapping[str, Any]]


def column(rows: Rows, method: str, name: str) -> list[float]:
    """What was measured of one method, in the order of time."""
    return [row[name] for row in rows if row["method"] == method]


def by_method(
    rows: Rows, methods: Sequence[str], x: Sequence[float], name: str, *, across: str, up: str
) -> Draw:
    lines = {method: [column(rows, method, name)] for method in methods}
    return curves(x, lines, across=across, up=up, title="")
