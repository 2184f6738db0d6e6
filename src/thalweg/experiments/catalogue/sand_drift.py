"""SAND 2.3 and 3: placements that follow rates and ways as they drift, and how far they are off.

"Applied periodically" is all that the source says. Queries are placed by the protocol between
simulated peers; then sources speed up and slow down, hosts become hard to reach and recover. After
each step, the cost of what stands is set beside the optimum of that moment.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sand.drifting import Drift, Followed, follow, optimum_followed
from thalweg.experiments.sqpr.figures import curves

FROZEN, FOLLOWING = "placed once", "hysteresis of {:g}"
CENTRAL = "optimum, placed anew at each step"


@dataclass(frozen=True)
class Parameters:
    seeds: int = 2
    peers: int = 100
    queries: int = 3
    depth: int = 3
    algorithm: str = "in-network"
    k: int = 10
    steps: int = 12
    step_s: float = 120.0
    remeasure_s: float = 30.0
    looks: int = 4  # in each step: how often hosts tell what their operators give
    noise: float = 0.1  # standard deviation of what they see, of its logarithm
    rate_change: float = 0.3  # standard deviation of a rate's logarithm, in each step
    slow_hosts: float = 0.3  # share of the hosts that are hard to reach
    slow_ms: float = 100.0  # at most, on top of each way from and to them
    redrawn: float = 0.05  # share of the hosts of which this changes in each step
    savings: tuple[float, ...] = (0.0, 0.1, 0.3)

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=1, peers=40, queries=2, steps=4, step_s=60.0, remeasure_s=15.0)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    found: dict[str, list[Followed]] = {}
    ways = [FROZEN, *(FOLLOWING.format(s) for s in p.savings), CENTRAL]
    for seed in range(p.seeds):
        for i, name in enumerate(ways):
            progress(f"seed {seed}, {name}", (seed + i / len(ways)) / p.seeds)
            drift = _drift(p, seed)
            if name == CENTRAL:
                followed = optimum_followed(drift)
            else:
                saving = 0.0 if name == FROZEN else p.savings[i - 1]
                followed = follow(drift, saving, sees=name != FROZEN)
            found.setdefault(name, []).append(followed)
    rows = [_row(p, name, of) for name, of in found.items()]
    return Report(
        "sand-drift",
        "Placements that follow drifting rates and ways (SAND 2.3, 3)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "cost": curves(
                [(n + 1) * p.step_s / 60 for n in range(p.steps)],
                {name: [f.over_optimum for f in of] for name, of in found.items()},
                across="minutes",
                up="cost, of the optimum of the moment",
                title=f"{p.queries} queries, mean and range of {p.seeds} seeds",
            )
        },
    )


def _drift(p: Parameters, seed: int) -> Drift:
    names = (
        "peers",
        "queries",
        "depth",
        "algorithm",
        "k",
        "steps",
        "step_s",
        "remeasure_s",
        "looks",
        "noise",
        "rate_change",
        "slow_hosts",
        "slow_ms",
        "redrawn",
    )
    return Drift(seed=seed, **{name: getattr(p, name) for name in names})


def _row(p: Parameters, name: str, found: list[Followed]) -> dict[str, Any]:
    late = [f.over_optimum[len(f.over_optimum) // 2 :] for f in found]
    operators = p.queries * (2**p.depth - 1)
    minutes = p.steps * p.step_s / 60
    return {
        "placement": name,
        "cost over optimum, at first": float(np.mean([f.over_optimum[0] for f in found])),
        "second half, mean": float(np.mean(late)),
        "second half, worst": float(np.max(late)),
        "moves of an operator, an hour": 60
        * float(np.mean([f.moves for f in found]))
        / operators
        / minutes,
        "messages a query and s": float(np.mean([f.messages for f in found]))
        / p.queries
        / (60 * minutes),
    }


def _of(rows: list[dict[str, Any]], name: str, column: str) -> float:
    return float(next(row[column] for row in rows if row["placement"] == name))


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    usual = FOLLOWING.format(0.1)
    if usual not in [row["placement"] for row in rows]:
        return []
    mean, moves = "second half, mean", "moves of an operator, an hour"
    goals = [
        Goal("hysteresis of 0.1: cost over optimum", _of(rows, usual, mean), 1.15, "x", False),
        Goal(
            "hysteresis of 0.1: excess, of what placed once has",
            (_of(rows, usual, mean) - 1) / max(_of(rows, FROZEN, mean) - 1, 1e-9),
            0.5,
            at_least=False,
        ),
    ]
    every = FOLLOWING.format(0.0)
    if every in [row["placement"] for row in rows]:
        share = _of(rows, usual, moves) / max(_of(rows, every, moves), 1e-9)
        goals.append(Goal("its moves, of those without hysteresis", share, 0.6, at_least=False))
    return goals


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    told = "; ".join(
        f"{row['placement']}: {row['second half, mean']:.3f} of the optimum, "
        f"{row['moves of an operator, an hour']:.1f} moves of an operator an hour"
        for row in rows
    )
    return [
        Beside(
            "2.3, 3", "placement is applied periodically, to adapt to changes (no figures)", told
        )
    ]


NOTES = (
    "The cost is Σ rate × delay of all queries at the end of each step, by the true rates and "
    "delays; the optimum is that of the same moment, tree by tree, with all peers as candidates. "
    "*Placed once* is the protocol with the rates of the query and the first measurements. "
    "Where hysteresis is in force, a zone stands where it stands until another place saves this "
    "share of what its own ways cost.",
    "Hosts tell rates `looks` times in a step, with an error of `noise`; ways are measured again "
    "every `remeasure_s` seconds; of the last three measurements the least counts, so a way that "
    "became slower is believed after three of them.",
)
