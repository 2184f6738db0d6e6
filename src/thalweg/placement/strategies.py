"""All placement strategies, by name. A new one is a file, and a line here."""

from __future__ import annotations

import difflib

from thalweg.placement.aggregate_host import AGGREGATE_HOST
from thalweg.placement.cosmos.strategies import COSMOS
from thalweg.placement.fragments.initial import FRAGMENTS
from thalweg.placement.heuristic.planner import HEURISTIC
from thalweg.placement.lp_bound import LP_BOUND
from thalweg.placement.milp.whole import MILP
from thalweg.placement.sand.strategies import SAND
from thalweg.placement.soda import SODA
from thalweg.placement.sqpr.planner import SQPR
from thalweg.placement.sqpr_milp import SQPR_MILP
from thalweg.placement.strategy import Strategy

STRATEGIES: tuple[Strategy, ...] = (
    SQPR,
    SQPR_MILP,
    MILP,
    HEURISTIC,
    SODA,
    FRAGMENTS,
    AGGREGATE_HOST,
    LP_BOUND,
    *SAND,
    *COSMOS,
)


def find_strategy(name: str) -> Strategy:
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy
    names = [s.name for s in STRATEGIES]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
    raise KeyError(f"no strategy is named {name!r}; {hint}")
