"""Drawn queries that could share: select-project-join over two streams, much alike.

Constants, windows and conditions come from small pools, so that drawn queries are often equal,
contained in one another, overlapping or disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from tests.conformance.generators.expressions import Expressions
from tests.conformance.generators.tables import Column

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.plan.catalog import Catalog
from thalweg.plan.nodes import Node

SCHEMA = """
CREATE STREAM A (k INTEGER, v INTEGER, x DOUBLE, t VARCHAR, d DECIMAL(10, 2)) TIMESTAMP BY s BIGINT;
CREATE STREAM B (k INTEGER, w BIGINT, p BOOLEAN) TIMESTAMP BY s BIGINT;
CREATE VIEW Near AS SELECT k, v + 1 AS u, t FROM A [Range 3] WHERE v > 0;
"""
CATALOG: Catalog = compile_script(SCHEMA).catalog
VALUES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "A": (
        (0, 1, 2, None, 1),
        (1, 2, 0, 3, None, 1, 2),
        (0.5, 1.0, None, -0.25),
        ("a", "b", "ab", None),
        (Decimal("0.10"), Decimal("1.50"), None, Decimal("0.20")),
    ),
    "B": ((0, 1, 2, None, 1), (1, 2, 3, None, 3_000_000_000), (True, False, None)),
}
KINDS = {
    "A": {"k": "int", "v": "int", "x": "double", "t": "text", "d": "decimal"},
    "B": {"k": "int", "p": "bool"},
}
WINDOWS = (
    "[Now]",
    "[Range 1]",
    "[Range 2]",
    "[Range 4]",
    "[Unbounded]",
    "",
    "[Range 2 Slide 2]",
    "[Range 4 Slide 2]",
    "[Unbounded Slide 3]",
)
CONDITIONS = {
    "A": (
        "{}.v > {i}",
        "{}.v <= {i}",
        "{}.v >= {i}",
        "{i} > {}.v",
        "{}.v = {i}",
        "{}.k = {i}",
        "{}.v BETWEEN {i} AND {i}",
        "NOT {}.v = {i}",
        "{}.v IN ({i}, {i})",
        "{}.v NOT IN ({i}, {i})",
        "{}.v NOT IN ({i}, NULL)",
        "{}.v IN ({i}, NULL)",
        "{}.x < {f}",
        "{}.x >= {f}",
        "{}.t = {s}",
        "{}.t > {s}",
        "{}.t LIKE 'a%'",
        "{}.d >= {m}",
        "{}.d < {m}",
        "{}.v + 1 > {i}",
        "{}.v > {m}",
        "{}.v * 2 = {}.k + {i}",
        "{}.v = {}.k",
        "{}.k < {}.v",
        "{}.v IS NOT NULL",
        "{}.v IS NULL",
        "({}.v = {i} OR {}.v = {i})",
        "({}.v = {i} OR {}.t = {s})",
        "NOT ({}.v > {i} AND {}.k < {i})",
        "NOT ({}.v > {i} OR {}.t <= {s})",
        "COALESCE({}.v, {i}) > 1",
        "{i} < {i} + 1",
        "{}.v > NULL",
    ),
    "B": (
        "{}.w > {i}",
        "{}.w < {i}",
        "{}.w = {i}",
        "{}.p",
        "NOT {}.p",
        "{}.p = TRUE",
        "{}.k > {i}",
    ),
}
JOINS = {
    ("A", "B"): (
        "{}.k = {}.k",
        "{}.v = {}.w",
        "{}.k + 1 = {}.k",
        "{}.v < {}.w",
        "{}.k - {}.k <= {i}",
    ),
    ("A", "A"): ("{}.k = {}.k", "{}.k = {}.v", "{}.v < {}.v", "{}.t = {}.t"),
}
JOINS["B", "A"] = ("{1}.k = {0}.k", "{1}.v = {0}.w", "{1}.v > {0}.w")
OUTPUTS = {"A": ("{}.k", "{}.v", "{}.t", "{}.v + {}.k", "{}.d"), "B": ("{}.k", "{}.w", "{}.p")}
CONSTANTS = {
    "i": ("0", "1", "2", "1", "2", "-1"),
    "f": ("0.5e0", "0e0", "1e0"),
    "s": ("'a'", "'b'", "'ab'"),
    "m": ("0.1", "0.15", "1.5"),
}


class Drawer:
    def __init__(self, draw: st.DrawFn, sources: Sequence[str]) -> None:
        self._draw = draw
        self._sources = sources
        self._aliases = [f"r{i}" for i in range(len(sources))]

    def pick(self, options: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(list(options)))

    def filled(self, template: str, *aliases: str) -> str:
        for name, options in CONSTANTS.items():
            while "{" + name + "}" in template:
                template = template.replace("{" + name + "}", self.pick(options), 1)
        return template.format(*aliases) if "{0}" in template else self._in_turn(template, aliases)

    def _in_turn(self, template: str, aliases: Sequence[str]) -> str:
        for place in range(template.count("{}")):
            template = template.replace("{}", aliases[place % len(aliases)], 1)
        return template

    def conditions(self, count: int) -> list[str]:
        found = []
        for _ in range(count):
            place = self.pick(range(len(self._sources)))
            template = self.pick((*CONDITIONS[self._sources[place]], *["anything"] * 4))
            if template == "anything":
                found.append(f"({self._expressions(place).condition(2)})")
            else:
                found.append(self.filled(template, self._aliases[place]))
        return found

    def _expressions(self, place: int) -> Expressions:
        """The whole language of expressions over one source's columns."""
        alias = self._aliases[place]
        kinds = KINDS[self._sources[place]]
        return Expressions(self._draw, [Column(f"{alias}.{n}", k) for n, k in kinds.items()])

    def joins(self) -> list[str]:
        return [
            self.filled(
                self.pick(JOINS[self._sources[i], self._sources[i + 1]]),
                self._aliases[i],
                self._aliases[i + 1],
            )
            for i in range(len(self._sources) - 1)
        ]

    def outputs(self) -> list[str]:
        count = self.pick((1, 2, 3))
        found = []
        for _ in range(count):
            place = self.pick(range(len(self._sources)))
            template = self.pick((*OUTPUTS[self._sources[place]], "anything"))
            if template == "anything":
                found.append(self._expressions(place).of("int", 2))
            else:
                found.append(self.filled(template, self._aliases[place]))
        return found

    def sources(self) -> list[str]:
        pairs = zip(self._sources, self._aliases, strict=True)
        return [f"{s} {self.pick(WINDOWS)} {a}" for s, a in pairs]


