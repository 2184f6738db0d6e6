"""Flink SQL: all queries as one STATEMENT SET on a local cluster, from CSV files to CSV files.

PyFlink's pins clash with ours, so it lives in an environment of its own (`make flink`) and runs in
a process of its own, `flink_job`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bench.measure import PeakMemory
from bench.standing import Standing
from bench.systems.elsewhere import run_job
from bench.systems.outcome import Outcome, as_said

INTERPRETER = "THALWEG_FLINK_PYTHON"
_TYPES = {"BIGINT": pl.Int64, "DOUBLE": pl.Float64}


def run(
    queries: Sequence[Standing], data: Path, cores: int, folder: Path, limit_s: float
) -> Outcome:
    folder.mkdir(parents=True)
    job = {
        "queries": [
            {"name": q.name, "columns": q.columns, "select": q.flink, "out": str(folder / q.name)}
            for q in queries
        ],
        "data": str(data),
        "cores": cores,
        "checkpoints": str(folder / ".checkpoints"),
    }
    with PeakMemory() as memory:
        measured = run_job("Flink", INTERPRETER, job, folder, limit_s)
    said = [_said(q, folder / q.name) for q in queries]
    return Outcome(**measured, said=as_said(said), peak_bytes=memory.peak_bytes)


def _said(query: Standing, folder: Path) -> pl.DataFrame:
    files = [f for f in sorted(folder.glob("*")) if not f.name.startswith(".") and f.stat().st_size]
    if not files:
        return pl.DataFrame({"query": [query.name], "rows": [0], "items": [0]})
    schema = {name: _TYPES[type_] for name, type_ in query.columns.items()}
    rows = pl.concat(pl.read_csv(f, has_header=False, schema=schema) for f in files)
    said = {"query": [query.name], "rows": [rows.height], "items": [rows["itemID"].sum()]}
    return pl.DataFrame(said)
