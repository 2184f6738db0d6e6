"""The engine's results beside a plain join of the same events, query by query."""

from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from bench import auctions
from bench.standing import Standing, draw
from bench.systems import shared
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.tick.executors import InProcess


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("events")
    for number, batch in enumerate(islice(auctions.batches(4_000, 7, 4), 6)):
        auctions.write_parquet(batch, number, folder)
    return auctions.parquet_files(folder)


def expected(queries: list[Standing], files: list[dict[str, Path]]) -> pl.DataFrame:
    opened, closed = (pl.concat([pl.read_parquet(f[s]) for f in files]) for s in auctions.STREAMS)
    both = closed.join(opened, on="itemID", suffix="_opened")
    rows = []
    for query in queries:
        found = opened
        if query.window_s is not None:
            age = pl.col("ts") - pl.col("ts_opened")
            found = both.filter(age.is_between(0, query.window_s * auctions.INSTANTS))
        for condition in query.conditions:
            plain = condition.replace("O.", "").replace("C.", "")
            found = found.sql(f"SELECT * FROM self WHERE {plain}")
        rows.append((query.name, found.height, found["itemID"].sum()))
    frame = pl.DataFrame(rows, ["query", "rows", "items"], orient="row")
    return frame.filter(pl.col("rows") > 0).sort("query")


@pytest.mark.parametrize("overlap", [1.0, 0.4])
@pytest.mark.parametrize("sharing", [Sharing.WHERE_IT_PAYS, Sharing.NEVER])
def test_what_is_said_is_what_a_plain_join_finds(files, tmp_path, overlap, sharing):
    queries = draw(12, overlap, 0.2, (1, 2, 4), 7)
    outcome = shared.run(queries, files, InProcess(), tmp_path, sharing=sharing)
    wanted = expected(queries, files)
    assert wanted.height > 8
    assert outcome.said.equals(wanted)
    assert len(outcome.ticks) == len(files)
    assert outcome.groups == (12 if sharing is Sharing.NEVER else 2 if overlap == 1 else 10)


def test_a_median_passes_over_ticks_before_windows_are_full(files, tmp_path):
    outcome = shared.run(draw(1, 1.0, 0.2, (1,), 7), files, InProcess(), tmp_path)
    later = sorted(outcome.ticks[1:])
    assert outcome.median_tick_s(1) == later[len(later) // 2]
    assert outcome.median_tick_s(99) == outcome.ticks[-1]
