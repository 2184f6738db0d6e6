"""Standing queries as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from thalweg.api.results import Result, Results, content_frame
from thalweg.engine.site import Position, Site, WrongUse
from thalweg.engine.site.positions import START
from thalweg.engine.site.status import QueryStatus
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of


class Query:
    """A query that stands until it is stopped."""

    def __init__(self, site: Site, definition: QueryDef) -> None:
        self._site, self._definition = site, definition

    @property
    def name(self) -> str:
        return self._definition.name

    @property
    def columns(self) -> dict[str, str]:
        """Name and type of each result column, of the version that stands."""
        standing = self._site.catalog.find(self.name)
        found = standing if isinstance(standing, QueryDef) else self._definition
        return {f.name: str(f.type) for f in shape_of(found).schema}

    def status(self) -> QueryStatus:
        return next(s for s in self._site.queries() if s.name == self.name)

    def results(
        self,
        *,
        after: Position = START,
        follow: bool = False,
        timeout_s: float | None = None,
    ) -> Results:
        """What the query has said behind a position. `follow` goes on with what it will say, until
        the query is stopped or nothing has come for `timeout_s`."""
        self._site.query(self.name)
        return Results(
            self._site, self._definition, after=after, follow=follow, timeout_s=timeout_s
        )

    def content(self) -> pl.DataFrame:
        """What the result holds at the last instant that is final, from state: the changes that
        made it need not be kept any more."""
        return content_frame(self._site.content(self.name))

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results())

    def on_rows(self, call: Callable[[Result], None]) -> Callable[[], None]:
        """Call a function for every row from now on: at least once. Gives how to stop it."""
        from thalweg.api.callbacks import call_for_rows

        return call_for_rows(self._site, self.name, call)

    def write_to(self, target: str, options: Mapping[str, str] | None = None) -> str:
        """Write rows to `jsonl:FILE`, `csv:FILE`, `parquet:FOLDER` or `kafka:HOST:PORT/TOPIC` from
        now on, exactly once and after every restart; gives the sink's name. `options` are those of
        CREATE SINK."""
        return self._site.write_to(self.name, target, options=options)

    def explain(self, form: str = "logical") -> str:
        """How it is computed: `logical`, `physical` or `spark`."""
        return self._site.explain(self.name, form).text

    def stop(self) -> None:
        """Drop the query, with its results and state."""
        self._site.stop(self.name)

    def __repr__(self) -> str:
        return f"Query({self.name!r}: {', '.join(f'{n} {t}' for n, t in self.columns.items())})"

    def _repr_html_(self) -> str:
        from thalweg.api.html import results_html

        return results_html(self._site, self._definition)


class Queries(tuple[Query, ...]):
    """The queries that a text has defined; where it is just one, this can be used as that one.

    session.cql("SELECT …").results() and session.cql(script)["hot_items"].results() both work.
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for query in self:
                if query.name.lower() == key.lower():
                    return query
            raise KeyError(f"{key}: the text defined {self._named()}")
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(Query, name):
            raise AttributeError(name)
        if len(self) != 1:
            raise WrongUse(f"the text defined {self._named()}: say which query you mean, by [name]")
        return getattr(super().__getitem__(0), name)

    def _named(self) -> str:
        return ", ".join(q.name for q in self) or "no query"

    def __repr__(self) -> str:
        return f"Queries({', '.join(map(repr, self))})"

    def _repr_html_(self) -> str:
        return "".join(query._repr_html_() for query in self)
