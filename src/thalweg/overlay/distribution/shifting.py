"""Which queries a coordinator moves: Algorithm 3.3 among its children, and what no bound allows.

The root sees the load of every provider. Where one has more than (1 + α) times its share, as few
queries as possible leave it (heavy ones first) for providers with room. Where nobody has room, a
query moves only if the greatest excess shrinks by it. Thereby moves come to an end, and then each
provider is within the bound, or over it by less than the weight of any of its queries. Where α
times the smallest provider's share is no less than the heaviest query, all are within the bound:
some provider always has no more than its share, and so has room.

The source asks its redistribution for balance at every level, and leaves it at that.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.sparse import csr_array

from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.picture import ROUNDING, Picture, Subtree
from thalweg.overlay.protocol import Address
from thalweg.placement.arrays import Ints, floats, ints
from thalweg.placement.cosmos.coarsening import coarsen
from thalweg.placement.cosmos.mapping import MappingTask
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.rebalancing import Caution, Standing, rebalance

# A query that moves is silent for a lease: less than a tenth of what it costs is not worth it, and
# everything is rearranged only where half of what could be saved is missing.
CAUTION = Caution(least_gain=0.1, start_over=0.5)
MOST_VERTICES = 300  # the source's v_max: more are coarsened first
_LEAST_SAVING = 0.001  # of the cut: less is rounding, or noise in what was measured
_AT_ONCE = 1000  # vertices, whose edges are spelt out to coarsen them


@dataclass(frozen=True, slots=True)
class Shift:
    running: Running
    to: Address | None  # None: wherever the tree finds room


def excess(whole: Subtree, allowed: float, resting: Container[str]) -> list[Shift]:
    """What must leave its provider; `resting` are those that were moved just now."""
    load, capability = dict(whole.load), whole.capability
    by_owner: dict[Address, list[Running]] = {}
    for running in whole.running.values():
        by_owner.setdefault(running.owner, []).append(running)
    takers = [a for a, c in capability.items() if c > 0]
    found: list[Shift] = []
    for owner in sorted(by_owner):
        limit = allowed * capability.get(owner, 0.0)
        leaving = capability.get(owner, 0.0) <= 0
        heavy_first = sorted(by_owner[owner], key=lambda r: (-r.weight, r.query.name))
        for running in heavy_first:
            over = load[owner] - limit
            if not leaving and over <= limit * ROUNDING:
                break
            others = [a for a in takers if a != owner]
            if running.query.name in resting or not others or (not leaving and not running.weight):
                continue
            best = max(others, key=lambda a: (allowed * capability[a] - load[a], a))
            room = allowed * capability[best] - load[best]
            fits = running.weight <= room
            if not fits and not leaving and running.weight - room >= over * (1 - ROUNDING):
                continue
            found.append(Shift(running, None if fits else best))
            load[owner] -= running.weight
            load[best] += running.weight
    return found


def adapt(
    picture: Picture, allowed: float, resting: Container[str], seed: int
) -> list[tuple[Running, int]]:
    """One coordinator's part of COSMOS 3.3.7: queries, and the child that each should go to."""
    placed = [
        (running, number)
        for number, child in enumerate(picture.children)
        for running in child.running.values()
        if child.capability.get(running.owner, 0.0) > 0
    ]
    if not placed or len(picture.children) < 2:
        return []
    substreams = sorted({s for running, _ in placed for s in running.query.substreams})
    heaviest = max(running.weight for running, _ in placed)
    limits = floats(_limit(child, allowed, heaviest) for child in picture.children)
    vertices = _vertices([running for running, _ in placed], substreams, picture)
    # Where substreams enter is in the view already; a task looks at their rates alone.
    rates = Substreams(picture.rate_bps(substreams), ints([0] * len(substreams)))
    rng = np.random.default_rng(seed)
    place = ints(number for _, number in placed)
    into = _coarsened(vertices, rates, place, rng)
    coarse = vertices.merged(into, int(into.max()) + 1)
    task = picture.view(substreams, limits).task(coarse, rates)
    at = np.zeros(len(coarse), np.int32)
    at[into] = place  # only what is at one child collapses
    density = coarse.weight / np.maximum(coarse.state_bytes, 1.0)
    mapping = rebalance(task, Standing(ints(at), density), CAUTION, rng)
    if not _is_better(task, mapping, ints(at)):
        return []
    chosen = mapping[into]
    return [
        (running, int(to))
        for (running, at), to in zip(placed, chosen, strict=True)
        if to != at and running.query.name not in resting
    ]


def _is_better(task: MappingTask, new: Ints, old: Ints) -> bool:
    """Less load over the limits; or no more, and less of a cut. Else moves would never end."""
    over_new, over_old = (
        float(np.maximum(task.load(m) - task.most, 0.0).sum()) for m in (new, old)
    )
    if over_new != over_old:
        return over_new < over_old
    return task.cut(new) < task.cut(old) * (1 - _LEAST_SAVING)


def _coarsened(
    vertices: Vertices, rates: Substreams, place: Ints, rng: Generator
) -> npt.NDArray[np.int64]:
    """The coarse vertex of each (Algorithm 3.1), part by part of what is at one child."""
    count = len(vertices)
    if count <= MOST_VERTICES:
        return np.arange(count)
    into, made = np.zeros(count, np.int64), 0
    for child in range(int(place.max()) + 1):
        there = np.flatnonzero(place == child)
        for part in np.array_split(there, -(-len(there) // _AT_ONCE) or 1):
            if len(part):
                most = max(1, MOST_VERTICES * len(part) // count)
                into[part] = made + coarsen(vertices.chosen(part), rates, most, rng).into
                made = int(into[part].max()) + 1
    return into


def _limit(child: Subtree, allowed: float, heaviest: float) -> float:
    """What surely fits below a child: if it has less, one of its providers has room for more."""
    able = [c for c in child.capability.values() if c > 0]
    return max(0.0, allowed * sum(able) - heaviest * max(0, len(able) - 1))


def _vertices(running: list[Running], substreams: list[int], picture: Picture) -> Vertices:
    column = {s: i for i, s in enumerate(substreams)}
    rows = [i for i, r in enumerate(running) for _ in r.query.substreams]
    columns = [column[s] for r in running for s in r.query.substreams]
    shape = (len(running), len(substreams))
    ones = np.ones(len(rows), np.float32)
    return Vertices(
        csr_array((ones, (rows, columns)), shape=shape),
        csr_array(np.array([picture.result(r.query) for r in running])),
        floats(r.weight for r in running),
        floats(r.query.state_bytes for r in running),
    )
