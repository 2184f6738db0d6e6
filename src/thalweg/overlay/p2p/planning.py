"""Plans for joins between peers, from rates: which value first, and which parts as one segment.

Source: DHTJoin 4.3.3: type 1 is one MJoin on the one value that all streams share; type 2 is a
segmented bushy tree, whose segments are MJoins that other queries of type 1 may share. The source
leaves the choice to "a centralized query optimizer"; this is one. Equalities make classes of equal
columns. Each class with two or more of the present parts is a candidate for the next join; the one
whose output is expected to be smallest is taken, until one part is left. Inputs are put in an order
that depends on streams and columns alone, so that equal segments of two queries have one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from thalweg.overlay.p2p.query import BadQuery, Between, Input, JoinQuery, JoinStep, Leaf

Column = tuple[int, int]  # leaf, column


@dataclass(frozen=True, slots=True)
class Rate:
    """Of a stream: tuples per second, and how many different values a join column has."""

    tuples_per_s: float = 1.0
    distinct: float = 1_000.0

    def __post_init__(self) -> None:
        if self.tuples_per_s <= 0 or self.distinct < 1:
            raise ValueError("a rate is above 0, and a column has at least one value")


@dataclass(frozen=True, slots=True)
class _Part:
    child: int
    is_join: bool
    leaves: tuple[int, ...]
    size: float  # items that are valid at an instant


def plan_joins(
    leaves: tuple[Leaf, ...],
    comparisons: Sequence[Between],
    rates: Mapping[str, Rate],
    instants_per_s: float = 1_000.0,
) -> tuple[tuple[JoinStep, ...], tuple[Between, ...]]:
    """The joins, and the comparisons that they leave over. Raises BadQuery."""
    classes = _classes(comparisons)
    parts = [
        _Part(i, False, (i,), _rate(leaf, rates).tuples_per_s * (leaf.window + 1) / instants_per_s)
        for i, leaf in enumerate(leaves)
    ]
    joins: list[JoinStep] = []
    joined: set[frozenset[Column]] = set()  # pairs that a join has made equal
    while len(parts) > 1:
        candidates = [c for c in (_candidate(k, parts, leaves, rates) for k in classes) if c]
        if not candidates:
            names = ", ".join(" ⋈ ".join(leaves[i].stream for i in p.leaves) for p in parts)
            raise BadQuery(
                f"there is no equality between {names}: peers have nothing to hash on; "
                "a network without --mode p2p can run it"
            )
        _, chosen, size = min(candidates, key=lambda c: c[0])
        ordered = sorted(chosen, key=lambda e: (_name(e[0], leaves), e[1][1], e[0].leaves))
        step = JoinStep(tuple([Input(p.child, p.is_join, *column) for p, column in ordered]))
        first = ordered[0][1]
        joined |= {frozenset((first, column)) for _, column in ordered[1:]}
        taken = [p for p, _ in ordered]
        below = tuple([leaf for p in taken for leaf in p.leaves])
        joins.append(step)
        parts = [p for p in parts if p not in taken]
        parts.append(_Part(len(joins) - 1, True, below, size))
    return tuple(joins), _left_over(comparisons, joined)


def _rate(leaf: Leaf, rates: Mapping[str, Rate]) -> Rate:
    return rates.get(leaf.stream, Rate())


def _classes(comparisons: Sequence[Between]) -> list[list[Column]]:
    """Columns that are equal to each other, transitively."""
    of: dict[Column, list[Column]] = {}
    for b in comparisons:
        if b.op == "=":
            left, right = (b.left, b.left_column), (b.right, b.right_column)
            both = list(dict.fromkeys([*of.get(left, [left]), *of.get(right, [right])]))
            for column in both:
                of[column] = both
    unique = {id(c): sorted(c) for c in of.values()}
    return sorted(unique.values())


_Candidate = tuple[tuple[float, tuple[int, ...]], list[tuple[_Part, Column]], float]


def _candidate(
    columns: list[Column],
    parts: Sequence[_Part],
    leaves: tuple[Leaf, ...],
    rates: Mapping[str, Rate],
) -> _Candidate | None:
    """All parts that have a column of this class, each by its first one."""
    chosen = []
    for part in parts:
        mine = [c for c in columns if c[0] in part.leaves]
        if mine:
            chosen.append((part, mine[0]))
    if len(chosen) < 2:
        return None
    distinct = max(_rate(leaves[leaf], rates).distinct for _, (leaf, _) in chosen)
    size = prod(p.size for p, _ in chosen) / distinct ** (len(chosen) - 1)
    return (size, tuple(p.leaves[0] for p, _ in chosen)), chosen, size


def _name(part: _Part, leaves: tuple[Leaf, ...]) -> tuple[str, ...]:
    return tuple([leaves[i].stream for i in part.leaves])


def _left_over(
    comparisons: Sequence[Between], joined: set[frozenset[Column]]
) -> tuple[Between, ...]:
    """Comparisons that no join has made true: not equalities, or of a cycle."""
    groups: list[set[Column]] = []
    for pair in sorted(joined, key=sorted):
        touching = [g for g in groups if g & pair]
        groups = [g for g in groups if not g & pair]
        groups.append(set(pair).union(*touching))
    found = []
    for b in comparisons:
        both = {(b.left, b.left_column), (b.right, b.right_column)}
        if b.op != "=" or not any(both <= g for g in groups):
            found.append(b)
    return tuple(found)


def explain(
    query: JoinQuery,
    name_of: Callable[[str], str] = str,
    column_of: Callable[[str, int], str] = lambda _, column: str(column),
) -> list[str]:
    """The plan, a line for each join, the root first; `name_of` and `column_of` say what streams
    and their columns are called."""
    kind = "1: one value" if query.is_type_1 else "2: values one after the other"
    lines = [f"peers, type {kind}; results {'at once' if query.eager else 'exact'}"]

    def line(number: int, depth: int) -> None:
        step = query.joins[number]
        names = []
        for i in step.inputs:
            below = query.leaves_below(i)
            name = " ⋈ ".join(name_of(query.leaves[leaf].stream) for leaf in below)
            stream = query.leaves[i.leaf].stream
            by = f"{name_of(stream)}.{column_of(stream, i.column)}"
            names.append(f"{name} by {by}")
        lines.append("  " * depth + f"join {number}: " + ", ".join(names))
        for i in step.inputs:
            if i.is_join:
                line(i.child, depth + 1)

    line(len(query.joins) - 1, 1)
    if not query.is_type_1:
        told = ", ".join(f"{name_of(stream)} {rate:.3g}" for stream, rate in query.rates)
        rates = f"measured, tuples an instant: {told}" if told else "not known, taken as equal"
        lines.append(f"  planned by rates: {rates}")
    return lines
