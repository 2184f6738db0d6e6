import os

import pytest

from bench.balancing import SETTINGS, Parameters, run


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_whoever_moves_what_live_nodes_say_the_same() -> None:
    p = Parameters(seconds=30, change_s=8, window_s=5, rate=1_000, keys=20_000, share=0.3)
    report = run(p, lambda text, fraction=None: None)
    assert [row["setting"] for row in report.rows] == list(SETTINGS)
    assert len({row["results in all"] for row in report.rows}) == 1
    moved = {row["setting"]: row["moves"] for row in report.rows}
    assert moved["No-Adapt"] == moved["LM-only"] == 0
