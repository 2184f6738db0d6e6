"""The COSMOS experiments run in small, and report what they promise."""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.experiments.catalogue import (
    cosmos_adaptation,
    cosmos_arrivals,
    cosmos_distribution,
    cosmos_protocol,
    cosmos_rates,
    cosmos_results,
    cosmos_routing,
)
from thalweg.experiments.report import Report, write

SMALL = {"nodes": 96, "sources": 8, "providers": 16, "most_vertices": 60}


def ran(module: Any, **changes: Any) -> Report:
    return module.run(module.Parameters(**SMALL, **changes), lambda *_: None)


def by_method(report: Report, column: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in report.rows:
        found.setdefault(row["method"], []).append(row[column])
    return found


def test_distribution_beats_naive_on_both_costs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    report = ran(cosmos_distribution, queries=(200, 400), substreams=1_000, partitioner_at=(400,))
    for column in ("WEC 10⁹", "delivered 10⁶"):
        costs = by_method(report, column)
        assert all(o < n for o, n in zip(costs["hierarchical"], costs["naive"], strict=True))
    assert {row["queries"] for row in report.rows} == {200, 400}
    assert by_method(report, "busiest")["hierarchical"][-1] <= 1.1 + 0.03
    names = [goal.name for goal in report.goals]
    assert any("response time" in name for name in names)
    write(report, tmp_path)
    assert (tmp_path / "cosmos-distribution-time.svg").exists()


def test_rates_change_and_adapting_moves_less_than_mapping_anew() -> None:
    report = ran(cosmos_rates, queries=600, changes="I", factor=6.0)
    moved = by_method(report, "moved")
    assert moved["non-adaptive"] == [0.0, 0.0]
    assert 0 <= moved["adaptive"][-1] < moved["re-mapping"][-1]
    busiest = by_method(report, "busiest")
    assert busiest["adaptive"][-1] < busiest["non-adaptive"][-1]
    with pytest.raises(ValueError, match="a word of I"):
        cosmos_rates.Parameters(changes="X")


def test_from_a_random_start_adaptation_comes_near_to_accurate_statistics() -> None:
    report = ran(cosmos_adaptation, queries=400, rounds=2)
    cut = by_method(report, "WEC 10⁹")
    assert cut["A-inaccurate"][-1] < cut["NA-inaccurate"][-1]
    assert cut["NA-inaccurate"][0] == cut["NA-inaccurate"][-1]


def test_arriving_queries_are_routed_where_they_cost_less() -> None:
    report = ran(cosmos_arrivals, queries=300, arriving=100, intervals=2)
    cut = by_method(report, "WEC 10⁹")
    assert cut["online, adaptive"][-1] < cut["random"][-1]
    assert by_method(report, "s")["random"] == [0, 200, 400]


def test_routing_tells_rates_and_costs_for_each_cluster_size() -> None:
    report = ran(
        cosmos_routing, queries=400, arriving=100, batch=50, cluster_sizes=(2, 4), repeats=1
    )
    assert [row["k"] for row in report.rows] == [2, 4]
    for row in report.rows:
        assert row["WEC, in bulk"] < 1.05 * row["WEC, one by one"]
        assert row["root in bulk /s"] > row["end to end in bulk /s"] > 0
        assert row["root one by one /s"] > row["end to end one by one /s"] > 0


def test_the_larger_results_are_the_less_a_distribution_saves() -> None:
    report = ran(cosmos_results, queries=300, result_shares=(0.01, 0.3))
    sent = by_method(report, "all 10⁶")
    saved = [1 - a / b for a, b in zip(sent["hierarchical"], sent["naive"], strict=True)]
    assert saved[0] > saved[1]
    at_home = by_method(report, "at their proxies")
    assert at_home["hierarchical"][0] < at_home["hierarchical"][1]
    assert at_home["naive"] == [1.0, 1.0]


def test_nodes_come_by_their_protocol_to_a_distribution_that_is_better_than_naive() -> None:
    small = cosmos_protocol.Parameters(nodes=(12,), queries_per_node=8, seeds=1, rest_s=60)
    report = cosmos_protocol.run(small, lambda *_: None)
    [naive], [rest] = (
        by_method(report, "WEC 10⁶")[name] for name in ("naive", "protocol, at rest")
    )
    assert rest < 0.95 * naive
    assert by_method(report, "busiest")["protocol, at rest"][0] < 1.3  # heavy queries, few each
