"""What the standing queries want of each tuple: SteMs, and the joins that read them.

Source: DHTJoin 3.2.2 (tuple filtering), 4.3.3. A SteM is one stream by one column, shared by all
queries that join on it, or the output of one join by the next join's value. Joins that are equal
in streams, windows, conditions and values are one, whatever query they are of: so the segments of
a bushy plan of type 2 share their work with queries of type 1.

Invariants: a tuple is indexed by a column only if some standing query joins on it there and the
tuple meets that query's conditions. Levels: a base SteM has level 0, a join's output one more than
its highest input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from thalweg.overlay.p2p.query import JoinQuery, Leaf
from thalweg.overlay.p2p.tuples import Parts, Tup, Value


@dataclass(frozen=True, slots=True)
class Port:
    """One input of a join: the SteM that it reads, and what it takes from it."""

    stem: str
    leaves: tuple[Leaf, ...]  # of the parts
    part: int  # whose column is the join value
    column: int

    def takes(self, parts: Parts) -> bool:
        """Conditions of base tuples; an intermediate result has met its own already."""
        return len(parts) > 1 or self.leaves[0].wants(parts[0].values)

    def interval(self, parts: Parts) -> tuple[int, int]:
        if len(parts) == 1:
            ts = parts[0].ts
            return ts, ts + self.leaves[0].window + 1
        start = max([p.ts for p in parts])
        return start, min([leaf.end(p.ts) for leaf, p in zip(self.leaves, parts, strict=True)])

    def key(self, parts: Parts) -> Value:
        return parts[self.part].values[self.column]


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of two parts of a join's output."""

    left: int
    left_column: int
    op: str
    right: int
    right_column: int


@dataclass(slots=True)
class Operator:
    signature: str
    ports: tuple[Port, ...]
    checks: tuple[Check, ...]
    level: int  # of its output
    queries: list[str] = field(default_factory=list)  # of which it is the root
    consumers: list[Stem] = field(default_factory=list)  # where its output is indexed again


@dataclass(slots=True)
class Stem:
    name: str
    level: int
    part: int
    column: int
    readers: list[tuple[Operator, int]] = field(default_factory=list)  # and as which port
    queries: dict[str, None] = field(default_factory=dict)  # that read it, near or far
    exact: bool = False  # some of them wants exact results

    def key(self, parts: Parts) -> Value:
        return parts[self.part].values[self.column]

    def end(self, parts: Parts) -> int:
        """When the last reader has no use for it any more."""
        return max([op.ports[port].interval(parts)[1] for op, port in self.readers])


class Dataflow:
    """Built anew when a query comes or goes: rare beside tuples."""

    __slots__ = ("_by_stream", "operators", "queries", "stems")

    def __init__(self, queries: Iterable[JoinQuery] = ()) -> None:
        self.queries = {q.id: q for q in sorted(queries, key=lambda q: q.id)}
        self.stems: dict[str, Stem] = {}
        self.operators: dict[str, Operator] = {}
        self._by_stream: dict[str, list[Stem]] = {}
        for query in self.queries.values():
            self._add(query)

    def stems_for(self, tup: Tup) -> list[Stem]:
        """Those that want it: one message for each, at most."""
        found = []
        for stem in self._by_stream.get(tup.stream, ()):
            if tup.values[stem.column] is None:
                continue
            parts = (tup,)
            if any(op.ports[port].takes(parts) for op, port in stem.readers):
                found.append(stem)
        return found

    def wants(self, stream: str) -> bool:
        return stream in self._by_stream

    def streams_of(self, stem: Stem) -> tuple[str, ...]:
        """All streams whose tuples meet in this SteM's joins, near or far."""
        found = (s for q in stem.queries for s in self.queries[q].streams)
        return tuple(dict.fromkeys(found))

    @property
    def exact_streams(self) -> tuple[str, ...]:
        """Those whose sources have to be registered."""
        exact = (q for q in self.queries.values() if not q.eager)
        return tuple(sorted({s for q in exact for s in q.streams}))

    @property
    def levels(self) -> int:
        """1 where there are only base SteMs that exact queries read."""
        return 1 + max([s.level for s in self.stems.values() if s.exact], default=0)

    def feeds_level(self, stream: str, level: int) -> bool:
        """Whether tuples of the stream take part in intermediate results so high."""
        return any(
            any(s.level >= level and q in s.queries for s in self.stems.values() if s.exact)
            for q, query in self.queries.items()
            if stream in query.streams
        )

    def _add(self, query: JoinQuery) -> None:
        ports_of: list[Operator] = []
        for number, step in enumerate(query.joins):
            ports, names, level = [], [], 0
            for i in step.inputs:
                below = query.leaves_below(i)
                part = below.index(i.leaf)
                leaves = tuple([query.leaves[leaf] for leaf in below])
                if i.is_join:
                    child = ports_of[i.child]
                    stem = self._stem(
                        f"{child.signature}@{part}.{i.column}", child.level, part, i.column
                    )
                    if stem not in child.consumers:
                        child.consumers.append(stem)
                    names.append(stem.name)
                else:
                    leaf = leaves[0]
                    stem = self._stem(f"{leaf.stream}.{i.column}", 0, 0, i.column)
                    if stem not in self._by_stream.setdefault(leaf.stream, []):
                        self._by_stream[leaf.stream].append(stem)
                    conditions = "".join(
                        f"&{c.column}{c.op}{c.constant!r}" for c in leaf.conditions
                    )
                    names.append(f"{stem.name}[{leaf.window}]{conditions}")
                stem.queries[query.id] = None
                stem.exact = stem.exact or not query.eager
                level = max(level, stem.level + 1)
                ports.append(Port(stem.name, leaves, part, i.column))
            checks = _checks(query, number)
            signature = f"({','.join(names)}{''.join(map(_check_text, checks))})"
            operator = self.operators.get(signature)
            if operator is None:
                operator = Operator(signature, tuple(ports), checks, level)
                self.operators[signature] = operator
                for at, port in enumerate(ports):
                    self.stems[port.stem].readers.append((operator, at))
            ports_of.append(operator)
        ports_of[-1].queries.append(query.id)

    def _stem(self, name: str, level: int, part: int, column: int) -> Stem:
        if name not in self.stems:
            self.stems[name] = Stem(name, level, part, column)
        return self.stems[name]


def _checks(query: JoinQuery, join: int) -> tuple[Check, ...]:
    """The comparisons whose two leaves meet at this join for the first time."""
    order = query.leaves_of(join)
    inner = [set(query.leaves_below(i)) for i in query.joins[join].inputs]
    found = []
    for b in query.between:
        pair = {b.left, b.right}
        if pair <= set(order) and not any(pair <= below for below in inner):
            left, right = order.index(b.left), order.index(b.right)
            found.append(Check(left, b.left_column, b.op, right, b.right_column))
    return tuple(found)


def _check_text(check: Check) -> str:
    return f"&{check.left}.{check.left_column}{check.op}{check.right}.{check.right_column}"
