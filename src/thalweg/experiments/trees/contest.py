"""All methods of the source's evaluation on one setting, measured (COSMOS 4.4.3, 4.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thalweg.experiments.trees.course import Course, course
from thalweg.experiments.trees.world import TreeWorld
from thalweg.placement.arrays import Ints
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.dita import DiTA
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.random_tree import RandomTree
from thalweg.placement.trees.source_based import SourceBased

SA, GREEDY, DITA, STAR, RANDOM = "SA", "Greedy", "DiTA", "Source-Based", "Random"
ADAPTIVE = "+Adaptive"
METHODS = (SA, SA + ADAPTIVE, GREEDY, GREEDY + ADAPTIVE, RANDOM + ADAPTIVE, DITA, STAR, RANDOM)
SWEPT = (SA, SA + ADAPTIVE, GREEDY, GREEDY + ADAPTIVE, DITA, STAR, RANDOM)


@dataclass(frozen=True)
class Contest:
    courses: dict[str, Course]
    model: dict[str, float]  # the loss by the cost model, of the tree at the end

    def ratio(self, method: str, start: int = 0, end: int | None = None) -> float:
        """To SA's, which does not move, over the same periods."""
        return self.courses[method].mean(start, end) / self.courses[SA].mean(start, end)

    def rows(self, **about: Any) -> list[dict[str, Any]]:
        return [
            {
                **about,
                "method": method,
                "AvgLF %": round(100 * found.mean(), 4),
                "by the model %": round(100 * self.model[method], 4),
                "× SA": round(self.ratio(method), 3),
                "× SA, last fifth": round(self.ratio(method, 4 * len(found.losses) // 5), 3),
            }
            for method, found in self.courses.items()
        ]


def contest(
    world: TreeWorld,
    seed: int,
    methods: tuple[str, ...],
    cooling: Cooling,
    tell: Callable[[str], None],
    after: tuple[float, TreeWorld] | None = None,
    built: dict[str, Ints] | None = None,
) -> Contest:
    """`after`: the world from some second on; `built`: trees that are there already."""
    builders: dict[str, Any] = {
        SA: Annealing(cooling),
        GREEDY: Greedy(),
        DITA: DiTA(),
        STAR: SourceBased(),
        RANDOM: RandomTree(),
    }
    trees: dict[str, Ints] = dict(built or {})
    courses: dict[str, Course] = {}
    for method in methods:
        tell(method)
        base = method.removesuffix(ADAPTIVE)
        if base not in trees:
            trees[base] = builders[base].build(world.nodes, world.cargos, seed)[0]
        adapts = method.endswith(ADAPTIVE)
        courses[method] = course(world, trees[base], adapts=adapts, seed=seed, after=after)
    last = after[1] if after is not None else world
    model = {m: loss(last.nodes, last.cargos, (c.parent,)) for m, c in courses.items()}
    return Contest(courses, model)
