"""Strategies from placements of single trees: all queries of a problem, in order of arrival.

SAND leaves processing costs out (3): operators stand where the network wants them. Where hosts and
links have limits all the same, a query that exceeds one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import NONE, Ints
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.explain import Plans
from thalweg.placement.migrations import migrations
from thalweg.placement.network_use import bits_in_flight
from thalweg.placement.problem import Problem
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.deploying import deploy
from thalweg.placement.sand.placeable import Unplaceable
from thalweg.placement.sand.placing import straight
from thalweg.placement.sand.query_trees import Placed, ways_of
from thalweg.placement.sand.replacing import Patience, Verdict, replaced
from thalweg.placement.sand.tree import ROUNDING, Tree
from thalweg.placement.strategy import Options, Outcome, Refusal, Strategy
from thalweg.placement.units import amount, bits

PlaceTree = Callable[[Tree, Ways, Options], Ints]


def tree_strategy(name: str, summary: str, place_tree: PlaceTree) -> Strategy:
    def plan(problem: Problem, options: Options) -> Outcome:
        return plan_trees(problem, options, place_tree, Patience())

    return Strategy(name, summary, plan)


@dataclass(frozen=True, slots=True)
class Decided:
    deployment: Deployment
    admitted: tuple[Placed, ...]
    refusals: tuple[Refusal, ...]
    verdicts: tuple[Verdict, ...]  # of all trees that have a place


def plan_trees(
    problem: Problem, options: Options, place_tree: PlaceTree, patience: Patience
) -> Outcome:
    decided = decide(problem, options, place_tree, patience)
    return Outcome(decided.deployment, decided.refusals, _notes(problem, decided))


def outcome_of(problem: Problem, placed: list[Placed]) -> Outcome:
    """Of trees that somebody else has placed."""
    found, admitted, refusals = _admitted(problem, placed)
    decided = Decided(found, tuple(admitted), tuple(refusals), ())
    return Outcome(found, decided.refusals, _notes(problem, decided))


def decide(
    problem: Problem, options: Options, place_tree: PlaceTree, patience: Patience
) -> Decided:
    """What runs already is placed again with patience."""
    ways = ways_of(problem.hosts)
    running = None if problem.running is None else Plans(problem, problem.running)
    verdicts: list[Verdict] = []
    refusals: list[Refusal] = []

    def placement(tree: Tree, given: Ways) -> Ints:
        return place_tree(tree, given, options)

    for query in range(len(problem.queries)):
        try:
            verdicts.append(replaced(problem, query, running, ways, placement, patience))
        except Unplaceable as error:
            host = None if error.host == NONE else error.host
            proxy = problem.hosts.names[problem.queries.proxy[query]]
            told = str(error).replace("the proxy", f"the proxy {proxy}", 1)
            refusals.append(Refusal(query, error.resource, host, told))
    # Who is served already comes first where there is not room for all.
    verdicts.sort(key=lambda v: (not v.ran, v.placed.of.query))
    found, admitted, over = _admitted(problem, [v.placed for v in verdicts])
    refused = sorted([*refusals, *over], key=lambda r: r.query)
    return Decided(found, tuple(admitted), tuple(refused), tuple(verdicts))


def _admitted(
    problem: Problem, placed: list[Placed]
) -> tuple[Deployment, list[Placed], list[Refusal]]:
    """All that fits; only where not all fits is it tried one by one."""
    everything = deploy(problem, placed)
    if _short(problem, everything) is None:
        return everything, placed, []
    admitted: list[Placed] = []
    refusals: list[Refusal] = []
    for one in placed:
        short = _short(problem, deploy(problem, [*admitted, one]))
        if short is None:
            admitted.append(one)
        else:
            refusals.append(Refusal(one.of.query, *short))
    return deploy(problem, admitted), admitted, refusals


def _short(problem: Problem, tried: Deployment) -> tuple[str, int, str] | None:
    """The first resource of which a host needs more than it has."""
    hosts, load = problem.hosts, load_of(problem, tried)
    for resource, used, has in (
        ("cpu", load.cpu, hosts.cpu),
        ("bandwidth out", load.out_bps, hosts.out_bps),
        ("bandwidth in", load.in_bps, hosts.in_bps),
    ):
        over = np.flatnonzero(used > has * (1 + ROUNDING))
        if len(over):
            h = int(over[0])
            told = (
                f"{hosts.names[h]} would need {amount(float(used[h]))} of {amount(float(has[h]))}"
            )
            return (
                resource,
                h,
                f"{told}; this strategy places by the network alone: sqpr looks for room",
            )
    if hosts.link_bps is not None:
        link = np.zeros_like(hosts.link_bps)
        source, target, sent = tried.sends.T
        np.add.at(link, (source, target), problem.streams.rate_bps[sent])
        full = np.argwhere(link > hosts.link_bps * (1 + ROUNDING))
        if len(full):
            h, m = (int(i) for i in full[0])
            told = (
                f"{hosts.names[h]} to {hosts.names[m]} would carry {amount(float(link[h, m]))} bps"
            )
            return "link", h, f"{told} of {amount(float(hosts.link_bps[h, m]))}"
    return None


def _notes(problem: Problem, decided: Decided) -> tuple[str, ...]:
    notes, found = [], decided.deployment
    if problem.hosts.latency_ms is None:
        notes.append("no latencies are given: all hosts count as equally far from each other")
    elif decided.admitted:
        latency_ms = ways_of(problem.hosts).latency_ms
        baseline = [Placed(o.of, straight(o.of.tree, latency_ms)) for o in decided.admitted]
        here = bits_in_flight(problem, found)
        there = bits_in_flight(problem, deploy(problem, baseline))
        share = f" ({here / there:.0%})" if there else ""
        notes.append(f"{bits(here)} in flight{share}, {bits(there)} with everything at the proxies")
    if problem.running is not None:
        moves = migrations(problem, problem.running, found)
        moving = [m for m in moves if m.source is not None and m.target is not None]
        ran = [verdict for verdict in decided.verdicts if verdict.ran]
        notes.append(
            f"{sum(not v.moved for v in ran)} of {len(ran)} running queries stay as they are; "
            f"{len(moving)} operators move, with {amount(sum(m.state_bytes for m in moving))} "
            "bytes of state"
        )
    return tuple(notes)
