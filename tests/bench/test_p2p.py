import os

import pytest

from bench.p2p import Parameters, run


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_peers_are_measured_beside_one_node() -> None:
    small = Parameters(nodes=(3,), rounds=2, batch=30, paced_s=3.0, domain=50)
    report = run(small, lambda text, fraction=None: None)
    alone, peers = report.rows
    assert alone["rows"] == peers["rows"] > 0
    assert peers["messages a tuple"] > 0
    assert report.goals[0].met
