"""The normal form of a query: a select-project-join core, and what stands above it.

The core is what queries can have in common (COSMOS 3.2): select, project and join over Now, Range
and Unbounded. Its conditions are of three kinds:

- *joins* have nothing to vary: conditions without constants, and every equality between leaves.
  With the streams and the slides of their windows they are the signature; queries of one signature
  can be answered together. For windows of one slide let a tuple in at the same instant, and the
  longer one lets it go later.
- *ranges* compare one expression with constants; there is one range per expression.
- *residuals* are all others: a template whose constants are pulled out.

Columns are counted over the leaves side by side, leaves in order of their streams' names.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Col, Expr, Lit, Value, transform
from thalweg.plan.nodes import StreamKind
from thalweg.plan.types import SqlType
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.ranges import Range


@dataclass(frozen=True, slots=True)
class Residual:
    """A condition with its constants pulled out: parameter i is column `width + i`."""

    template: Expr
    width: int  # of the core's leaves side by side
    constants: tuple[Value, ...]
    types: tuple[SqlType, ...]

    @property
    def condition(self) -> Expr:
        """With the constants put back."""

        def put_back(e: Expr) -> Expr:
            if isinstance(e, Col) and e.index >= self.width:
                place = e.index - self.width
                return Lit(self.constants[place], self.types[place])
            return e

        return transform(self.template, put_back)


@dataclass(frozen=True, slots=True)
class Core:
    streams: tuple[StreamDef, ...]
    windows: tuple[TimeWindow, ...]
    joins: tuple[Expr, ...]
    ranges: tuple[tuple[Expr, Range], ...]
    residuals: tuple[Residual, ...]
    outputs: tuple[Expr, ...]

    @property
    def signature(self) -> Signature:
        return signature_of(self.streams, slides_of(self.windows), self.joins)

    @property
    def width(self) -> int:
        return sum(len(s.fields) for s in self.streams)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each leaf's columns begin."""
        starts = [0]
        for stream in self.streams:
            starts.append(starts[-1] + len(stream.fields))
        return tuple(starts)


@dataclass(frozen=True, slots=True)
class Signature:
    """What queries that are answered together have in common."""

    streams: tuple[str, ...]
    slides: tuple[int, ...]
    joins: tuple[Expr, ...]
    widths: tuple[int, ...] = ()  # a stream that was given a column is another one


def signature_of(
    streams: tuple[StreamDef, ...], slides: tuple[int, ...], joins: tuple[Expr, ...]
) -> Signature:
    names, widths = tuple(s.name for s in streams), tuple(len(s.fields) for s in streams)
    return Signature(names, slides, joins, widths)


def slides_of(windows: tuple[TimeWindow, ...]) -> tuple[int, ...]:
    return tuple(w.slide for w in windows)


# --- what may stand above a core: each step over the columns of the one below --------------------


@dataclass(frozen=True, slots=True)
class Grouped:
    """GROUP BY the keys; the keys, then the aggregates."""

    keys: tuple[Expr, ...]
    aggregates: tuple[AggCall, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A filter, such as HAVING."""

    predicate: Expr


@dataclass(frozen=True, slots=True)
class Computed:
    exprs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class WithoutRepeats:
    """DISTINCT."""


Step = Grouped | Kept | Computed | WithoutRepeats


@dataclass(frozen=True, slots=True)
class NormalQuery:
    """A query in normal form; `kind` is None for a relation."""

    core: Core
    above: tuple[Step, ...]
    kind: StreamKind | None
    names: tuple[str, ...]  # of the result's columns: they matter to people only


@dataclass(frozen=True, slots=True)
class NotNormal:
    """Why a query has no normal form: it shares SteMs only."""

    reason: str
