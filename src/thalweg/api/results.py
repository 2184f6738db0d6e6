"""A query's results in Python: an iterator, or a table in pandas, Arrow or Polars."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import dtype
from thalweg.engine.sinks.flat import flat, flat_names
from thalweg.engine.site import Position, Site, WrongUse
from thalweg.engine.site.now import Content
from thalweg.engine.site.positions import START
from thalweg.engine.site.reading import Page
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of

if TYPE_CHECKING:
    import pandas as pd


class IncompleteHistory(UserWarning):
    """A query begins with less than its windows ask for, or results without their first ones."""


def content_frame(found: Content) -> pl.DataFrame:
    """A content as a table with the query's own columns."""
    rows = found.rows.clone()
    rows.columns = flat_names(found.columns, ())
    return rows


class Result(NamedTuple):
    """At instant `ts` a copy of `row` enters (+) or leaves (-) the result; `id` never changes."""

    id: Position
    ts: int
    op: str
    row: dict[str, Any]


class Results:
    """What a query has said, in order; with `follow` also what it will say.

    Reading never uses results up: each iteration starts again behind `after`. The columns of
    tables are `_ts`, `_op` and the query's own.
    """

    def __init__(
        self,
        site: Site,
        query: QueryDef,
        *,
        after: Position = START,
        follow: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        self._site, self._query = site, query
        self._after, self._follow, self._timeout_s = after, follow, timeout_s

    @property
    def complete_from(self) -> str | None:
        """The instant from which all that the query has said is still kept; None: from its start.
        `content` of the query does not depend on it."""
        return self._site.complete_from(self._query.name) if self._after == START else None

    def pages(self) -> Iterator[Page]:
        """A page per tick."""
        if (since := self.complete_from) is not None:
            warnings.warn(
                f"{self._query.name}: results before {since} are no longer kept, so these begin in "
                "the middle; content() has what the result holds now",
                IncompleteHistory,
                stacklevel=3,
            )
        return self._site.results(
            self._query.name, self._after, follow=self._follow, timeout_s=self._timeout_s
        )

    def __iter__(self) -> Iterator[Result]:
        for page in self.pages():
            columns = page.emission.columns
            for id_, change in zip(page.ids(), page.changes(), strict=True):
                yield Result(id_, change.ts, change.op, dict(zip(columns, change.row, strict=True)))

    def to_polars(self) -> pl.DataFrame:
        if self._follow and self._timeout_s is None:
            raise WrongUse("a table of results has an end: ask for it without follow")
        frames = [flat(page.emission) for page in self.pages() if page.emission.rows.height]
        # Versions of a query may have different columns.
        return pl.concat(frames, how="diagonal_relaxed") if frames else self._empty()

    def to_arrow(self) -> pa.Table:
        return self.to_polars().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        return self.to_polars().to_pandas()

    def snapshot(self) -> Counter[tuple[Any, ...]]:
        """The bag of rows that the relation is now; behind a position, what has come since."""
        if self._after == START and not self._follow:
            return Counter(self._site.content(self._query.name).tuples())
        bag: Counter[tuple[Any, ...]] = Counter()
        for page in self.pages():
            for change in page.changes():
                bag[change.row] += 1 if change.op == "+" else -1
        if any(count < 0 for count in bag.values()):
            raise WrongUse(
                f"more has gone than has come since {self._after}: "
                "ask for a snapshot without a position"
            )
        return +bag

    def _empty(self) -> pl.DataFrame:
        schema = shape_of(self._query).schema
        names = flat_names(tuple(f.name for f in schema))
        types = [pl.Int64(), pl.String(), *(dtype(f.type) for f in schema)]
        return pl.DataFrame(schema=dict(zip(names, types, strict=True)))

    def __repr__(self) -> str:
        return f"Results of {self._query.name}: loop over them, or to_polars(), to_pandas()"

    def _repr_html_(self) -> str:
        from thalweg.api.html import results_html

        return results_html(self._site, self._query)
