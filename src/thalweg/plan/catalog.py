"""What is registered: streams, relations, views, queries and sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from thalweg.plan.types import BIGINT, DATE, INTEGER, TIMESTAMP, SqlType

if TYPE_CHECKING:
    from thalweg.plan.nodes import Node
    from thalweg.plan.shapes import Shape, TemplateId

MICROSECONDS_PER_MILLISECOND = 1000


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


PLACE = (Field("_instant", BIGINT), Field("_position", BIGINT))


@dataclass(frozen=True, slots=True)
class StreamDef:
    """A base stream, or a base relation fed by a changelog whose column `op` is + or -.

    `fields` are the tuple's columns. The timestamp may be one of them or not; `op` never is.
    An instant is the timestamp counted in units of the resolution: an integer timestamp as it
    stands, a DATE or TIMESTAMP as ⌊microseconds since the epoch / resolution_us⌋.
    """

    name: str
    fields: tuple[Field, ...]
    timestamp: str
    timestamp_type: SqlType = TIMESTAMP
    is_relation: bool = False
    resolution_us: int = MICROSECONDS_PER_MILLISECOND
    lateness: int = 0  # in instants
    idle_ms: int | None = None
    source: str | None = None
    options: tuple[tuple[str, str], ...] = ()  # what OPTIONS (…) said, names in lower case
    retain: int | None = None  # for how many instants tuples are kept, read or not
    wide: tuple[int, ...] = ()  # columns that are kept only while somebody reads them
    # A table is a relation whose changes get their instants when they come in.
    is_table: bool = False
    key: tuple[str, ...] = ()  # columns that tell its rows apart; then what is pushed replaces
    refresh_ms: int | None = None
    # So many of the last fields came later: who does not give them gives NULL. No part of what a
    # query means, so streams that differ in it are equal.
    added: int = field(default=0, compare=False)
    # The last two fields are the tuple's own instant and its position (FROM S WITH POSITION).
    is_placed: bool = False

    def __post_init__(self) -> None:
        names = [f.name.lower() for f in self.fields]
        if (self.key or self.refresh_ms is not None) and not self.is_table:
            raise ValueError(f"{self.name}: only a table has a key, and is refreshed")
        if self.is_table and not self.is_relation:
            raise ValueError(f"{self.name}: a table is a relation")
        if not {k.lower() for k in self.key} <= set(names):
            raise ValueError(f"{self.name}: the key is made of its columns")
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name} has two columns of one name")
        if self.timestamp_type not in (BIGINT, INTEGER, DATE, TIMESTAMP):
            raise ValueError(
                f"{self.name} is stamped by {self.timestamp_type}; "
                "a timestamp is INTEGER, BIGINT, DATE or TIMESTAMP"
            )
        if self.resolution_us < 1 or self.lateness < 0:
            raise ValueError(f"{self.name}: resolution is positive, lateness not negative")
        if self.is_relation and (self.retain is not None or self.wide):
            raise ValueError(f"{self.name}: a relation is kept whole")

    def placed(self) -> StreamDef:
        """The same stream, each tuple with its instant and its position: the order of tuples of
        one instant, the same for all who read them."""
        if self.is_relation:
            raise ValueError(f"{self.name}: a relation's rows have no position")
        return replace(self, fields=(*self.fields, *PLACE), is_placed=True)

    @property
    def is_retained(self) -> bool:
        """Whether something is kept of it, whoever reads it: a relation is kept whole."""
        return self.is_relation or self.retain is not None

    @property
    def beginning(self) -> int:
        """From when a table's first load holds: the year 1, before which there are no dates."""
        return -62_135_596_800_000_000 // self.resolution_us

    @property
    def key_indexes(self) -> tuple[int, ...]:
        names = [f.name.lower() for f in self.fields]
        return tuple(names.index(k.lower()) for k in self.key)

    @property
    def added_names(self) -> frozenset[str]:
        """In lower case."""
        first = len(self.fields) - self.added
        return frozenset(f.name.lower() for f in self.fields[first:])

    @property
    def timestamp_index(self) -> int | None:
        """The timestamp's place among the fields; None if it only stamps the tuple."""
        names = [f.name.lower() for f in self.fields]
        name = self.timestamp.lower()
        return names.index(name) if name in names else None


