"""Feeds a stream of due rows from the publications of its classes (`labelling.py`).

It reads them as a mirror reads another node's: from an instant on, in order, each row once. A row
that is due for several classes is one row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import TS
from thalweg.engine.site.errors import Forgotten, SiteError
from thalweg.engine.site.publications import no_rows
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import PLACE, StreamDef
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import Unreachable
from thalweg.runtime.data.messages import Range, Read
from thalweg.runtime.data.mirror import Lost, MirrorSource

if TYPE_CHECKING:
    from thalweg.runtime.network.labels.labelling import Labelling

_READ_FOR_S, _LOOK_EVERY_S = 1.0, 0.1
_INSTANT, _POSITION = (f.name for f in PLACE)
_CLASS = "_class"


class LabelSource(MirrorSource):
    def __init__(self, due: StreamDef, labelling: Labelling) -> None:
        super().__init__(
            due,
            "its classes",
            lambda: labelling.routes(due),
            lambda _: _Reading(due, labelling),  # type: ignore[arg-type,return-value]
            lambda: (BEGINNING, None, None),
            lambda generation: labelling.switched(due.name, generation),
            labelling.taking(due.name),
        )
        self._due, self._labelling = due, labelling

    def _take(self, feed: Feed, range_: Range, rows: pl.DataFrame) -> None:
        """What was read before a class joined the generation lacks its rows."""
        generation = self._labelling.generation(self._due.name, self.place(feed).publication)
        if generation is None or not generation.labels.keys() <= set(rows.columns):
            raise Unreachable("other classes have begun")
        super()._take(feed, range_, rows)
        self._labelling.reached(self._due, self.place(feed).instant)


class _Reading:
    """What a source reads, as if it were another node."""

    def __init__(self, due: StreamDef, labelling: Labelling) -> None:
        if labelling.site is None:
            raise Unreachable("this node is about to begin")
        self._due, self._labelling, self._site = due, labelling, labelling.site
        self._ended = False

    def read(self, ticket: Read) -> Iterator[tuple[Range, pl.DataFrame]]:
        since, until = ticket.since, time.monotonic() + _READ_FOR_S
        while not self._ended and time.monotonic() < until:
            seen = self._site.changes.count  # before looking, so that nothing slips in behind
            generation = self._labelling.generation(self._due.name, ticket.publication)
            if generation is None:
                raise Unreachable("it is being dropped")
            labels = generation.labels
            if ticket.since == BEGINNING:  # the first, or what is handed over
                labels = {c: labels[c] for c in generation.fresh}
            upto, rows = self._batch(labels, since)
            if upto > since:
                yield Range(since, upto), rows
                since = upto
            else:
                self._site.changes.wait(seen, _LOOK_EVERY_S)

    def _batch(self, labels: Mapping[str, str], since: int) -> tuple[int, pl.DataFrame]:
        """Up to where all classes have come."""
        parts: list[pl.DataFrame] = []
        reached: list[int] = []
        try:
            for publication in labels.values():
                upto, rows = self._part(publication, since)
                reached.append(upto)
                parts.append(rows)
        except Forgotten as error:
            raise Lost(str(error)) from None
        except SiteError as error:
            raise Unreachable(str(error)) from None
        upto = min(reached)
        return upto, merged(dict(zip(labels, parts, strict=True)), since, upto)

    def _part(self, publication: str, since: int) -> tuple[int, pl.DataFrame]:
        site, publications = self._site, self._labelling.publications
        if since > BEGINNING:  # who asks from an instant on has written down what was before
            site.engine.readers.acknowledge(publication, since)
        run = site.engine.roster_entry(publication)
        if run is None:
            raise Unreachable(f"{publication} was given up")
        pieces = list(publications.read(publication, since))
        upto = pieces[-1].upto if pieces else since
        if run.started is not None and since <= run.started and upto <= run.started:
            pieces, upto = [], since  # what was before comes with its first instant
        nothing = no_rows(publications.query(publication))
        return upto, pl.concat([nothing, *(p.rows for p in pieces)])

    def ask(self, request: object) -> None:
        """What is acknowledged is what has been written down, which the next read tells."""

    def interrupt(self) -> None:
        self._ended = True

    def close(self) -> None: ...


def merged(parts: Mapping[str, pl.DataFrame], since: int, upto: int) -> pl.DataFrame:
    """The rows of all classes in [since, upto), in order, with a column for each class."""
    own = pl.col(_INSTANT) < upto
    if since > BEGINNING:
        own &= pl.col(_INSTANT) >= since
    found = [
        rows.filter(own).with_columns(pl.lit(number, dtype=pl.Int64).alias(_CLASS))
        for number, rows in enumerate(parts.values())
    ]
    every = pl.concat(found).sort(_INSTANT, _POSITION, maintain_order=True)
    places = every.select(_INSTANT, _POSITION)
    is_first = np.ones(every.height, dtype=bool)
    is_first[1:] = (places[1:].to_numpy() != places[:-1].to_numpy()).any(axis=1)
    due = np.zeros((len(parts), int(is_first.sum())), dtype=bool)
    due[every[_CLASS].to_numpy(), np.cumsum(is_first) - 1] = True
    rows = every.filter(pl.Series(is_first, dtype=pl.Boolean)).drop(_CLASS)
    labels = (pl.Series(column, due[n], dtype=pl.Boolean) for n, column in enumerate(parts))
    return rows.with_columns(pl.col(_INSTANT).alias(TS), *labels)
