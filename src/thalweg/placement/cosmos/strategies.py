"""COSMOS's query distribution as placement strategies: hierarchical, and what it is judged by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.admission import admit
from thalweg.placement.cosmos.centralised import centralised, greedy
from thalweg.placement.cosmos.cost import imbalance, loads, weighted_edge_cut
from thalweg.placement.cosmos.delivery import delivered_cost, direct, results_cost
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.problems import Posed, pose
from thalweg.placement.cosmos.redistribution import Adaptation, redistribute
from thalweg.placement.cosmos.system import Settings
from thalweg.placement.problem import Problem
from thalweg.placement.strategy import Options, Outcome, Strategy
from thalweg.placement.units import amount, bits

Map = Callable[[Posed, Settings], Ints]  # the provider of each vertex


def query_strategy(name: str, summary: str, map_: Map) -> Strategy:
    def plan(problem: Problem, options: Options) -> Outcome:
        posed = pose(problem)
        provider = map_(posed, Settings(seed=options.seed))
        found, refusals = admit(posed, provider)
        return Outcome(found, refusals, _notes(posed, provider))

    return Strategy(name, summary, plan)


def _hierarchical(posed: Posed, settings: Settings) -> Ints:
    running = running_at(posed)
    if running is None:
        return distribute(posed.system, posed.proxy, settings)
    return redistribute(posed.system, running, Adaptation(settings))


def running_at(posed: Posed) -> Ints | None:
    """Where vertices run already; those that run nowhere are still where they were submitted."""
    running = posed.problem.running
    if running is None or not len(running.runs):
        return None
    host_of = np.full(len(posed.problem.operators), NONE, np.int32)
    host_of[running.runs[:, 1]] = running.runs[:, 0]
    last = np.array([o[-1] if len(o) else NONE for o in posed.operators], np.int32)
    at = np.where(last == NONE, NONE, host_of[last])
    return ints(np.where(at == NONE, posed.proxy, at))


COSMOS_HIERARCHICAL = query_strategy(
    "cosmos",
    "whole queries to hosts near their like and their sources, evenly, by a tree of coordinators",
    _hierarchical,
)
COSMOS_CENTRALISED = query_strategy(
    "cosmos-centralised",
    "as cosmos, by one node that knows everything: a yardstick",
    lambda posed, settings: centralised(posed.system, posed.proxy, settings),
)
COSMOS_GREEDY = query_strategy(
    "cosmos-greedy",
    "query after query where it costs least, the heaviest first: a yardstick",
    lambda posed, settings: greedy(posed.system, settings),
)
COSMOS_NAIVE = query_strategy(
    "cosmos-naive",
    "every query where it is submitted, whatever the load: a yardstick",
    lambda posed, settings: posed.proxy,
)

COSMOS: tuple[Strategy, ...] = (
    COSMOS_HIERARCHICAL,
    COSMOS_CENTRALISED,
    COSMOS_GREEDY,
    COSMOS_NAIVE,
)


def _notes(posed: Posed, provider: Ints) -> tuple[str, ...]:
    if not len(provider):
        return ()
    system = posed.system
    trees = direct(system.network.source_ms)
    told = []
    for mapping in (provider, posed.proxy):
        cut = weighted_edge_cut(system.network, system.substreams, system.queries, mapping).total
        carried = delivered_cost(trees, system.substreams, system.queries, mapping)
        carried += results_cost(system.network.latency_ms, system.queries, mapping)
        uneven = imbalance(
            loads(system.queries.weight, mapping, len(system.network)), system.network.capability
        )
        told.append((cut / 1000, carried / 1000, uneven))
    (cut, carried, uneven), (naive_cut, naive_carried, naive_uneven) = told
    return (
        f"weighted edge cut {amount(cut)}, {amount(naive_cut)} with every query where it was"
        f" submitted",
        f"{bits(carried)} in flight, {bits(naive_carried)} with every query where it was submitted",
        f"busiest host {uneven:.0%} of its share, {naive_uneven:.0%} with every query where it"
        " was submitted",
    )
