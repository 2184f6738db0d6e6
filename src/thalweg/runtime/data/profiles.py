"""What is wanted of another node's stream: which rows, as conditions in CQL, and which columns.

Source: COSMOS 3.2, profiles ⟨streams, attributes, filters⟩. A condition is sent as text, since the
publisher keeps it as a statement. One whose text does not give the same condition when it is read
again is not sent: then all rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from thalweg.cql import CqlError, compile_script
from thalweg.engine.shared.compile.columns import valued_columns
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.site.publications import publication_text
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.expr import Call, Col, Expr, Lit, columns_of, conjunction, conjuncts
from thalweg.plan.functions import call
from thalweg.plan.nodes import Filter, Node, walk
from thalweg.plan.text import expr_text
from thalweg.plan.types import VARCHAR, SqlType
from thalweg.plan.wanted_rows import MOST_ALTERNATIVES, wanted_rows
from thalweg.sharing.conditions import classified
from thalweg.sharing.discrete import range_of
from thalweg.sharing.ranges import Range
from thalweg.sharing.rules import conditions_of as normal_conditions

Where = tuple[str, ...]  # one of which a row must fulfil
Columns = tuple[str, ...]  # in order of the names


class Profile(msgspec.Struct, frozen=True):
    """None: all rows. Columns are named, all of them if need be, since streams get more (None: all
    that a fragment has)."""

    where: Where | None = None
    columns: Columns | None = None

    def merged(self, stream: StreamDef, other: Profile) -> Profile:
        """What somebody wants who wants either."""
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = tuple(sorted({*self.columns, *other.columns}))
        return Profile(merged(stream, self.where, other.where), columns)

    def sends(self, column: str) -> bool:
        return self.columns is None or column in self.columns

    def covers(self, stream: StreamDef, wanted: Profile) -> bool:
        has_columns = self.columns is None or (
            wanted.columns is not None and set(wanted.columns) <= set(self.columns)
        )
        return has_columns and covers(stream, self.where, wanted.where)


NOTHING = Profile((), ())


def everything(stream: StreamDef) -> Profile:
    return Profile(None, tuple(sorted(f.name for f in stream.fields)))


def profile_of(plan: Node, stream: StreamDef) -> Profile:
    """What a query wants of a stream."""
    rows = wanted_rows(plan, stream.name)
    places = valued_columns([compile_query(plan)]).get(stream.name)
    if places is None:
        return Profile(where_of(stream, rows), everything(stream).columns)
    looked_at = {*places, *(c for e in rows or () for c in columns_of(e))}
    if stream.timestamp_index is not None:
        looked_at.add(stream.timestamp_index)  # finer, maybe, than its instant
    return Profile(where_of(stream, rows), tuple(sorted(stream.fields[c].name for c in looked_at)))


def where_of(stream: StreamDef, wanted: frozenset[Expr] | None) -> Where | None:
    """None: all rows are wanted, or can't be told apart by a text."""
    if wanted is None:
        return None
    texts = tuple(sorted(expr_text(e, stream.fields) for e in wanted))
    return texts if conditions_of(stream, texts) == wanted else None


def conditions_of(stream: StreamDef, where: Sequence[str]) -> frozenset[Expr] | None:
    """What the texts mean; None if one of them means nothing."""
    found = [_condition(stream, text) for text in where]
    return None if None in found else frozenset(e for e in found if e is not None)


def _condition(stream: StreamDef, text: str) -> Expr | None:
    catalog = Catalog().with_definition(stream)
    try:
        script = compile_script(publication_text(stream, "pub/it", 0, (text,)), catalog)
    except CqlError:
        return None
    filters = [n for n in walk(script.queries[0].plan) if isinstance(n, Filter)]
    return filters[0].predicate if len(filters) == 1 else None


def merged(stream: StreamDef, one: Where | None, other: Where | None) -> Where | None:
    """What somebody wants who wants either. Ranges that overlap become one, so that what many want
    of a stream stays short (COSMOS 3.2.2)."""
    if one is None or other is None:
        return None
    both = tuple(sorted({*one, *other}))
    joined = _joined(stream, both) if len(both) > 1 else both
    if len(joined) > MOST_ALTERNATIVES:
        joined = _of_words(stream, joined)
    return joined if len(joined) <= MOST_ALTERNATIVES else None


