"""Months of ticks in fast motion: what an engine holds depends on its windows, not on its age.
`make soak` runs many more ticks (THALWEG_LONG_RUN_TICKS)."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine

TICKS = int(os.environ.get("THALWEG_LONG_RUN_TICKS", "90"))
SCRIPT = """
CREATE STREAM S (k INTEGER, v INTEGER) TIMESTAMP BY ts;
CREATE STREAM T (k INTEGER) TIMESTAMP BY ts;
CREATE RELATION R (k INTEGER, n INTEGER) TIMESTAMP BY ts;
CREATE QUERY joined AS SELECT S.k, S.v FROM S [Range 20], T [Range 10] WHERE S.k = T.k;
CREATE QUERY counted AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM S [Range 50] GROUP BY k;
CREATE QUERY looked AS SELECT S.k, n FROM S [Now], R WHERE S.k = R.k;
CREATE QUERY kinds AS SELECT DISTINCT k FROM S [Range 30];
CREATE QUERY lasts AS SELECT * FROM S [Partition By k Rows 2];
CREATE QUERY missing AS SELECT k FROM S [Range 5] WHERE k NOT IN (SELECT k FROM T [Range 5]);
"""


def files_of(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def push(engine: SharedEngine, tick: int) -> None:
    engine.push(
        "S",
        pl.DataFrame({"ts": [tick, tick], "k": [tick % 7, tick % 11], "v": [tick, -tick]}),
        batch_id=f"batch {tick}",
        partition=tick % 3,
    )
    engine.push("T", pl.DataFrame({"ts": [tick], "k": [tick % 5]}))
    # The relation is replaced, row by row, for ever.
    rows = [(tick % 7, tick, "+")] + ([(tick % 7, tick - 7, "-")] if tick >= 7 else [])
    columns = {"k": [r[0] for r in rows], "n": [r[1] for r in rows], "op": [r[2] for r in rows]}
    engine.push("R", pl.DataFrame({"ts": [tick] * len(rows), **columns}))


@pytest.mark.parametrize("churn", [False, True], ids=["steady", "queries come and go"])
def test_files_book_and_handles_do_not_grow_with_age(tmp_path: Path, churn: bool) -> None:
    script = compile_script(SCRIPT)
    engine = SharedEngine(tmp_path, durable=False, retained_ticks=25)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    third = TICKS // 3
    seen: list[tuple[int, int, int]] = []
    for tick in range(TICKS):
        push(engine, tick)
        if churn and tick % 20 == 0:
            come = f"SELECT k, SUM(v) AS s FROM S [Range {5 + tick % 9}] GROUP BY k"
            text = f"CREATE QUERY come{tick} AS {come}"
            engine.add_queries(compile_script(text, script.catalog).queries)
        if churn and tick % 20 == 15:
            engine.drop_query(f"come{tick - 15}")
        engine.tick()
        if tick >= third:
            files = files_of(tmp_path)
            seen.append(
                (len(files), sum(files.values()), len(list(Path("/proc/self/fd").iterdir())))
            )
    engine.close()
    early, late = seen[:third], seen[-third:]
    for what, slack in ((0, 5), (1, 64 << 10), (2, 3)):
        most = max(s[what] for s in early)
        assert max(s[what] for s in late) <= 1.2 * most + slack, (what, most)
