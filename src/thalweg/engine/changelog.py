"""Changelogs: what a query prints, in the one order in which every engine prints it.

The order is by instant, then `-` before `+`, then by row; rows compare column by column, NULL
first. Two changelogs are equal up to DOUBLE: sums of DOUBLE may differ by 10⁻⁹ (relative), so
rows are matched within that tolerance, and all else exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from thalweg.engine.arrivals import Row

RELATIVE_TOLERANCE = 1e-9
# Sums of opposite sign may cancel to almost nothing, where a relative bound means nothing.
ABSOLUTE_TOLERANCE = 1e-12


class Change(NamedTuple):
    """At instant `ts`, a copy of `row` enters (+) or leaves (-) the result."""

    ts: int
    op: str
    row: Row


def row_key(row: Row) -> tuple[tuple[bool, Any], ...]:
    """Sorts rows of one schema: column by column, NULL first, then by value."""
    return tuple((value is not None, value if value is not None else 0) for value in row)


def change_key(change: Change) -> tuple[int, bool, tuple[tuple[bool, Any], ...]]:
    return change.ts, change.op == "+", row_key(change.row)


def in_order(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=change_key)


def net(ts: int, before: Counter[Row], after: Counter[Row]) -> list[Change]:
    """What changed from one bag to the next, in order: no row has both a `-` and a `+`."""
    gone = [Change(ts, "-", row) for row in (before - after).elements()]
    new = [Change(ts, "+", row) for row in (after - before).elements()]
    return in_order(gone + new)


def relation_at(changes: Iterable[Change], ts: int) -> Counter[Row]:
    """The bag that a changelog has built up to and including an instant."""
    bag: Counter[Row] = Counter()
    for change in changes:
        if change.ts <= ts:
            bag[change.row] += 1 if change.op == "+" else -1
    return Counter({row: count for row, count in bag.items() if count})


def faults(changes: Sequence[Change]) -> list[str]:
    """What is wrong with a changelog by itself: disorder, a row with both signs at one instant."""
    found = [
        f"out of order: {change_text(second)} after {change_text(first)}"
        for first, second in pairwise(changes)
        if change_key(second) < change_key(first)
    ]
    entered = {(c.ts, c.row) for c in changes if c.op == "+"}
    both = dict.fromkeys(c for c in changes if c.op == "-" and (c.ts, c.row) in entered)
    return found + [f"not netted: both + and {change_text(change)}" for change in both]


def difference(expected: Sequence[Change], actual: Sequence[Change]) -> list[str]:
    """How two changelogs differ, one line for each change that only one has; [] if they agree.

    At each instant the expected net change must equal the actual one. With the minuses moved to
    the other side this is one matching of bags: expected + with actual -, against actual + with
    expected -. So two changelogs also agree where a sum's rounding, on one side only, made a `-`
    and a `+` that are equal within the tolerance.
    """
    left: defaultdict[int, list[_Labelled]] = defaultdict(list)
    right: defaultdict[int, list[_Labelled]] = defaultdict(list)
    for change in expected:
        (left if change.op == "+" else right)[change.ts].append(("missing", change))
    for change in actual:
        (right if change.op == "+" else left)[change.ts].append(("unexpected", change))
    lines: list[str] = []
    for ts in sorted(left.keys() | right.keys()):
        alone = _unmatched(left[ts], right[ts])
        lines += sorted(f"{label}: {change_text(change)}" for label, change in alone)
    return lines


def change_text(change: Change) -> str:
    values = ", ".join("NULL" if value is None else repr(value) for value in change.row)
    return f"{change.ts} {change.op} ({values})"


def changelog_text(changes: Iterable[Change]) -> str:
    return "\n".join(change_text(change) for change in changes)


# --- matching within the tolerance ----------------------------------------------------------------

_Labelled = tuple[str, Change]


def _unmatched(left: list[_Labelled], right: list[_Labelled]) -> Iterator[_Labelled]:
    """What a largest matching of close rows leaves over; exact equals are taken out first."""
    left, right = _without_common(left, right), _without_common(right, left)
    near = [_near(c.row, right) for _, c in left]
    partner = _largest_matching(near)
    matched = set(partner.values())
    yield from (labelled for j, labelled in enumerate(right) if j not in partner)
    yield from (labelled for i, labelled in enumerate(left) if i not in matched)


def _near(row: Row, others: list[_Labelled]) -> list[int]:
    if not any(isinstance(value, float) for value in row):
        return []  # its exact equals are gone already
    return [j for j, (_, other) in enumerate(others) if _close(row, other.row)]


def _without_common(ours: list[_Labelled], theirs: list[_Labelled]) -> list[_Labelled]:
    """The bag difference of the rows, types told apart (1 == True == 1.0 in Python)."""
    common = Counter(_typed(c.row) for _, c in theirs)
    rest: list[_Labelled] = []
    for labelled in ours:
        row = _typed(labelled[1].row)
        if common[row] > 0:
            common[row] -= 1
        else:
            rest.append(labelled)
    return rest


def _typed(row: Row) -> tuple[tuple[type, Any], ...]:
    return tuple((type(value), value) for value in row)


def _largest_matching(candidates: list[list[int]]) -> dict[int, int]:
    """Right to left partners, by augmenting paths: closeness is not transitive."""
    partner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in candidates[i]:
            if j in tried:
                continue
            tried.add(j)
            if j not in partner or place(partner[j], tried):
                partner[j] = i
                return True
        return False

    for i in range(len(candidates)):
        place(i, set())
    return partner


def _close(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(
        _close_values(a, b) for a, b in zip(left, right, strict=True)
    )


def _close_values(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        bound = max(RELATIVE_TOLERANCE * max(abs(left), abs(right)), ABSOLUTE_TOLERANCE)
        return abs(left - right) <= bound
    return type(left) is type(right) and bool(left == right)