@dataclass(frozen=True, slots=True)
class ViewDef:
    name: str
    plan: Node
    text: str = ""


class QueryDef:
    """A standing query; `from_now` sets its horizon to the instant of its submission.

    What it says never changes. But its plan, which takes many times the space of its text, may be
    released (`release_plan`), and is then recompiled on demand: most queries of a site are never
    looked at. One that this version does not understand (`unreadable`) has no plan at all.
    """

    __slots__ = (
        "_plan",
        "_recompile",
        "from_now",
        "name",
        "reason",
        "shape",
        "template_id",
        "text",
    )

    def __init__(
        self,
        name: str,
        plan: Node,
        text: str = "",
        from_now: bool = False,
        template_id: TemplateId | None = None,
    ) -> None:
        self.name, self.text, self.from_now, self.template_id = name, text, from_now, template_id
        self._plan: Node | None = plan
        self._recompile: Callable[[QueryDef], Node] | None = None
        self.shape = template_id.shape if template_id is not None else None  # see `shapes.shape_of`
        self.reason: str | None = None  # why it stands, but does not run

    @classmethod
    def unreadable(
        cls, name: str, text: str, shape: Shape, reason: str, recompile: Callable[[QueryDef], Node]
    ) -> QueryDef:
        """A query whose text was understood once, when it had this shape; `recompile` raises."""
        made = cls.__new__(cls)
        made.name, made.text, made.from_now, made.reason = name, text, False, reason
        made.release_plan(shape, recompile)
        return made

    @property
    def plan(self) -> Node:
        if self._plan is not None:
            return self._plan
        assert self._recompile is not None
        return self._recompile(self)

    def release_plan(self, shape: Shape, recompile: Callable[[QueryDef], Node]) -> None:
        """Drop the plan; `recompile` makes the same one from the text."""
        self._plan, self.template_id, self.shape, self._recompile = None, None, shape, recompile

    def __repr__(self) -> str:
        return f"QueryDef({self.name}: {self.text})"


@dataclass(frozen=True, slots=True)
class SinkDef:
    """Where a query's rows are written to; what a target means is the sinks' affair."""

    name: str
    query: str
    target: str
    options: tuple[tuple[str, str], ...] = ()  # what OPTIONS (…) said, names in lower case


@dataclass(frozen=True, slots=True)
class SetAside:
    """A stream, view or sink whose text this version does not understand: it has a name and can be
    dropped or replaced, and nothing can read it."""

    name: str
    kind: str  # stream, relation, table, view or sink
    text: str
    reason: str


Definition = StreamDef | ViewDef | QueryDef | SinkDef | SetAside


@dataclass(frozen=True, slots=True)
class Catalog:
    """Definitions by lower-cased name; streams, views, queries and sinks share one name space."""

    definitions: Mapping[str, Definition] = field(default_factory=dict, hash=False)

    def find(self, name: str) -> Definition | None:
        return self.definitions.get(name.lower())

    def with_definition(self, definition: Definition) -> Catalog:
        return Catalog({**self.definitions, definition.name.lower(): definition})

    def without(self, name: str) -> Catalog:
        return Catalog({k: v for k, v in self.definitions.items() if k != name.lower()})

    def streams(self) -> tuple[StreamDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, StreamDef))

    def views(self) -> tuple[ViewDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, ViewDef))

    def queries(self) -> tuple[QueryDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, QueryDef))

    def set_aside(self) -> tuple[SetAside, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, SetAside))

    def sinks(self) -> tuple[SinkDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, SinkDef))
