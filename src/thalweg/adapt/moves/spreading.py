"""A query's operator at several nodes: each computes it for some buckets of a key.

Source: D-CAPE 3.2, splits, instances of an operator, a union. An instance is the same plan over
rows whose key is in a range of buckets; the union of all instances is the operator, since rows of
different buckets never meet (`partitioning.py` says where that is so). A condition on the buckets
travels to the publishers like any other, so that they are the splits; the union is UNION ALL of
relations, which adds up what its inputs say at each instant. ISTREAM and DSTREAM stand above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise, product

from thalweg.adapt.moves.partitioning import misplaced
from thalweg.plan import nodes
from thalweg.plan.buckets import BUCKETS
from thalweg.plan.catalog import StreamDef
from thalweg.plan.cutting import places
from thalweg.plan.expr import Call, Col, Expr, Lit, conjunction, conjuncts
from thalweg.plan.functions import call
from thalweg.plan.nodes import Node
from thalweg.plan.types import BIGINT, INTERVAL, NULL, SqlType

_MOST_KEYS = 2_000  # combinations of columns that are tried for an operator
_REMEMBERS = (
    nodes.Join,
    nodes.LeftJoin,
    nodes.Aggregate,
    nodes.Distinct,
    nodes.SetOp,
    nodes.TopK,
)

Buckets = tuple[int, int]  # the first and the last


class CannotSpread(ValueError):
    """Why a plan has no operator that can run bucket by bucket."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The operator at `path` of a plan, by the column of each stream that is its key."""

    path: tuple[int, ...]
    node: Node
    key: Mapping[str, int]
    from_beginning: bool  # only if nothing has come yet

    @property
    def columns(self) -> tuple[str, ...]:
        """The key, for people."""
        streams = nodes.base_streams(self.node)
        return tuple(f"{s.name}.{s.fields[self.key[s.name]].name}" for s in streams)


def spreadable(plan: Node) -> Spread:
    """The largest operator of a plan that can be spread. Raises CannotSpread."""
    reason = "it has no join, aggregate, DISTINCT or set operator that another node could compute"
    found = None
    for place in places(plan):
        if place.node.is_stream or not any(
            isinstance(n, _REMEMBERS) for n in nodes.walk(place.node)
        ):
            continue
        key, why = _key_of(place.node)
        if key is not None:
            return Spread(place.path, place.node, key, place.from_beginning)
        found = found or why
    raise CannotSpread(found or reason)


def _key_of(plan: Node) -> tuple[Mapping[str, int] | None, str | None]:
    """The key of each stream by which a plan can be partitioned; or why there is none."""
    streams = nodes.base_streams(plan)
    reason: str | None = None
    for columns in islice(_keys(streams), _MOST_KEYS):
        key = {s.name: c for s, c in zip(streams, columns, strict=True)}
        why = misplaced(plan, key)
        if why is None:
            return key, None
        reason = reason or why
    return None, reason


def _keys(streams: Sequence[StreamDef]) -> Iterator[tuple[int, ...]]:
    """A column of each, all of one type; those of one name first."""
    for type_ in dict.fromkeys(f.type for f in streams[0].fields if _has_hash(f.type)):
        own = [[i for i, f in enumerate(s.fields) if f.type == type_] for s in streams]

        def names(columns: tuple[int, ...]) -> int:
            return len({s.fields[c].name.lower() for s, c in zip(streams, columns, strict=True)})

        yield from sorted(islice(product(*own), _MOST_KEYS), key=names)


def _has_hash(type_: SqlType) -> bool:
    return type_ not in (INTERVAL, NULL)


def ranges(parts: int) -> list[Buckets]:
    """Of about one width, which together are all buckets."""
    if not 1 <= parts <= BUCKETS:
        raise CannotSpread(f"there are {BUCKETS} buckets: {parts} parts can't be made of them")
    starts = [BUCKETS * i // parts for i in range(parts + 1)]
    return [(a, b - 1) for a, b in pairwise(starts)]


def part_of(spread: Spread, buckets: Buckets) -> Node:
    """The operator over rows of some buckets."""

    def change(node: Node) -> Node:
        match node:
            case nodes.Window(nodes.Scan(stream), _):
                return _within(node, spread.key[stream.name], buckets)
            case nodes.Scan(stream) if not node.is_stream:
                return _within(node, spread.key[stream.name], buckets)
        return node

    return nodes.transform(spread.node, change)


def _within(node: Node, column: int, buckets: Buckets) -> Node:
    bucket = call("bucket", Col(column, node.schema[column].type))
    low, high = (Lit(b, BIGINT) for b in buckets)
    return nodes.Filter(node, conjunction([call(">=", bucket, low), call("<=", bucket, high)]))


def united(plan: Node, path: tuple[int, ...], parts: Sequence[Node]) -> Node:
    """A plan with the union of parts in the place of an operator."""
    if not path:
        return reduce(_both, parts)
    inputs = list(nodes.inputs_of(plan))
    inputs[path[0]] = united(inputs[path[0]], path[1:], parts)
    return nodes.with_inputs(plan, tuple(inputs))


def _both(left: Node, right: Node) -> Node:
    return nodes.SetOp(nodes.SetKind.UNION, True, left, right)


def buckets_of(plan: Node) -> Buckets | None:
    """Which buckets a part computes; None if it is none."""
    for node in nodes.walk(plan):
        if isinstance(node, nodes.Filter):
            found = _bounds(node.predicate)
            if found is not None:
                return found
    return None


def _bounds(predicate: Expr) -> Buckets | None:
    bounds: dict[str, int] = {}
    for part in conjuncts(predicate):
        match part:
            case Call((">=" | "<=") as op, (Call("bucket", _, _), Lit(int(value), _)), _):
                bounds[op] = value
    return (bounds[">="], bounds["<="]) if len(bounds) == 2 else None
