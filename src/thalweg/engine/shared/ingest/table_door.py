"""A table's way in: rows without timestamps become changes of a relation.

The table's content is kept beside its changes, as what its partition goes on with (`resume`): both
are listed in one transaction. What comes in is compared with it, and only the difference lands.

The first load holds from the beginning of time. A later change gets the instant up to which time
has come here: the newest timestamp of the streams of its resolution. Both are put off to the first
instant that is not final for a query that reads the table. No tick runs meanwhile, so that it is
not final when the change lands.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from thalweg.engine.shared.expressions.translate import is_true
from thalweg.engine.shared.frames import W, data_schema, names
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.ingest.landing import Landing
from thalweg.engine.shared.ingest.normalise import (
    RAW,
    REFUSED,
    ROW,
    IngestError,
    Normalised,
    normalise,
)
from thalweg.engine.shared.ingest.values import python_value
from thalweg.engine.shared.state.store import Store
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING, FOREVER

OP = "op"


class Engine(Protocol):
    @property
    def landing(self) -> Landing: ...

    @property
    def store(self) -> Store: ...

    @property
    def streams(self) -> dict[str, StreamDef]: ...

    def exclusive(self) -> AbstractContextManager[None]: ...


@dataclass
class TableDoor:
    engine: Engine
    table: StreamDef
    _known: tuple[bytes | None, pl.DataFrame] | None = field(default=None, init=False)

    def replace(self, rows: pl.DataFrame) -> Receipt:
        """The table has these rows from now on, and no others."""
        return self._take(rows, None, keeps_others=False)

    def upsert(self, rows: pl.DataFrame, batch_id: str | None = None) -> Receipt:
        """These rows come in; where there is a key, each in the place of the one that has it."""
        return self._take(rows, batch_id, keeps_others=True)

    def delete(self, predicate: Expr) -> Receipt:
        """The rows for which it is true go."""
        with self.engine.exclusive():
            before = self.content()
            after = before.filter(~is_true(predicate).fill_null(False))
            return self._land(before, after, [], None)

    def content(self) -> pl.DataFrame:
        """The rows that the table has, `c0`, `c1`, …"""
        resume = self.engine.landing.resume_point(self.table)
        if self._known is None or self._known[0] != resume:
            schema = data_schema(tuple(f.type for f in self.table.fields))
            read = (
                pl.DataFrame(schema=schema) if resume is None else pl.read_ipc(io.BytesIO(resume))
            )
            self._known = resume, read
        return self._known[1]

    def _take(self, rows: pl.DataFrame, batch_id: str | None, *, keeps_others: bool) -> Receipt:
        typed = self._typed(rows)
        columns = names(len(self.table.fields))
        keys = [f"c{i}" for i in self.table.key_indexes]
        good = typed.rows.sort(ROW).select(columns)
        if keys:
            good = good.unique(keys, keep="last", maintain_order=True)
        bad = [(_as_it_came(rows, i), reason) for i, reason in typed.rejected.iter_rows()]
        with self.engine.exclusive():
            before = self.content()
            after = good
            if keeps_others:
                others = (
                    before.join(good, on=keys, how="anti", nulls_equal=True) if keys else before
                )
                after = pl.concat([others, good])
            receipt = self._land(before, after, bad, batch_id)
        if receipt.repeated:
            return receipt
        return Receipt(typed.rows.height, 0, len(bad), reason=bad[0][1] if bad else None)

    def _typed(self, rows: pl.DataFrame) -> Normalised:
        """Rows in the table's types; those of which a part of the key is missing are refused."""
        dressed = rows.with_columns(
            pl.lit(0, dtype=pl.Int64).alias(self.table.timestamp), pl.lit("+").alias(OP)
        )
        given = {c.lower(): c for c in rows.columns}
        missing = [
            pl.when(pl.col(given[k.lower()]).is_null()).then(pl.lit(f"{k}: the key is missing"))
            for k in self.table.key
            if k.lower() in given
        ]
        if missing:
            own = [pl.col(REFUSED)] if REFUSED in rows.columns else []
            dressed = dressed.with_columns(pl.coalesce([*own, *missing]).alias(REFUSED))
        return normalise(self.table, dressed)

    def _land(
        self,
        before: pl.DataFrame,
        after: pl.DataFrame,
        bad: list[tuple[dict[str, object], str]],
        batch_id: str | None,
    ) -> Receipt:
        """The difference, as one batch at one instant, with what the table has then."""
        batch = self._changes(before, after, bad)
        resume = io.BytesIO()
        after.write_ipc(resume, compression="lz4")
        return self.engine.landing.push(
            self.table, batch, batch_id=batch_id, resume=resume.getvalue()
        )

    def _changes(
        self, before: pl.DataFrame, after: pl.DataFrame, bad: list[tuple[dict[str, object], str]]
    ) -> pl.DataFrame:
        columns = names(len(self.table.fields))
        one = pl.lit(1, dtype=pl.Int64).alias(W)
        weighed = pl.concat([after.with_columns(one), before.with_columns(-one)])
        net = weighed.group_by(columns, maintain_order=True).agg(pl.col(W).sum())
        net = net.filter(pl.col(W) != 0).sort(W, maintain_order=True)  # what goes, goes first
        net = net[np.repeat(np.arange(net.height), net[W].abs().to_numpy())]
        instant = self._instant() if net.height else 0
        named = {c: f.name for c, f in zip(columns, self.table.fields, strict=True)}
        changes = net.rename(named).select(
            *named.values(),
            pl.lit(instant, dtype=pl.Int64).alias(self.table.timestamp),
            pl.when(pl.col(W) > 0).then(pl.lit("+")).otherwise(pl.lit("-")).alias(OP),
        )
        if not bad:
            return changes
        refused = pl.DataFrame(
            {
                REFUSED: [reason for _, reason in bad],
                RAW: [str(row.get(RAW) or _shown(row)) for row, _ in bad],
            }
        )
        return pl.concat([changes, refused], how="diagonal")

    def _instant(self) -> int:
        floor = self.engine.store.inputs.floor(self.table.name)
        if self.engine.landing.resume_point(self.table) is None:
            instant = max(self.table.beginning, floor)
        else:
            instant = max(self._clock(), floor)
        if instant >= FOREVER:
            raise IngestError(
                f"{self.table.name} can't change any more: a query that reads it has come to its "
                "end. Drop that query first, or make another table."
            )
        return instant

    def _clock(self) -> int:
        table = self.table
        partitions = self.engine.store.inputs.partitions()
        here = [
            of.newest
            for (name, _), of in partitions.items()
            if (s := self.engine.streams.get(name)) is not None
            and not s.is_table
            and s.resolution_us == table.resolution_us
            and BEGINNING < of.newest < FOREVER
        ]
        own = partitions.get((table.name, 0))
        clock = max(here, default=0)
        return clock if own is None else max(clock, own.newest)


def _as_it_came(rows: pl.DataFrame, place: int) -> dict[str, object]:
    return {c: python_value(rows[c].slice(place, 1)) for c in rows.columns}


def _shown(row: dict[str, object]) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in row.items() if k not in (REFUSED, RAW))
