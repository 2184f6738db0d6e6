"""The Python session.

from thalweg import Thalweg

with Thalweg.builder.master("local[2]").data_dir("data").getOrCreate() as session:
    session.cql("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts")
    query = session.cql("SELECT a, COUNT(*) AS n FROM S [Range 10] GROUP BY a")
    session.stream("S").push([{"ts": 1, "a": 7}, {"ts": 2, "a": 7}])
    session.settle()
    query.results().to_pandas()
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from thalweg.api.execute import execute
from thalweg.api.infer import create_stream
from thalweg.api.queries import Queries, Query
from thalweg.api.results import IncompleteHistory, content_frame
from thalweg.api.streams import Stream
from thalweg.cql import compile_script
from thalweg.engine.site import Site, SiteError, open_site
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.sources.iterable import IterableSource
from thalweg.plan.catalog import StreamDef

_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class Builder:
    """How to open a session; every method gives a new builder."""

    _master: str = "local[*]"
    _data_dir: Path | None = None
    _settings: SiteSettings = field(default_factory=SiteSettings)
    _spark: tuple[tuple[str, str], ...] = ()

    def master(self, master: str) -> Builder:
        """`local[*]` (default), `local[n]`, `local-cluster[…]`, `spark://…`, or `in-process`."""
        return replace(self, _master=master)

    def store(self, url: str) -> Builder:
        """Keep everything in an object store (`s3://bucket/folder`), and the data directory as a
        cache of it."""
        return replace(self, _settings=replace(self._settings, store=url))

    def data_dir(self, folder: str | Path) -> Builder:
        """Where catalog, state and results live; a temporary folder if it is not set."""
        return replace(self, _data_dir=Path(folder))

    def config(self, name: str, value: Any) -> Builder:
        """A setting of Spark by its dotted name (`spark.…`), or of the site (`tick_rows`, …)."""
        if name.startswith("spark."):
            return replace(self, _spark=(*self._spark, (name, str(value))))
        try:
            return replace(self, _settings=replace(self._settings, **{name: value}))
        except TypeError:
            known = ", ".join(SiteSettings.__dataclass_fields__)
            raise SiteError(f"there is no setting {name}: there are spark.…, {known}") from None

    def getOrCreate(self) -> Thalweg:  # noqa: N802 (as Spark's own builder says it)
        """The session that is open in this process, or a new one."""
        with _opening:
            running = Thalweg._running
            if running is not None:
                if self._data_dir not in (None, running.data_dir):
                    raise SiteError(
                        f"a session on {running.data_dir} is open in this process: use it, or "
                        f"close it before opening {self._data_dir}"
                    )
                return running
            Thalweg._running = opened = Thalweg(self)
            return opened


class _BuilderProperty:
    """`Thalweg.builder` is a fresh builder each time."""

    def __get__(self, instance: object, owner: type) -> Builder:
        return Builder()


class Thalweg:
    """A session: one data directory, its streams and its standing queries."""

    builder: ClassVar[_BuilderProperty] = _BuilderProperty()
    _running: ClassVar[Thalweg | None] = None

    def __init__(self, builder: Builder) -> None:
        self._is_temporary = builder._data_dir is None
        self.data_dir = builder._data_dir or Path(tempfile.mkdtemp(prefix="thalweg-"))
        self.site: Site = open_site(
            self.data_dir,
            compile_script,
            master=builder._master,
            settings=builder._settings,
            spark_settings=dict(builder._spark),
        )

    # --- definitions

    def cql(self, text: str) -> Queries:
        """Run statements: CREATE, DROP, or queries as such. All of the text, or nothing of it.

        Gives its queries, also those that stood already (OR REPLACE, IF NOT EXISTS): so that a cell
        of a notebook can be run again."""
        script = execute(self.site, text)
        for notice in self.site.notices(script.queries):
            warnings.warn(notice.text, IncompleteHistory, stacklevel=2)
        return Queries(Query(self.site, q) for q in (*script.queries, *script.kept))

    def query(self, name: str) -> Query:
        return Query(self.site, self.site.query(name))

    def select(self, text: str) -> pl.DataFrame:
        """The answer to one SELECT over results, relations and windows, as of the last instant that
        is final for all that it reads."""
        return content_frame(self.site.select(text))

    @property
    def queries(self) -> Queries:
        return Queries(Query(self.site, q) for q in self.site.catalog.queries())

    def stream(self, name: str) -> Stream:
        return Stream(self.site, self.site.stream(name))

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(Stream(self.site, s) for s in self.site.catalog.streams())

    # --- input

    def from_iterable(self, name: str, rows: Iterable[Any], *, timestamp: str = "ts") -> Stream:
        """Feed a stream from rows of any length, in the background; it ends with them.

        A stream that does not exist yet is made with the columns of the first row. To go on after
        a restart, give the same rows again: those that have landed are passed over.
        """
        if not isinstance(self.site.catalog.find(name), StreamDef):
            left = iter(rows)
            first = next(left, None)
            self.cql(create_stream(name, first, timestamp))
            rows = itertools.chain([first], left)
        stream = self.stream(name)
        self.site.feed(stream.name, IterableSource(rows))
        return stream

    def settle(self, timeout_s: float = 60.0) -> None:
        """Wait until all that was pushed has been worked through."""
        self.site.settle(timeout_s)

    # --- the end

    def close(self) -> None:
        """Stop. Everything but a temporary data directory stays, and goes on when it is opened."""
        with _opening:
            if Thalweg._running is self:
                Thalweg._running = None
        self.site.close()
        if self._is_temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def __enter__(self) -> Thalweg:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        health = self.site.health()
        return f"Thalweg({self.data_dir}: {health.streams} streams, {health.queries} queries)"

    def _repr_html_(self) -> str:
        from thalweg.api.html import session_html

        return session_html(self.site, self.data_dir)
