import os

import pytest

from bench.network import Parameters, run


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_nodes_are_measured_beside_one() -> None:
    said: list[str] = []

    def progress(text: str, fraction: float | None = None) -> None:
        said.append(text)

    small = Parameters(
        rows=4_000,
        batch=1_000,
        subscriptions=5,
        range_rows=1_000,
        range_ticks=2,
        events=400,
        ticks=2,
        warm=2,
        single_events=3,
        gone_rounds=1,
        gone_window=100,
    )
    report = run(small, progress)
    by = {row["reading"]: row for row in report.rows}
    for reading in ("at home", "a subscription", "a mirror"):
        assert by[reading]["rows"] == 4_000
    assert by["push to row, read there"]["median ms"] > 0
    assert [g.at_least for g in report.goals] == [True, True, False, False, False]
    assert by["a node is gone: detection to the first new row"]["median ms"] > 0
    assert said[-1] == "delays"
