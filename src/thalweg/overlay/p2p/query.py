"""A query as peers know it: leaves, joins on one value each, and what is selected.

Source: DHTJoin 4.1. A join takes two or more inputs that are equal in one value (an equality
class). A query of *type 1* is one join; one of *type 2* is a tree of joins on different values,
whose intermediate results are indexed again by the next one (4.3.3). The plan comes with the
query; `planning` makes it from rates, `from_plan` makes the query from the algebra.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property

import msgspec

from thalweg.overlay.p2p.tuples import Parts, Tup, Value

_COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadQuery(ValueError):
    """It can't be run between peers: what is wrong, and what can run it."""


class Condition(msgspec.Struct, frozen=True, array_like=True):
    """A column of one leaf beside a constant; NULL is never true."""

    column: int
    op: str
    constant: Value

    def holds(self, values: tuple[Value, ...]) -> bool:
        value = values[self.column]
        if value is None or self.constant is None:
            return False
        return bool(_COMPARE[self.op](value, self.constant))


class Between(msgspec.Struct, frozen=True, array_like=True):
    """A column of one leaf beside a column of another: what the joins don't say already."""

    left: int
    left_column: int
    op: str
    right: int
    right_column: int


class Leaf(msgspec.Struct, frozen=True, array_like=True):
    """A stream under [Range window], in instants: tuples that meet all conditions."""

    stream: str
    window: int
    conditions: tuple[Condition, ...] = ()

    def wants(self, values: tuple[Value, ...]) -> bool:
        return all(c.holds(values) for c in self.conditions)

    def end(self, ts: int) -> int:
        """The first instant at which the tuple is gone."""
        return ts + self.window + 1


class Input(msgspec.Struct, frozen=True, array_like=True):
    """One input of a join: a leaf or an earlier join, and the leaf and column of its join value."""

    child: int
    is_join: bool
    leaf: int
    column: int


class JoinStep(msgspec.Struct, frozen=True, array_like=True):
    inputs: tuple[Input, ...]


class JoinQuery(msgspec.Struct, frozen=True, dict=True):
    """Joins in an order in which each comes after those that it reads; the last is the root."""

    id: str
    asker: str  # the address that results go to
    leaves: tuple[Leaf, ...]
    joins: tuple[JoinStep, ...]
    outputs: tuple[tuple[int, int], ...]  # (leaf, column)
    between: tuple[Between, ...] = ()
    eager: bool = False
    rates: tuple[tuple[str, float], ...] = ()  # tuples an instant that the plan was made for

    def __post_init__(self) -> None:
        if len(self.leaves) < 2 or not self.joins:
            raise BadQuery("peers join two streams or more")
        used = [i.child for j in self.joins for i in j.inputs if not i.is_join]
        if sorted(used) != list(range(len(self.leaves))):
            raise BadQuery("each leaf is the input of exactly one join")
        inner = [i.child for j in self.joins for i in j.inputs if i.is_join]
        if sorted(inner) != list(range(len(self.joins) - 1)):
            raise BadQuery("each join but the last is the input of exactly one join")
        for number, join in enumerate(self.joins):
            if len(join.inputs) < 2:
                raise BadQuery("a join has two inputs or more")
            for i in join.inputs:
                below = self.leaves_below(i)
                if (i.is_join and i.child >= number) or i.leaf not in below:
                    raise BadQuery("a join reads what comes before it, by a column of its own")
        for b in self.between:
            if b.op not in _COMPARE:
                raise BadQuery(f"peers don't know the comparison {b.op}")
        for leaf in self.leaves:
            if leaf.window < 0:
                raise BadQuery("a window's length can't be negative")

    @property
    def is_type_1(self) -> bool:
        return len(self.joins) == 1

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.stream for leaf in self.leaves))

    @property
    def longest_window(self) -> int:
        return max(leaf.window for leaf in self.leaves)

    def leaves_below(self, i: Input) -> tuple[int, ...]:
        """In the order of the plan: also the order of the parts of what the input holds."""
        if not i.is_join:
            return (i.child,)
        return self.leaves_of(i.child)

    def leaves_of(self, join: int) -> tuple[int, ...]:
        return self._leaves_of[join]

    @cached_property
    def _leaves_of(self) -> tuple[tuple[int, ...], ...]:
        found: list[tuple[int, ...]] = []
        for join in self.joins:
            below: list[int] = []
            for i in join.inputs:
                below += found[i.child] if i.is_join else (i.child,)
            found.append(tuple(below))
        return tuple(found)

    @cached_property
    def _place_at_root(self) -> dict[int, int]:
        return {leaf: at for at, leaf in enumerate(self.leaves_of(len(self.joins) - 1))}

    def row(self, parts: Parts) -> tuple[Value, ...]:
        """What is selected of a whole combination."""
        at = self._place_at_root
        return tuple([parts[at[leaf]].values[column] for leaf, column in self.outputs])

    def interval(self, parts: Parts) -> tuple[int, int]:
        at = self._place_at_root
        ends = (leaf.end(parts[at[i]].ts) for i, leaf in enumerate(self.leaves))
        return max(p.ts for p in parts), min(ends)


def compare(left: Value, op: str, right: Value) -> bool:
    return left is not None and right is not None and bool(_COMPARE[op](left, right))


def combinations(query: JoinQuery, tuples: dict[str, list[Tup]]) -> Iterator[Parts]:
    """All combinations, by brute force: what eager results are judged by, in the root's order."""
    order = query.leaves_of(len(query.joins) - 1)
    keys: list[tuple[tuple[int, int], ...]] = [
        tuple((i.leaf, i.column) for i in j.inputs) for j in query.joins
    ]

    def agrees(chosen: dict[int, Tup]) -> bool:
        for key in keys:
            values = [chosen[leaf].values[c] for leaf, c in key if leaf in chosen]
            if len(values) > 1 and any(not compare(values[0], "=", v) for v in values[1:]):
                return False
        for b in query.between:
            if b.left in chosen and b.right in chosen:
                left = chosen[b.left].values[b.left_column]
                if not compare(left, b.op, chosen[b.right].values[b.right_column]):
                    return False
        start = max(t.ts for t in chosen.values())
        return all(start < query.leaves[i].end(t.ts) for i, t in chosen.items())

    def extend(chosen: dict[int, Tup], rest: tuple[int, ...]) -> Iterator[Parts]:
        if not rest:
            yield tuple([chosen[i] for i in order])
            return
        leaf = query.leaves[rest[0]]
        for t in tuples.get(leaf.stream, ()):
            if leaf.wants(t.values):
                longer = {**chosen, rest[0]: t}
                if agrees(longer):
                    yield from extend(longer, rest[1:])

    return extend({}, order)


_decoder = msgspec.json.Decoder(JoinQuery)
_encoder = msgspec.json.Encoder()


def to_text(query: JoinQuery) -> str:
    """As it is spread: DHTJoin's ⟨q_id, Q, Q_plan⟩."""
    return _encoder.encode(query).decode()


def from_text(text: str) -> JoinQuery:
    return _decoder.decode(text)
