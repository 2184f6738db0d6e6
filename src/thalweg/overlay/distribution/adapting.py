"""One coordinator's part in a round (COSMOS 3.3.7): which child each query goes to.

Queries that come from elsewhere, by a decision above, have no place here yet; they are placed with
all others (Algorithm 3.3 and refinement, `placement.cosmos.rebalancing`).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.picture import ROUNDING, Picture
from thalweg.overlay.distribution.query_graph import query_graph
from thalweg.overlay.distribution.remapping import Situation, mapped_anew, rebalanced
from thalweg.placement.arrays import NONE, Floats, floats, ints

_FEW = 0.1  # of the queries: with more of them at rest, nothing is mapped anew


@dataclass(frozen=True, slots=True)
class Decision:
    """A query, the child that has it (None: one that comes from elsewhere), and where it goes."""

    running: Running
    at: int | None
    to: int


@dataclass(frozen=True, slots=True)
class Change:
    """What was decided above: queries that come to a cluster, and names of those that leave it."""

    coming: tuple[Running, ...] = ()
    leaving: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all clusters in a round."""

    allowed: float  # load for each unit of capability
    cost: float  # what a unit of load pays in all: a move must save a share of it


def adapt(
    picture: Picture, terms: Terms, resting: Container[str], seed: int, change: Change
) -> list[Decision]:
    """All that go to another child, and all that come."""
    placed = _placed(picture, change)
    if not placed:
        return []
    if len(picture.children) < 2:
        return [Decision(running, None, 0) for running, at in placed if at == NONE]
    runs = [running for running, _ in placed]
    graph = query_graph(picture, runs, _limits(picture, runs, terms.allowed))
    place = ints(at for _, at in placed)
    rests = np.array([r.query.name in resting for r in runs]) & (place != NONE)
    now, rng = Situation(place, rests, terms.cost), np.random.default_rng(seed)
    chosen = None if rests.mean() > _FEW else mapped_anew(graph, now, rng)
    if chosen is None:
        chosen = rebalanced(graph, now, rng)
    return [
        Decision(running, None if before == NONE else before, int(to))
        for (running, before), to in zip(placed, chosen, strict=True)
        if to != before
    ]


def accepted(
    decisions: Sequence[Decision], picture: Picture, allowed: float, leaving: Container[str]
) -> list[Decision]:
    """Of those who come, to children that are providers, only as many as the bound allows.

    A limit for a whole cluster does not say whether its providers have room for one query more. Who
    is not accepted stays where it is.
    """
    load = [c.total_load for c in picture.children]
    for number, child in enumerate(picture.children):
        load[number] -= sum(r.weight for n, r in child.running.items() if n in leaving)
    for decision in decisions:
        if decision.at is not None:
            load[decision.at] -= decision.running.weight
            load[decision.to] += decision.running.weight
    found = []
    for decision in decisions:
        able = picture.children[decision.to].total_capability
        room = able * allowed - load[decision.to]
        if decision.at is None:
            if decision.running.weight * (1 - ROUNDING) > room:
                continue
            load[decision.to] += decision.running.weight
        found.append(decision)
    return found


def _placed(picture: Picture, change: Change) -> list[tuple[Running, int]]:
    """Queries and the children that have them; but for those of providers that want to leave."""
    gone = set(change.leaving)
    found = [
        (running, number)
        for number, child in enumerate(picture.children)
        for running in child.running.values()
        if child.capability.get(running.owner, 0.0) > 0 and running.query.name not in gone
    ]
    known = {name for child in picture.children for name in child.running}
    return found + [(r, NONE) for r in change.coming if r.query.name not in known]


def _limits(picture: Picture, runs: Sequence[Running], allowed: float) -> Floats:
    """For each child: what surely fits below it, or half of the slack that this cluster has.

    Below a child that has no more than the former, some provider has room for any query. Where
    queries are heavy that may be less than all children have together, and nobody could move.
    """
    heaviest = max(running.weight for running in runs)
    able = [[c for c in child.capability.values() if c > 0] for child in picture.children]
    capability = max(sum(map(sum, able)), 1e-300)
    mean = sum(running.weight for running in runs) / capability
    half = min(allowed, (allowed + mean) / 2)
    return floats(
        max(0.0, allowed * sum(a) - heaviest * max(0, len(a) - 1), half * sum(a)) for a in able
    )


def cut(picture: Picture) -> float:
    """The weighted edge cut of what runs below, as it is."""
    placed = _placed(picture, Change())
    if not placed:
        return 0.0
    unlimited = floats(np.full(len(picture.children), np.inf))
    graph = query_graph(picture, [running for running, _ in placed], unlimited)
    return graph.cut(ints(at for _, at in placed))
