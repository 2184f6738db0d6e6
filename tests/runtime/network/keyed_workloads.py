"""Drawn queries that can be partitioned by a key, as text, and a few rows for them.

Joins of one to four streams on `k`, aggregates, DISTINCT, outer joins and set operators, over all
windows that may stand below a union of buckets. Half of them are linear over windows of time, so
that PTLB can move them. There are more keys than parts, so that every part has rows.
"""

from __future__ import annotations

import random

from tests.conformance.generators import Workload

from thalweg.engine.arrivals import Arrival

STREAMS = "ABCD"
_KEYS = (*range(8), None)


def drawn_workload(chance: random.Random) -> Workload:
    """Queries q0, q1, … over streams that may be late and out of order."""
    queries = chance.choice((1, 1, 1, 2))
    texts = [_query(chance, chance.random() < 0.5) for _ in range(queries)]
    read = [s for s in STREAMS if any(f"{s} [" in text for text in texts)]
    lateness = {s: chance.choice((0, 0, 1, 3)) for s in read}
    statements = [
        f"CREATE STREAM {s} (k INTEGER, v INTEGER) TIMESTAMP BY at BIGINT LATENESS {lateness[s]}"
        for s in read
    ]
    statements += [f"CREATE QUERY q{i} AS {text}" for i, text in enumerate(texts)]
    inputs = {s: _arrivals(chance, lateness[s]) for s in read}
    return Workload(";\n".join(statements) + ";\n", inputs)


def _arrivals(chance: random.Random, lateness: int) -> list[Arrival]:
    newest, found = 0, []
    for position in range(chance.randint(9, 14)):
        newest += chance.choice((0, 1, 2, 3))
        timestamp = newest - chance.choice((0, 0, lateness, lateness + 1))
        row = (chance.choice(_KEYS), chance.randint(0, 3))
        found.append(Arrival(chance.randint(0, 1), timestamp, position, row))
    return found


def _query(chance: random.Random, is_linear: bool) -> str:
    count = chance.choice((1, 2, 2, 3, 3, 4))
    picked = chance.sample(STREAMS, count)
    if count == 2 and chance.random() < (0.3 if is_linear else 0.8):
        return _of_two(chance, picked, is_linear)
    windows = ", ".join(f"{s} {_window(chance, is_linear)}" for s in picked)
    conditions = [f"{picked[0]}.k = {s}.k" for s in picked[1:]]
    if count > 1 and chance.random() < 0.3:
        conditions.append(f"{picked[0]}.v <= {picked[-1]}.v")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    key, value, other = f"{picked[0]}.k", f"{picked[0]}.v", f"{picked[-1]}.v"
    if is_linear:
        return f"SELECT {key}, {value}, {other} AS other FROM {windows}{where}"
    calls = f"COUNT(*) AS n, SUM({value}) AS total, MAX({other}) AS top"
    having = chance.choice(("", " HAVING COUNT(*) > 1"))
    kinds = (
        f"{key}, {calls} FROM {windows}{where} GROUP BY {key}{having}",
        f"{key}, {calls} FROM {windows}{where} GROUP BY {key}{having}",
        f"{other}, {calls} FROM {windows}{where} GROUP BY {other}",  # above the union
        f"DISTINCT {key}, {other} FROM {windows}{where}",
        f"{key}, {value}, {other} AS other FROM {windows}{where}",
    )
    head = chance.choice(("", "", "ISTREAM ", "DSTREAM "))
    return f"SELECT {head}{chance.choice(kinds)}"


def _of_two(chance: random.Random, picked: list[str], is_linear: bool) -> str:
    one, other = (f"{s} {_window(chance, is_linear)}" for s in picked)
    if not is_linear and chance.random() < 0.7:
        on = f"ON {picked[0]}.k = {picked[1]}.k"
        return f"SELECT {picked[0]}.k, {picked[1]}.v FROM {one} LEFT JOIN {other} {on}"
    between = "UNION ALL" if is_linear else chance.choice(("UNION", "EXCEPT ALL", "INTERSECT"))
    return f"SELECT k, v FROM {one} {between} SELECT k, v FROM {other}"


def _window(chance: random.Random, is_linear: bool) -> str:
    length, slide = chance.randint(3, 12), chance.randint(2, 4)
    linear = (f"[Range {length}]", f"[Range {length}]", f"[Range {length} Slide {slide}]", "[Now]")
    others = (
        "[Unbounded]",
        f"[Partition By k Rows {slide}]",
        f"[Partition By k Rows {slide} Slide {slide}]",
        f"[Tumble {length}]",
        f"[Hop {2 * slide} EVERY {slide}]",
        f"[Session {slide} Partition By k]",
    )
    return chance.choice(linear if is_linear else (*linear, *others))
