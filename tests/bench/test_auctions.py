from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from bench import auctions

LONGEST_S = 3
TICKS = 8


@pytest.fixture(scope="module")
def made() -> list[auctions.Batch]:
    return list(islice(auctions.batches(2_000, 7, LONGEST_S), TICKS))


def test_a_tick_is_a_second_of_events_in_order_of_time(made):
    for number, batch in enumerate(made):
        for rows in batch.values():
            assert rows["ts"].is_sorted()
            assert set(rows["ts"] // auctions.INSTANTS) == {number}


def test_half_of_the_events_open_items_and_about_half_close_them(made):
    assert {b["O"].height for b in made} == {1_000}
    assert all(abs(b["C"].height - 1_000) < 150 for b in made)


def test_an_item_opens_and_closes_once_and_within_the_longest_time(made):
    opened, closed = (pl.concat([b[s] for b in made]) for s in auctions.STREAMS)
    assert opened["itemID"].is_unique().all()
    assert closed["itemID"].is_unique().all()
    both = opened.join(closed, on="itemID", suffix="_closed")
    took = both["ts_closed"] - both["ts"]
    assert 0 < took.min() <= took.max() < LONGEST_S * auctions.INSTANTS
    assert both.height > 4_000


def test_a_seed_makes_the_same_events_again(made):
    again = list(islice(auctions.batches(2_000, 7, LONGEST_S), 2))
    other = list(islice(auctions.batches(2_000, 8, LONGEST_S), 2))
    assert all(a[s].equals(b[s]) for a, b in zip(again, made, strict=False) for s in a)
    assert not other[0]["O"].equals(made[0]["O"])


def test_files_of_both_forms_hold_the_same_rows(made, tmp_path: Path):
    for number, batch in enumerate(made[:3]):
        auctions.write_parquet(batch, number, tmp_path / "parquet")
        auctions.append_csv(batch, 2, tmp_path / "csv")
    files = auctions.parquet_files(tmp_path / "parquet")
    assert len(files) == 3
    for stream in auctions.STREAMS:
        whole = pl.concat([pl.read_parquet(f[stream]) for f in files])
        parts = [
            pl.read_csv(
                tmp_path / "csv" / stream / f"{i}.csv", has_header=False, schema=whole.schema
            )
            for i in range(2)
        ]
        assert all(p["ts"].is_sorted() for p in parts)  # a reader may trust its own order
        assert pl.concat(parts).sort("itemID").equals(whole.sort("itemID"))