def covers(stream: StreamDef, given: Where | None, wanted: Where | None) -> bool:
    """Whether who gets the one lacks nothing of the other. It may be so, and not be seen."""
    if given is None or wanted is None:
        return given is None
    return set(wanted) <= set(given) or merged(stream, given, wanted) == merged(
        stream, given, given
    )


def _joined(stream: StreamDef, where: Where) -> Where:
    """With conditions that are ranges of one column joined where they touch."""
    conditions = conditions_of(stream, where)
    if conditions is None:
        return where
    conditions = with_joined_words(conditions)
    ranges: dict[Col, list[Range]] = {}
    others: set[Expr] = set()
    for condition in conditions:
        found = _as_range(condition, len(stream.fields))
        if found is None:
            others.add(condition)
        else:
            ranges.setdefault(found[0], []).append(found[1])
    for column, several in ranges.items():
        parts = [_as_condition(column, r) for r in touching(several, column.type)]
        if None in parts:
            return where  # all values but NULL: there is no range for that
        others.update(p for p in parts if p is not None)
    return where_of(stream, frozenset(others)) or where


def with_joined_words(conditions: Iterable[Expr]) -> frozenset[Expr]:
    """Conditions that differ in nothing but the words that a text has to have become one."""
    found: dict[tuple[Expr, frozenset[Expr]], tuple[set[str], list[Expr]]] = {}
    others: set[Expr] = set()
    for condition in conditions:
        parts = conjuncts(condition)
        texts = [(p, of) for p in parts if (of := _words(p)) is not None]
        if len(texts) != 1:
            others.add(condition)
            continue
        ((part, (column, words)),) = texts
        rest = [p for p in parts if p != part]
        found.setdefault((column, frozenset(rest)), (set(), rest))[0].update(words)
    joined = set[Expr]()
    for (column, _), (wanted, rest) in found.items():
        # Who asks for more than a word asks for nothing that the word alone does not.
        alone = found.get((column, frozenset()))
        left = wanted - alone[0] if rest and alone is not None else wanted
        if left:
            joined.add(conjunction([_has_any(column, left), *rest]))
    return frozenset(others | joined)


def _of_words(stream: StreamDef, where: Where) -> Where:
    """With nothing but the words that texts have to have, if all conditions have such: more than
    is wanted, and short."""
    conditions = conditions_of(stream, where) or ()
    found = [[p for p in conjuncts(c) if _words(p) is not None] for c in conditions]
    if not found or not all(found):
        return where
    return where_of(stream, with_joined_words(parts[0] for parts in found)) or where


def _words(condition: Expr) -> tuple[Expr, list[str]] | None:
    match condition:
        case Call("has_any", (Col() as column, Lit(str(words), _)), _):
            return column, words.split(",")
        case _:
            return None


def _has_any(column: Expr, words: Iterable[str]) -> Expr:
    in_order = sorted(words, key=lambda word: (len(word), word))
    return call("has_any", column, Lit(",".join(in_order), VARCHAR))


def _as_range(condition: Expr, width: int) -> tuple[Col, Range] | None:
    found = classified((), normal_conditions(condition), width)
    if found.joins or found.residuals or len(found.ranges) != 1:
        return None
    ((column, values),) = found.ranges
    return (column, values) if isinstance(column, Col) else None


def touching(ranges: Iterable[Range], type_: SqlType) -> list[Range]:
    """The same values, in as few ranges as can be."""
    found: list[Range] = []
    for one in ranges:
        if one.is_empty:
            continue
        for other in [r for r in found if _touch(r, one, type_)]:
            found.remove(other)
            one = one.hull(other)
        found.append(one)
    return found


def _touch(one: Range, other: Range, type_: SqlType) -> bool:
    if not one.meet(other).is_empty:
        return True
    for below, above in ((one.high, other.low), (other.high, one.low)):
        if below is None or above is None or not (below.closed or above.closed):
            continue
        if below.value == above.value:
            return True
        is_counted = below.closed and above.closed
        if is_counted and range_of(">", below.value, type_).low == above:
            return True  # neighbours
    return False


def _as_condition(column: Col, values: Range) -> Expr | None:
    if values.is_point:
        assert values.low is not None
        return call("=", column, Lit(values.low.value, column.type))
    parts = []
    if (low := values.low) is not None:
        parts.append(call(">=" if low.closed else ">", column, Lit(low.value, column.type)))
    if (high := values.high) is not None:
        parts.append(call("<=" if high.closed else "<", column, Lit(high.value, column.type)))
    return conjunction(parts) if parts else None
