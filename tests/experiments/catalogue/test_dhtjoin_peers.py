"""Small runs of the experiments on joins between peers."""

import pytest

from thalweg.experiments.catalogue import (
    dhtjoin_completeness,
    dhtjoin_exactness,
    dhtjoin_nodes,
    dhtjoin_skew,
    dhtjoin_traffic,
)
from thalweg.experiments.report import write


def _quietly(text, fraction=None):
    pass


def test_dhtjoin_sends_fewer_messages_than_rjoin(tmp_path):
    parameters = dhtjoin_traffic.Parameters(
        nodes=48, duration_s=12.0, rates=(30,), queries_per_5min=(3,), joins=(1,)
    )
    report = dhtjoin_traffic.run(parameters, _quietly)
    assert [r["figure"] for r in report.rows] == ["5.1(a)", "5.1(b)", "5.1(c)"]
    assert all(r["RJoin"] > r["DHTJoin"] + r["acknowledgements"] for r in report.rows)
    assert all(r["gathering"] < r["DHTJoin, owners remembered"] for r in report.rows)
    write(report, tmp_path)
    assert (tmp_path / "dhtjoin-traffic-5.1a-rate.svg").exists()


def test_stored_combinations_are_as_predicted_and_results_more():
    parameters = dhtjoin_completeness.Parameters(
        nodes=4, rate=20.0, window_s=20.0, shares=(0.5,), ways=(2,), values_per_node=40
    )
    report = dhtjoin_completeness.run(parameters, _quietly)
    even = report.rows[0]
    assert even["off by (points)"] < 5
    assert even["results"] > even["stored"] + 0.1
    assert abs(even["results"] - even["results, predicted"]) < 0.1


def test_partners_keep_results_fast_and_shed_nothing():
    report = dhtjoin_skew.run(dhtjoin_skew.Parameters.quick(), _quietly)
    times = [r["time to a result, s"] for r in report.rows if r["query"] == "type 1"]
    assert all(t is not None and t < 0.5 for t in times)
    hot = [r for r in report.rows if r["query"] == dhtjoin_skew.HOT]
    assert any(r["hot values spread"] for r in hot)
    assert not any(r["tuples shed"] for r in report.rows)


def test_exact_results_come_within_two_seconds():
    report = dhtjoin_exactness.run(dhtjoin_exactness.Parameters.quick(), _quietly)
    exact = next(r for r in report.rows if r["results"] == "exact")
    assert exact["added delay, s"] <= 2.0
    assert exact["more messages, %"] <= 15.0


def test_a_tuple_takes_more_hops_in_a_larger_ring():
    parameters = dhtjoin_nodes.Parameters(nodes=(16, 128), duration_s=6.0)
    report = dhtjoin_nodes.run(parameters, _quietly)
    by = {(r["nodes"], r["way"]): r["messages a tuple"] for r in report.rows}
    assert by[128, "DHTJoin"] > by[16, "DHTJoin"]
    assert by[128, "RJoin"] > by[128, "DHTJoin"] > by[128, "gathering"]


@pytest.mark.parametrize("module", [dhtjoin_traffic, dhtjoin_skew, dhtjoin_nodes])
def test_impossible_parameters_are_refused(module):
    with pytest.raises(ValueError, match="or more"):
        module.Parameters(seeds=0)
