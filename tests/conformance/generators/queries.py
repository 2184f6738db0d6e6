"""Drawn queries, as text: the whole language over the tables, biased to what is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from tests.conformance.generators.expressions import COMPARABLE, ROUGH, Expressions
from tests.conformance.generators.tables import Column, Table

AGGREGATES: dict[str, tuple[str, ...]] = {
    "int": (
        "COUNT(*)",
        "SUM({int})",
        "COUNT({int})",
        "COUNT(DISTINCT {int})",
        "COUNT(DISTINCT {text})",
        "MIN({int})",
        "MAX({int})",
        "SUM(DISTINCT {int})",
        "COUNT(*) FILTER (WHERE {int} > 1)",
        "SUM({int}) FILTER (WHERE {text} IS NOT NULL)",
        "COUNT(DISTINCT {int}) FILTER (WHERE {int} < 2)",
    ),
    "text": ("MIN({text})", "MAX({text})", "MAX({text}) FILTER (WHERE {int} > 0)"),
    "double": ("SUM({double})", "MIN({double})", "MAX({double})"),
    "approx": (
        "AVG({int})",
        "AVG({double})",
        "AVG(DISTINCT {int})",
        "AVG({double}) FILTER (WHERE {int} = 1)",
    ),
    "decimal": ("SUM({decimal})", "MIN({decimal})", "MAX({decimal})"),
    "bool": ("COUNT(*) > 1", "SUM({int}) > 2"),
    "date": ("MIN({date})", "MAX({date})"),
    "timestamp": ("MIN({timestamp})", "MAX({timestamp})"),
}
HAD = {"int": "1", "text": "'a'", "double": "0.5e0", "decimal": "0.10"}  # compared with in HAVING
SET_OPERATORS = ("UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT")


@dataclass(frozen=True, slots=True)
class Source:
    """What FROM can name: its text before a window or alias, and its columns."""

    text: str
    columns: tuple[Column, ...]
    is_stream: bool


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    columns: tuple[Column, ...]


class QueryDrawer:
    def __init__(self, draw: st.DrawFn, tables: Sequence[Table]) -> None:
        self._draw = draw
        self._aliases = 0
        self._bases = [Source(t.name, t.columns, not t.is_relation) for t in tables]
        self._views: list[Source] = []

    def _pick(self, *options: str) -> str:
        return self._draw(st.sampled_from(options))

    def _one_in(self, n: int) -> bool:
        return self._draw(st.integers(0, n - 1)) == n - 1

    # --- whole queries --------------------------------------------------------------------------

    def script(self, queries: int) -> str:
        """Views, then queries q0, q1, …"""
        statements = []
        if self._one_in(4):
            statements.append(self._view())
        statements += [f"CREATE QUERY q{i} AS {self.top()}" for i in range(queries)]
        return ";\n".join(statements) + ";\n"

    def top(self) -> str:
        query = self._first_rows(self.relation(depth=2, rough=True)).text
        kind = self._pick("", "", "", "ISTREAM", "DSTREAM", "RSTREAM")
        return f"{kind} ({query})" if kind else query

    def _view(self) -> str:
        name = f"view{len(self._views)}"
        query = self._first_rows(self.relation(depth=1))
        kind = self._pick("", "ISTREAM", "DSTREAM")
        self._views.append(Source(name, query.columns, bool(kind)))
        return f"CREATE VIEW {name} AS {f'{kind} ({query.text})' if kind else query.text}"

    def relation(
        self, depth: int, kinds: Sequence[str] | None = None, rough: bool = False
    ) -> Query:
        """A SELECT, or a set operator over two."""
        if depth > 0 and self._one_in(6):
            wanted = kinds or [self._pick("int", "text", "double", "decimal", "bool", "date")]
            left = self.select(depth - 1, wanted)
            right = self.select(depth - 1, wanted)
            operator = self._pick(*SET_OPERATORS)
            return Query(f"{left.text} {operator} {right.text}", left.columns)
        return self.select(depth, kinds, rough=rough)

    def _first_rows(self, query: Query) -> Query:
        """Maybe with ORDER BY and LIMIT, where values are exact: all of them take part in it."""
        if any(c.kind == "approx" for c in query.columns) or not self._one_in(6):
            return query
        names = [c.name for c in query.columns]
        keys = self._draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        order = [
            key + self._pick("", " DESC") + self._pick("", "", " NULLS FIRST", " NULLS LAST")
            for key in keys
        ]
        limit = self._draw(st.integers(1, 3))
        return Query(f"{query.text} ORDER BY {', '.join(order)} LIMIT {limit}", query.columns)

    # --- one block ------------------------------------------------------------------------------

    def select(
        self,
        depth: int,
        kinds: Sequence[str] | None = None,
        *,
        outer: Sequence[Column] = (),
        rough: bool = False,
        most_sources: int = 3,
    ) -> Query:
        text, columns, joins = self._from(depth, most_sources)
        scope = Expressions(self._draw, columns)
        where = self._where(depth, columns, outer, joins)
        grouped = not outer and self._one_in(3)
        if grouped:
            items, tail = self._grouped_items(scope, columns, kinds, depth)
        else:
            items, tail = self._plain_items(scope, kinds, rough), ""
            if depth > 0 and not kinds and self._one_in(6):
                items.append((self._value(depth - 1, columns), "int"))
        distinct = not rough and self._one_in(6)
        head = "SELECT DISTINCT" if distinct else "SELECT"
        listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
        named = tuple(Column(f"c{i}", kind) for i, (_, kind) in enumerate(items))
        if not (kinds or grouped or rough) and most_sources == 1 and self._one_in(2):
            own = [Column(c.name.split(".")[1], c.kind) for c in columns]
            listed, named = "*", tuple(c for c in own if not c.name.startswith("window_"))
        return Query(f"{head} {listed} FROM {text}{where}{tail}", named)

    def _plain_items(
        self, scope: Expressions, kinds: Sequence[str] | None, rough: bool
    ) -> list[tuple[str, str]]:
        wanted = list(kinds or self._kinds(scope))
        depth = self._draw(st.sampled_from([2, 0, 2]))  # columns as they are, too
        items = [(scope.of(kind, depth), kind) for kind in wanted]
        if rough and self._one_in(8):
            items.append((scope.fill(self._pick(*ROUGH), 1), "approx"))
        return items

    def _kinds(self, scope: Expressions) -> list[str]:
        own = [k for k in scope.kinds() if k != "approx"] or ["int"]
        count = self._draw(st.integers(1, 2))
        return [self._pick(*own, "int", "approx") for _ in range(count)]

    def _grouped_items(
        self,
        scope: Expressions,
        columns: Sequence[Column],
        kinds: Sequence[str] | None,
        depth: int,
    ) -> tuple[list[tuple[str, str]], str]:
        keyable = [c for c in columns if c.kind != "approx"]
        count = min(self._draw(st.sampled_from([1, 0, 1, 2])), len(keyable))
        keys = (
            self._draw(
                st.lists(st.sampled_from(keyable), min_size=count, max_size=count, unique=True)
            )
            if count
            else []
        )
        key_texts = [(c.name, c.kind) for c in keys]
        if keys and self._one_in(5):
            key_texts[0] = (scope.of(keys[0].kind, 1), keys[0].kind)
            if not any(c.name in key_texts[0][0] for c in columns):
                key_texts[0] = (keys[0].name, keys[0].kind)  # a constant is no key
        if keys and depth > 0 and self._one_in(8):
            key_texts.append((self._value(depth - 1, columns), "int"))
        items: list[tuple[str, str]] = []
        for kind in kinds or [self._pick("int", *AGGREGATES) for _ in range(2)]:
            fitting = [k for k in key_texts if k[1] == kind]
            if fitting and self._one_in(2):
                items.append(fitting[0])
            else:
                items.append((scope.fill(self._pick(*AGGREGATES[kind]), 1), kind))
        if not kinds:
            items = key_texts + items
            if depth > 0 and self._one_in(8):
                items.append((self._aggregate_of_value(depth - 1, columns), "int"))
        if not keys and not any(f"{name}(" in text for text, _ in items for name in _NAMES):
            items[0] = ("COUNT(*)", "int")
        tail = f" GROUP BY {', '.join(text for text, _ in key_texts)}" if keys else ""
        if self._one_in(3):
            kind = self._pick("int", "decimal", "text", "int", "double")
            aggregate = scope.fill(self._pick(*AGGREGATES[kind]), 0)
            tail += f" HAVING {aggregate} {self._pick('>=', '>', '<=')} {HAD[kind]}"
        return items, tail

    def _aggregate_of_value(self, depth: int, columns: Sequence[Column]) -> str:
        value = self._value(depth, columns)
        return self._pick(f"SUM({value})", f"MAX({value})", f"COUNT(*) FILTER (WHERE {value} > 0)")

    def _value(self, depth: int, outer: Sequence[Column]) -> str:
        """A sub-query with one row at most: an aggregate, or the first row."""
        text, columns, joins = self._from(depth, 1)
        scope = Expressions(self._draw, columns)
        pairs = [
            (a, b) for a in columns for b in outer if a.kind == b.kind and a.kind in COMPARABLE
        ]
        parts = list(joins)
        if self._one_in(3):
            parts.append(scope.condition(1))
        if pairs and not self._one_in(3):
            a, b = self._draw(st.sampled_from(pairs))
            parts.append(f"{a.name} = {b.name}")
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        exact = [c.name for c in columns if c.kind != "approx"]
        if exact and self._one_in(3):
            order = f" ORDER BY {self._pick(*exact)}{self._pick('', ' DESC')} LIMIT 1"
            return f"(SELECT {scope.of('int', 1)} FROM {text}{where}{order})"
        return f"(SELECT {scope.fill(self._pick(*AGGREGATES['int']), 1)} FROM {text}{where})"

    # --- FROM -----------------------------------------------------------------------------------

    def _from(self, depth: int, most: int) -> tuple[str, tuple[Column, ...], list[str]]:
        """FROM's text and columns, and what WHERE must join by (commas have no ON)."""
        count = min(self._draw(st.sampled_from([1, 1, 2, 2, 3])), most)
        simple = count > 2
        text, columns = self._item(0 if simple else depth)
        joins: list[str] = []
        commas = self._one_in(3)
        for _ in range(count - 1):
            right, more = self._item(0 if simple else depth - 1)
            both = columns + more
            condition = self._join_condition(columns, more, both)
            if commas:
                text = f"{text}, {right}"
                joins.append(condition)
            else:
                style = self._pick("JOIN", "LEFT JOIN", "JOIN", "LEFT JOIN", "CROSS JOIN")
                if depth > 0 and self._one_in(8):
                    side = self._draw(st.sampled_from([columns, more, columns]))
                    own = Expressions(self._draw, both).of("int", 0)
                    condition = f"{condition} AND {own} >= {self._value(depth - 1, side)}"
                on = "" if style == "CROSS JOIN" else f" ON {condition}"
                text = f"{text} {style} {right}{on}"
            columns = both
        return text, columns, joins

    def _join_condition(
        self, left: Sequence[Column], right: Sequence[Column], both: Sequence[Column]
    ) -> str:
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind in COMPARABLE]
        if not pairs or self._one_in(5):
            return Expressions(self._draw, both).condition(1)
        namesakes = [(a, b) for a, b in pairs if a.name.split(".")[1] == b.name.split(".")[1]]
        likely = namesakes if namesakes and not self._one_in(4) else pairs
        a, b = self._draw(st.sampled_from(likely))
        equal = f"{a.name} {self._pick('=', '=', '=', '<')} {b.name}"
        if self._one_in(4):
            return f"{equal} AND {Expressions(self._draw, both).condition(0)}"
        return equal

    def _item(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        """One stream, relation, view or sub-query, with its window and alias."""
        source = self._source(depth)
        self._aliases += 1
        alias = f"a{self._aliases}"
        window = f" {self._window(source.columns)}" if source.is_stream else ""
        if source.is_stream and source in self._bases and self._one_in(5):
            window += f" {self._tolerance(source.columns)}"
        columns = tuple(Column(f"{alias}.{c.name}", c.kind) for c in source.columns)
        if window.startswith((" [Tumble", " [Hop", " [Session")) and self._one_in(2):
            columns += tuple(Column(f"{alias}.window_{b}", "int") for b in ("start", "end"))
        return f"{source.text}{window} {alias}", columns

    def _source(self, depth: int) -> Source:
        choice = self._draw(st.integers(0, 11))
        if self._views and choice in (8, 9):
            return self._draw(st.sampled_from(self._views))
        if depth > 0 and choice >= 10:
            return self._derived(depth - 1)
        return self._draw(st.sampled_from(self._bases))

    def _derived(self, depth: int) -> Source:
        """A sub-query, as the relation that it is or made a stream."""
        kind = self._pick("", "ISTREAM", "DSTREAM", "RSTREAM", "growing")
        if kind == "growing":
            base = self._draw(st.sampled_from([b for b in self._bases if b.is_stream]))
            columns = tuple(Column(f"g.{c.name}", c.kind) for c in base.columns)
            where = Expressions(self._draw, columns).condition(1)
            return Source(f"(SELECT * FROM {base.text} g WHERE {where})", base.columns, True)
        query = self._first_rows(self.select(depth, most_sources=1 if kind == "RSTREAM" else 2))
        text = f"{kind} ({query.text})" if kind else query.text
        return Source(f"({text})", query.columns, bool(kind))

    def _window(self, columns: Sequence[Column]) -> str:
        length = self._draw(st.integers(1, 5))
        slide = self._pick("", "", f" Slide {self._draw(st.integers(2, 4))}")
        rows = f"Rows {self._draw(st.integers(1, 3))}{slide}]"
        kinds = ("range", "range", "now", "unbounded", "rows", "partition")
        match self._pick(*kinds, "tumble", "hop", "session", "partition session"):
            case "tumble":
                return f"[Tumble {length}]"
            case "hop":
                return f"[Hop {length * self._draw(st.integers(2, 3))} EVERY {length}]"
            case "session":
                return f"[Session {length}]"
            case "partition session":
                keys = self._draw(st.sampled_from(columns)).name
                return f"[Session {length} Partition By {keys}]"
            case "range":
                return f"[Range {length}{slide}]"
            case "now":
                return f"[Now{slide}]"
            case "unbounded":
                return f"[Unbounded{slide}]"
            case "rows":
                return f"[{rows}"
            case _:
                keys = self._draw(st.sampled_from(columns)).name
                return f"[Partition By {keys} {rows}"

    def _tolerance(self, columns: Sequence[Column]) -> str:
        numeric = [c for c in columns if c.kind in ("int", "double", "decimal", "approx")]
        number = self._draw(st.integers(0, 2))
        kinds = ["updates", "age"] + (["value", "value", "share"] if numeric else [])
        match self._pick(*kinds):
            case "updates":
                allowed = f"{number} UPDATES"
            case "age":
                allowed = f"{number + 1} ms"
            case "value":
                column = self._draw(st.sampled_from(numeric)).name
                allowed = f"{column} {self._pick('0', '0.5', '1', '1.25', '2')}"
            case _:
                column = self._draw(st.sampled_from(numeric)).name
                allowed = f"{column} {self._pick('0', '12.5', '50', '100')} PERCENT"
        if self._one_in(2):
            return f"TOLERANCE {allowed}"
        keys = self._draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
        per = ", ".join(k.name for k in keys)
        return f"TOLERANCE {allowed} PER {per if len(keys) == 1 else f'({per})'}"

    # --- WHERE ----------------------------------------------------------------------------------

    def _where(
        self,
        depth: int,
        columns: Sequence[Column],
        outer: Sequence[Column],
        joins: list[str],
    ) -> str:
        parts = []
        if self._one_in(3):
            parts.append(Expressions(self._draw, columns).condition(1))
        if depth > 0 and self._one_in(4):
            parts.append(self._subquery_predicate(depth - 1, columns))
        if depth > 0 and self._one_in(8):
            own = Expressions(self._draw, columns).of("int", 0)
            compared = self._pick("=", "<", ">=")
            parts.append(f"{own} {compared} {self._value(depth - 1, columns)}")
        if len(parts) > 1 and self._one_in(2):
            parts = [f"({' OR '.join(parts)})"]
        parts += joins
        correlation = self._correlation(columns, outer)
        if correlation:
            parts.append(correlation)
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _correlation(self, columns: Sequence[Column], outer: Sequence[Column]) -> str:
        pairs = [
            (a, b) for a in columns for b in outer if a.kind == b.kind and a.kind in COMPARABLE
        ]
        if not pairs or self._one_in(4):
            return ""
        kind = self._pick(*sorted({a.kind for a, _ in pairs}))
        a, b = self._draw(st.sampled_from([p for p in pairs if p[0].kind == kind]))
        return f"{a.name} {self._pick('=', '=', '<', '>=')} {b.name}"

    def _subquery_predicate(self, depth: int, columns: Sequence[Column]) -> str:
        negated = self._pick("", "NOT ")
        outer = () if self._one_in(3) else columns
        if self._one_in(2):
            query = self.select(depth, ["int"], outer=outer, most_sources=2)
            return f"{negated}EXISTS ({query.text})"
        kinds = [k for k in Expressions(self._draw, columns).kinds() if k in COMPARABLE] or ["int"]
        kind = self._pick(*kinds)
        value = Expressions(self._draw, columns).of(kind, 0)
        query = self.select(depth, [kind], outer=outer, most_sources=2)
        return f"{value} {negated}IN ({query.text})"


_NAMES = ("COUNT", "SUM", "MIN", "MAX", "AVG")