def core_text(drawer: Drawer, joins: Sequence[str]) -> str:
    """A select-project-join query with the given joins."""
    where = [*joins, *drawer.conditions(drawer.pick((0, 1, 2, 3)))]
    return query_text(drawer.outputs(), drawer.sources(), where)


def query_text(outputs: Sequence[str], sources: Sequence[str], where: Sequence[str]) -> str:
    listed = ", ".join(f"{e} AS c{i}" for i, e in enumerate(outputs))
    tail = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {listed} FROM {', '.join(sources)}{tail}"


SHAPES = (("A",), ("A",), ("A", "B"), ("B", "A"), ("A", "B"), ("A", "A"), ("B", "A", "A"))


@st.composite
def spj_queries(draw: st.DrawFn) -> str:
    drawer = Drawer(draw, draw(st.sampled_from(SHAPES)))
    return core_text(drawer, drawer.joins())


@st.composite
def wrapped_queries(draw: st.DrawFn) -> str:
    """With what may stand round a core: sub-queries, views, DISTINCT, GROUP BY, ISTREAM."""
    text = draw(spj_queries())
    match draw(st.integers(0, 7)):
        case 0:
            return f"SELECT q.c0 FROM ({text}) q WHERE q.c0 IS NOT NULL"
        case 1:
            return text.replace("SELECT", "SELECT DISTINCT", 1)
        case 2:
            return f"SELECT c0, COUNT(*) AS n, COUNT(DISTINCT c0) AS m FROM ({text}) q GROUP BY c0"
        case 3:
            return (
                f"SELECT COUNT(c0) AS n, c0 FROM ({text}) q GROUP BY c0 "
                "HAVING COUNT(*) > 1 AND c0 IS NOT NULL"
            )
        case 4:
            return f"SELECT COUNT(*) AS n FROM ({text}) q"
        case 5:
            return f"{draw(st.sampled_from(('ISTREAM', 'DSTREAM')))} ({text})"
        case 6:
            return f"SELECT n.u, q.c0 FROM Near n, ({text}) q WHERE n.u > 2"
        case _:
            return text


@st.composite
def query_sets(draw: st.DrawFn, least: int = 2, most: int = 5) -> list[str]:
    """Queries over the same streams with the same joins."""
    drawer = Drawer(draw, draw(st.sampled_from(SHAPES)))
    joins = drawer.joins()
    return [core_text(drawer, joins) for _ in range(draw(st.integers(least, most)))]


@st.composite
def streams(draw: st.DrawFn, most: int = 6) -> dict[str, list[Arrival]]:
    found = {}
    for name, columns in VALUES.items():
        timestamp = draw(st.integers(0, 2))
        arrivals = []
        for position in range(draw(st.integers(1, most))):
            timestamp += draw(st.sampled_from((0, 1, 1, 2, 4)))
            row = tuple(draw(st.sampled_from(values)) for values in columns)
            arrivals.append(Arrival(0, timestamp, position, row))
        found[name] = arrivals
    return found


def plan_of(text: str) -> Node:
    (query,) = compile_script(f"{text};", CATALOG).queries
    return query.plan
