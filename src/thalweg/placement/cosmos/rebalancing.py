"""One coordinator's part in adaptive redistribution (COSMOS 3.3.7): re-balance, then refine.

Algorithm 3.3, with what its text has lost: where no vertex is dirty, all are candidates (line 7);
a pair between which nothing fits any more is given up.

Single moves don't lead out of an even mixture of all interests at every child, as a distribution
without knowledge is. So a coordinator also looks at what it would get if it mapped everything anew,
and does that where what it has is not much better than chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from thalweg.placement.arrays import NONE, Flags, Floats, Ints, ints
from thalweg.placement.cosmos.diffusion import diffusion, excess
from thalweg.placement.cosmos.mapping import MappingTask, Moves, map_greedily, refine, relieve

_WORTH_IT = 0.01  # of the cut: where children are near, even chance costs little
_NEARLY = 0.9  # of a vertex's weight: so much flow is enough to move it


@dataclass(frozen=True, slots=True, eq=False)
class RoundStart:
    """Where vertices are, and what is known of them, when a round begins."""

    place: Ints  # the child; NONE for those that come from elsewhere, and so are dirty already
    density: Floats  # weight for each byte of state
    cost: Floats | None = None  # what a gain is held against; None: what edges leading away cost
    rests: Flags | None = None  # those that stay where they are, whatever it costs


@dataclass(frozen=True, slots=True)
class Caution:
    """How readily vertices move."""

    nearly_best: float = 0.1  # x: benefits that differ by so much from the best count as equal
    least_excess: float = 0.02  # of all load: with less too much, no whole vertex moves for it
    least_gain: float = 0.03  # of a vertex's cost: what a move to refine must save
    exchange_gain: float = 0.05  # the same for single queries, when the root looks at all of them
    start_over: float = 0.3  # of what a mapping anew saves against chance: so much must be missing


def rebalance(task: MappingTask, standing: RoundStart, caution: Caution, rng: Generator) -> Ints:
    """The child that each vertex goes to."""
    moves = Moves(task, map_greedily(task, standing.place))
    _diffuse(moves, standing, caution, rng)
    _refine(moves, standing, caution, rng)
    anew = mapped_anew(task, ints(moves.mapping), caution)
    return ints(moves.mapping) if anew is None else anew


def mapped_anew(task: MappingTask, mapping: Ints, caution: Caution) -> Ints | None:
    """A mapping from scratch, where the present one is not much better than chance."""
    if caution.start_over == inf:
        return None
    anew = refine(task, relieve(task, map_greedily(task)))
    if not (task.load(anew) <= task.most).all():
        return None
    now, best = task.cut(mapping), task.cut(anew)
    return anew if is_chance(now, best, _by_chance(task), caution) else None


def is_chance(
    now: float, best: float, chance: float, caution: Caution, *, at_stake: float = 0.0
) -> bool:
    """Whether a cut lacks so much of what could be saved that it is worth to start over.

    `at_stake`: what those who would move cost in all, where that is more than what is seen here.
    """
    worth_it = _WORTH_IT * max(now, at_stake)
    return now - best > max(caution.start_over * (chance - best), worth_it)


def _by_chance(task: MappingTask) -> float:
    """The cut of a mapping that knows nothing but the limits, on the mean."""
    share = task.limits / max(float(task.limits.sum()), 1e-300)
    apart = float(share @ task.latency_ms @ share)
    return float((task.pull @ share).sum()) + 0.5 * float(task.edges.sum(dtype=float)) * apart


def _diffuse(moves: Moves, standing: RoundStart, caution: Caution, rng: Generator) -> None:
    """Lines 2 to 9."""
    task = moves.task
    dirty = standing.place == NONE
    free = ~_rests(standing)
    surplus = excess(moves.load, task.limits)
    if np.maximum(surplus, 0.0).sum() <= caution.least_excess * moves.load.sum():
        return  # so little is better left to single queries, one level or more below
    flow = diffusion(surplus)
    while True:
        pairs = np.argwhere(flow > 0)
        if not len(pairs):
            return
        i, j = pairs[int(rng.integers(len(pairs)))].tolist()
        fits = (moves.mapping == i) & (_NEARLY * task.weight < flow[i, j]) & (task.weight > 0)
        fits &= free
        v = _picked(np.flatnonzero(fits), moves.gain[:, j], dirty, standing.density, caution)
        if v is None:
            flow[i, j] = 0.0
            continue
        moves.move(v, j)
        dirty[v] = True
        flow[i, j] = max(0.0, flow[i, j] - task.weight[v])


def _picked(
    fits: npt.NDArray[np.int64], benefit: Floats, dirty: Flags, density: Floats, caution: Caution
) -> int | None:
    """Of those with nearly the best benefit a dirty one, if any; of these the densest."""
    if not len(fits):
        return None
    best = float(benefit[fits].max())
    good = fits[benefit[fits] >= best - caution.nearly_best * abs(best)]
    again = good[dirty[good]]
    candidates = again if len(again) else good
    return int(candidates[np.argmax(density[candidates])])


def _refine(moves: Moves, standing: RoundStart, caution: Caution, rng: Generator) -> None:
    """In random order: back to where it was where that costs nothing, else to where it pays."""
    task, origin = moves.task, standing.place
    cost = np.abs(task.pull).mean(axis=1) if standing.cost is None else standing.cost
    own, rests = np.maximum(cost, 1e-12), _rests(standing)
    for v in rng.permutation(len(origin)).tolist():
        if rests[v]:
            continue
        room = task.weight[v] <= task.most - moves.load
        home = int(origin[v])
        if home not in (NONE, moves.mapping[v]) and room[home] and moves.gain[v, home] >= 0:
            moves.move(v, home)
            continue
        gain = np.where(room, moves.gain[v], -np.inf)
        to = int(np.argmax(gain))
        if to != moves.mapping[v] and gain[to] > caution.least_gain * own[v]:
            moves.move(v, to)


def _rests(standing: RoundStart) -> Flags:
    return np.zeros(len(standing.place), bool) if standing.rests is None else standing.rests
