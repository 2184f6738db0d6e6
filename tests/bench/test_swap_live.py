import os

import pytest

from bench.swap_live import Parameters, run


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_swap_is_measured_live_beside_static_plans() -> None:
    report = run(Parameters(scale=0.005), lambda text, fraction=None: None)
    assert len(report.rows) == 12
    assert all(row["results"] == row["simulated results"] for row in report.rows)
    fixed = [r["to n1 first"] for r in report.rows if r["method"] != "SwAP"]
    assert fixed == [1.0, 0.0] * 4
