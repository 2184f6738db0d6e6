import os

import pytest

from bench.trees import Parameters, run


@pytest.mark.skipif(
    "THALWEG_BENCHES" not in os.environ, reason="measures processes: `make soak` runs it"
)
@pytest.mark.slow
def test_a_tree_is_measured_beside_unicast_and_tolerances() -> None:
    small = Parameters(nodes=4, sites=1, rows=4_000, tolerated=500, keys=5)
    report = run(small, lambda text, fraction=None: None)
    unicast, tree, none, *_, much = report.rows
    assert (unicast["edges of the home"], tree["edges of the home"]) == (3, 1)
    assert min(unicast["updates/s"], tree["home µs/update"]) > 0
    assert none["due, a reader"] == none["rows"] > much["due, a reader"] > 0
    assert none["bytes saved"] < 0 < much["bytes saved"]  # a label is not for nothing
