"""The week that is played: its schedule is a function of the seed."""

import os

import polars as pl
import pytest

from bench.week import Parameters, run
from bench.week_schedule import DAYS, TICKS_A_DAY, Week
from thalweg.cql import compile_script

WEEK = Week(("S1", "S2", "S3"), 10_000, 6.0, 50, 7)


def test_it_is_day_at_another_hour_for_each_stream_and_quiet_at_weekends() -> None:
    noon = {s: max(range(24), key=lambda h: WEEK.activity(s, h / 24)) for s in WEEK.streams}
    assert len(set(noon.values())) == 3
    for stream in WEEK.streams:
        hours = [WEEK.activity(stream, h / 24) for h in range(24)]
        assert min(hours) < 0.2 < 0.9 < max(hours) <= 1.0
    assert WEEK.activity("S1", 5.25) == WEEK.activity("S1", 1.25) / 2


def test_rows_are_the_same_for_the_same_seed_and_follow_the_sun() -> None:
    rows = WEEK.rows("S1", 1.2, 1.3)
    assert rows.equals(WEEK.rows("S1", 1.2, 1.3))
    assert rows["ts"].is_sorted()
    assert rows["ts"].is_between(1.2 * TICKS_A_DAY, 1.3 * TICKS_A_DAY).all()
    assert rows.height > 3 * WEEK.rows("S1", 1.7, 1.8).height > 0
    assert WEEK.rows("S1", 0.0, 0.0).schema == {"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64}


def test_queries_come_and_go_and_compile() -> None:
    queries = WEEK.queries()
    assert queries == WEEK.queries()
    assert 20 < len(queries) < 100
    assert all(0 < q.begins < q.ends and q.begins < DAYS for q in queries)
    assert any(q.ends < DAYS for q in queries)
    streams = "; ".join(
        f"CREATE STREAM {s} (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT" for s in WEEK.streams
    )
    compile_script(f"{streams}; {'; '.join(q.text for q in queries)}")
    standing = {day: sum(q.begins <= day < q.ends for q in queries) for day in range(1, DAYS)}
    assert min(standing.values()) > 1


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_a_short_week_is_lived_in_both_ways() -> None:
    small = Parameters(day_s=6.0, round_s=0.5, samples_a_day=4, rows_per_s=60, queries_per_day=2)
    report = run(small, lambda text, fraction=None: None)
    static, adaptive = report.rows
    assert (static["way"], adaptive["way"], static["moves"]) == ("static", "adaptive", 0)
    assert static["admitted"] == adaptive["admitted"] > 5
    samples = report.details["samples"]
    assert max(s["nodes"] for s in samples) == 6
    assert samples[-1]["nodes"] == 5  # one came, and one has left
    assert all(m["PR_max"] is None or m["PR_max"] > 0 for m in samples)
