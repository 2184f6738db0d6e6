"""A query's results in Python: an iterator, or a table in pandas, Arrow or Polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import dtype
from thalweg.engine.sinks.flat import flat, flat_names
from thalweg.engine.site import Position, Site, WrongUse
from thalweg.engine.site.positions import START
from thalweg.engine.site.reading import Page
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of

if TYPE_CHECKING:
    import pandas as pd


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

    def pages(self) -> Iterator[Page]:
        """A page per tick."""
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
        """The bag of rows that all changes so far add up to: the relation as it is now."""
        bag: Counter[tuple[Any, ...]] = Counter()
        for page in self.pages():
            for change in page.changes():
                bag[change.row] += 1 if change.op == "+" else -1
        if any(count < 0 for count in bag.values()):
            raise WrongUse(
                f"the first results of {self._query.name} are no longer kept, "
                "so what they add up to is not known"
            )
        return +bag

    def _empty(self) -> pl.DataFrame:
        schema = shape_of(self._query).schema
        names = flat_names(tuple(f.name for f in schema))
        types = [pl.Int64(), pl.String(), *(dtype(f.type) for f in schema)]
        return pl.DataFrame(schema=dict(zip(names, types, strict=True)))

    def _repr_html_(self) -> str:
        from thalweg.api.html import results_html

        return results_html(self._site, self._query)
