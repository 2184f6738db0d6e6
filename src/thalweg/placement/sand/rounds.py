"""Rounds of re-placement: what was measured goes in, a list of migrations comes out (SAND 2.3).

Between rounds, nothing is remembered but what runs: `measured.running`, over the rates, latencies
and state sizes of now. With a patience of s, a tree that stays costs at most 1 / (1 − s) times what
its strategy would find, unless its state is too heavy to move within the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.placement.deployment import Deployment
from thalweg.placement.migrations import Migration, migrations
from thalweg.placement.problem import Problem, ProblemError
from thalweg.placement.sand.planning import PlaceTree, decide
from thalweg.placement.sand.replacing import Patience
from thalweg.placement.strategy import Options, Refusal


@dataclass(frozen=True, slots=True)
class Round:
    deployment: Deployment
    migrations: tuple[Migration, ...]
    moved: tuple[int, ...]  # queries whose tree was placed anew
    stayed: tuple[int, ...]
    refusals: tuple[Refusal, ...]  # what has no place any more


def next_round(
    measured: Problem,
    place_tree: PlaceTree,
    patience: Patience | None = None,
    options: Options | None = None,
) -> Round:
    if measured.running is None:
        raise ProblemError("$.running", "a round begins with what runs: give a deployment")
    decided = decide(measured, options or Options(), place_tree, patience or Patience())
    ran = [verdict for verdict in decided.verdicts if verdict.ran]
    return Round(
        decided.deployment,
        migrations(measured, measured.running, decided.deployment),
        tuple(sorted(v.placed.of.query for v in ran if v.moved)),
        tuple(sorted(v.placed.of.query for v in ran if not v.moved)),
        decided.refusals,
    )
