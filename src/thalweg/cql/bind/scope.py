"""Which columns a name can mean."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.cql.errors import Mistake, Span, closest
from thalweg.cql.syntax import ColumnRef
from thalweg.plan.expr import Col
from thalweg.plan.nodes import BOUND_NAMES, Schema

# A column of the enclosing block is bound as its index there plus OUTER, until the sub-query's
# predicate is turned into a Mark, which sees both blocks' columns in a row.
OUTER = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM: `alias` qualifies its columns, which start at `offset` of the row."""

    alias: str | None
    fields: Schema
    span: Span
    offset: int = 0
    table: str | None = None
    stamp: str | None = None  # a timestamp that is not among the columns
    hidden: int = 0  # last columns that `*` leaves out, and that others of their name go before

    @property
    def shown(self) -> Schema:
        return self.fields[: len(self.fields) - self.hidden]


class Scope:
    def __init__(
        self, sources: tuple[Source, ...], outer: Scope | None = None, place: str = "FROM"
    ) -> None:
        self.sources = sources
        self.outer = outer
        self.place = place  # what holds the sources, for messages
        self._by_alias = {s.alias.lower(): s for s in sources if s.alias is not None}
        self._by_name: dict[str, list[tuple[Source, Col]]] = {}
        for source in sources:
            own = {f.name.lower() for f in source.shown}
            for i, f in enumerate(source.fields):
                if i >= len(source.shown) and f.name.lower() in own:
                    continue
                column = source, Col(source.offset + i, f.type, f.name)
                self._by_name.setdefault(f.name.lower(), []).append(column)

    def source(self, alias: str) -> Source | None:
        return self._by_alias.get(alias.lower())

    def find(self, ref: ColumnRef) -> Col | None:
        """The column of this block that is meant; None if there is none. Raises if ambiguous."""
        found = self._by_name.get(ref.name.lower(), [])
        if ref.qualifier is not None:
            wanted = ref.qualifier.lower()
            found = [(s, c) for s, c in found if s.alias is not None and s.alias.lower() == wanted]
        if len(found) > 1:
            raise _ambiguous(ref, [s for s, _ in found])
        return found[0][1] if found else None

    def qualifier_of(self, index: int) -> str | None:
        """The alias of the source whose column this is."""
        for source in self.sources:
            if source.offset <= index < source.offset + len(source.fields):
                return source.alias
        return None

    def column_names(self) -> list[str]:
        return [f.name for s in self.sources for f in s.fields]

    def unknown(self, ref: ColumnRef) -> Mistake:
        """Why a reference means nothing here, with a suggestion where one is close."""
        if ref.qualifier is not None:
            source = self.source(ref.qualifier)
            if source is None:
                return self._unknown_qualifier(ref)
            candidates = [f.name for f in source.fields]
            where = f"in {source.alias}"
        else:
            candidates = self.column_names()
            where = "in " + ", ".join(s.alias or "the sub-query" for s in self.sources)
        near = closest(ref.name, candidates)
        if near is not None:
            hint: str | None = f'did you mean "{near}"?'
        else:
            hint = self._stamp_hint(ref) or _clash_hint(f".{ref.name}", candidates)
            if hint is None and ref.name.lower() in BOUND_NAMES:
                hint = "only Tumble, Hop and Session windows have bounds"
        return Mistake(f'there is no column "{ref.name}" {where}', ref.span, hint)

    def _unknown_qualifier(self, ref: ColumnRef) -> Mistake:
        assert ref.qualifier is not None
        wanted = ref.qualifier.lower()
        hint = _clash_hint(f"{ref.qualifier}.{ref.name}", self.column_names())
        for source in self.sources:
            if source.table is not None and source.table.lower() == wanted and source.alias:
                hint = f'{source.table} is called "{source.alias}" here'
        near = closest(ref.qualifier, (s.alias for s in self.sources if s.alias))
        if hint is None and near is not None:
            hint = f'did you mean "{near}"?'
        return Mistake(f'"{ref.qualifier}" is not in {self.place}', ref.span, hint)

    def _stamp_hint(self, ref: ColumnRef) -> str | None:
        for source in self.sources:
            if source.stamp is not None and source.stamp.lower() == ref.name.lower():
                return (
                    f"{source.stamp} stamps {source.table} without being one of its columns; "
                    "list it among them in CREATE"
                )
        return None


def _clash_hint(ending: str, candidates: list[str]) -> str | None:
    """For columns that a sub-query told apart by their stream, such as "X.A" and "Y.A"."""
    found = [f'"{c}"' for c in candidates if c.lower().endswith(ending.lower())]
    return f"write {' or '.join(found)}, with the quotes" if found else None


def _ambiguous(ref: ColumnRef, sources: list[Source]) -> Mistake:
    spellings = [f"{s.alias}.{ref.name}" for s in sources if s.alias is not None]
    hint = f"write {' or '.join(spellings)}" if spellings else "give the columns different aliases"
    return Mistake(f'column "{ref.name}" is ambiguous', ref.span, hint)
