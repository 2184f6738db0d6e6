"""Where a replay's results go: a file of JSON lines for each query, and all of them merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import polars as pl

from thalweg.engine.changelog import Change
from thalweg.engine.shared.frames import OP, TS, data_schema
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.state.names import file_name
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.merge import MergedLines
from thalweg.plan.catalog import QueryDef
from thalweg.plan.windows import BEGINNING, FOREVER


class Output:
    """Lines are merged by instant, and within one in the queries' order."""

    def __init__(self, folder: Path, queries: Sequence[QueryDef], to: BinaryIO | None) -> None:
        self._paths = {q.name: folder / f"{file_name(q.name)}.jsonl" for q in queries}
        self._to = to
        self._merged: MergedLines | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, query: str) -> Path:
        return self._paths[query]

    def print_below(self, instant: int) -> None:
        """Print what no query will add to any more."""
        if self._to is None:
            return
        if self._merged is None:
            self._merged = MergedLines(list(self._paths.items()), self._to)
        self._merged.write_below(instant)

    def write_all(self, query: QueryDef, changes: Sequence[Change]) -> None:
        """A query's whole result at once."""
        self.path(query.name).unlink(missing_ok=True)
        sink = JsonLinesSink(self.path(query.name), durable=False)
        sink.open(None)
        sink.write(_emission(query, changes))
        sink.close()

    def close(self) -> None:
        if self._merged is not None:
            self._merged.close()


def _emission(query: QueryDef, changes: Sequence[Change]) -> Emission:
    types = data_schema(tuple(f.type for f in query.plan.schema))
    columns = {
        TS: pl.Series([c.ts for c in changes], dtype=pl.Int64),
        OP: pl.Series([1 if c.op == "+" else -1 for c in changes], dtype=pl.Int8),
    }
    for i, (name, dtype) in enumerate(types.items()):
        columns[name] = pl.Series([c.row[i] for c in changes], dtype=dtype, strict=True)
    names = tuple(f.name for f in query.plan.schema)
    return Emission(query.name, 1, names, BEGINNING, FOREVER, pl.DataFrame(columns))
