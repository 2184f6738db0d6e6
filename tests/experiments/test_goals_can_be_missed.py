"""Goals are such that a worse implementation misses them: each mutant misses the goal named.

The unmutated experiment meets it at the same size.
"""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.experiments.catalogue import (
    _ring,
    cosmos_adaptation,
    cosmos_distribution,
    cosmos_rates,
    cosmos_trees_static,
    dhtjoin_gossip,
    sand_drift,
    sand_placement,
    sqpr_hosts,
    sqpr_load,
)
from thalweg.experiments.catalogue._printed_gossip import PrintedGossip
from thalweg.experiments.report import Report
from thalweg.experiments.sand import measuring
from thalweg.experiments.sqpr import planners
from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.trees import contest
from thalweg.placement.cosmos.centralised import centralised, greedy
from thalweg.placement.cost import Weights
from thalweg.placement.trees.random_tree import RandomTree

COSMOS = {"nodes": 96, "sources": 8, "providers": 16, "most_vertices": 60}


def ran(module: Any, **changes: Any) -> Report:
    return module.run(module.Parameters(**changes), lambda *_: None)


def is_met(report: Report, name: str) -> bool:
    (goal,) = [g for g in report.goals if name in g.name]
    return goal.met


def distribution() -> bool:
    report = ran(cosmos_distribution, **COSMOS, queries=(400,), substreams=1_000, partitioner_at=())
    return is_met(report, "best known, WEC")


def test_a_distribution_that_is_greedy_misses_what_the_hierarchy_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert distribution()
    monkeypatch.setattr(
        cosmos_distribution,
        "distribute",
        lambda system, _proxy, settings, run: greedy(system, settings),
    )
    assert not distribution()


def rates() -> Report:
    return ran(cosmos_rates, **COSMOS, queries=600, changes="I", factor=6.0)


def test_one_who_does_not_adapt_misses_the_bound_and_one_who_maps_anew_moves_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = rates()
    assert is_met(report, "busiest provider after adapting")
    assert is_met(report, "migrations against re-mapping")
    monkeypatch.setattr(cosmos_rates, "redistribute", lambda system, before, adaptation: before)
    assert not is_met(rates(), "busiest provider after adapting")
    monkeypatch.setattr(
        cosmos_rates,
        "redistribute",
        lambda system, before, adaptation: centralised(system, before, adaptation.settings),
    )
    assert not is_met(rates(), "migrations against re-mapping")


def test_one_who_does_not_adapt_stays_where_chance_put_the_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def adaptation() -> Report:
        return ran(cosmos_adaptation, **COSMOS, queries=400, rounds=2)

    assert is_met(adaptation(), "A-inaccurate: closed")
    monkeypatch.setattr(cosmos_adaptation, "redistribute", lambda system, before, _: before)
    assert not is_met(adaptation(), "A-inaccurate: closed")


def trees() -> Report:
    return ran(
        cosmos_trees_static,
        nodes=16,
        seconds=6_000.0,  # thirty periods
        loads=(5,),
        objects=(2,),
        moves_per_node=4,
        moves_per_node_many=1,
        optimum_nodes=4,
        optimum_cases=2,
    )


def test_trees_of_chance_and_trees_that_do_not_adapt_miss_what_sa_is_near_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goals = (
        "Greedy, worst of all loads, one object",
        "Random+Adaptive after 30 periods, one object",
        "SA, worst small instance",
    )
    report = trees()
    assert [is_met(report, name) for name in goals] == [True, True, True]
    as_it_is = contest.course
    monkeypatch.setattr(contest, "Greedy", RandomTree)
    monkeypatch.setattr(contest, "course", lambda *a, **k: as_it_is(*a, **{**k, "adapts": False}))
    monkeypatch.setattr(cosmos_trees_static, "Annealing", lambda cooling: RandomTree())
    report = trees()
    assert [is_met(report, name) for name in goals] == [False, False, False]


def wide_area() -> Report:
    return ran(
        sand_placement, seeds=1, trees=10, nodes=200, depths=(4,), verified=1, timed=1, fewer=()
    )


def test_placers_that_look_at_no_distances_miss_what_the_others_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = wide_area()
    assert is_met(report, "in-network over edge")
    assert is_met(report, "in-network over optimum")
    monkeypatch.setattr(measuring, "in_network_tree", lambda k: measuring.edge_tree)
    report = wide_area()
    assert not is_met(report, "in-network over edge")
    assert not is_met(report, "in-network over optimum")


def drift() -> bool:
    report = ran(
        sand_drift,
        seeds=1,
        peers=30,
        queries=1,
        steps=4,
        step_s=60.0,
        remeasure_s=15.0,
        savings=(0.1,),
    )
    return is_met(report, "excess, of what placed once has")


def test_operators_that_never_move_again_miss_what_following_saves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert drift()
    as_it_is = sand_drift.follow
    monkeypatch.setattr(
        sand_drift, "follow", lambda of, saving, sees: as_it_is(of, saving, sees=False)
    )
    assert not drift()


def hosts() -> bool:
    report = ran(sqpr_hosts, seeds=1, hosts=(10,), base_streams=100, work_limit=0, host_mbps=40.0)
    return is_met(report, "over heuristic")


def test_a_planner_that_puts_every_query_on_one_host_misses_what_sqpr_admits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert hosts()
    lazy = filling("heuristic")
    both = {planners.SQPR: lazy, planners.PLAIN: lazy}
    monkeypatch.setattr(sqpr_hosts, "sqpr_planners", lambda options: both)
    assert not hosts()


def load() -> bool:
    report = ran(sqpr_load, seeds=1, submitted=(50,), work_limit=0)
    return is_met(report, "deviation of CPU")


def test_a_planner_that_does_not_care_for_balance_misses_how_evenly_sqpr_loads_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load()
    monkeypatch.setattr(sqpr_load, "EVEN_LOAD", Weights(network=1.0, cpu=0.1, balance=0.0))
    assert not load()


def gossip() -> Report:
    return ran(
        dhtjoin_gossip,
        nodes=32,
        hours=0.5,
        queries_per_hour=(40.0,),
        quiet_s=1000.0,
        fixed_periods_s=(),
        seeds=1,
    )


def test_gossip_that_repairs_one_side_only_misses_coverage_and_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = gossip()
    assert is_met(report, "coverage once quiet")
    assert is_met(report, "of those as printed")
    monkeypatch.setattr(
        _ring, "Gossip", lambda chord, spreading, times: PrintedGossip(chord, spreading)
    )
    report = gossip()
    assert not is_met(report, "of those as printed")
