"""All who build trees, by name. A new one is a file beside this one, and a line here."""

from __future__ import annotations

from thalweg.placement.trees.annealing import Annealing
from thalweg.placement.trees.dita import DiTA
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.random_tree import RandomTree
from thalweg.placement.trees.source_based import SourceBased
from thalweg.placement.trees.strategy import TreeStrategy

TREE_STRATEGIES: dict[str, TreeStrategy] = {
    s.name: s for s in (Greedy(), Annealing(), DiTA(), SourceBased(), RandomTree())
}
