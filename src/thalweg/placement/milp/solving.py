"""An instance to its best plan: the model in the form that suits its links, and the solver.

A search may start from rows that are a solution already, so that what is found is never worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg.placement.cost import Weights
from thalweg.placement.milp.counted import Counted, build_counted, chosen_counted
from thalweg.placement.milp.highs import Answer, solve
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.linear import Model
from thalweg.placement.milp.model import build, chosen
from thalweg.placement.milp.symmetry import order_alike
from thalweg.placement.rows import Run, Send


@dataclass(frozen=True, slots=True)
class Limits:
    nodes: int
    gap: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Rows:
    """A solution in words: what runs and is sent, and which host serves which demand."""

    runs: Sequence[Run]
    sends: Sequence[Send]
    serves: Mapping[int, int]


def best_plan(
    instance: Instance, weights: Weights, limits: Limits, start: Rows | None = None
) -> tuple[Answer, Rows | None]:
    """The best plan found, None if there is none or none was found; and how the search went."""
    if instance.link_left:
        pairs = build(instance, weights)
        order_alike(instance, pairs)
        answer = _solve(pairs, limits, None)
        if answer.values is None:
            return answer, None
        return answer, Rows(*chosen(pairs, answer.values))
    counted = build_counted(instance, weights)
    if start is None:  # the order would rule out most starts
        order_alike(instance, counted)
    answer = _solve(counted, limits, None if start is None else values_of(instance, counted, start))
    if answer.values is None:
        return answer, None
    return answer, Rows(*chosen_counted(instance, counted, answer.values))


def _solve(model: Model, limits: Limits, start: Sequence[float] | None) -> Answer:
    return solve(model, nodes=limits.nodes, gap=limits.gap, seconds=limits.seconds, start=start)


def values_of(instance: Instance, model: Counted, rows: Rows) -> list[float]:
    """The model's variables, as these rows set them."""
    values = [0.0] * len(model.costs)
    made = {(host, int(instance.problem.operators.output[o])) for host, o in rows.runs}
    for run in rows.runs:
        values[model.runs[run.host, run.operator]] = 1.0
    for source, target, stream in rows.sends:
        values[model.received[target, stream]] = 1.0
        own = (source, stream) in instance.given or (source, stream) in made
        values[(model.sent if own else model.passed_on)[source, stream]] += 1.0
    for number, host in rows.serves.items():
        values[model.serves[host, number]] = 1.0
    if model.busiest is not None:
        values[model.busiest] = _busiest(instance, rows)
    return values


def _busiest(instance: Instance, rows: Rows) -> float:
    capacity, gamma = instance.problem.hosts.cpu, instance.problem.operators.cpu
    load = {h: float(capacity[h]) - instance.cpu_left[h] for h in instance.hosts}
    for host, operator in rows.runs:
        load[host] += float(gamma[operator])
    return max(
        (used / float(capacity[h]) for h, used in load.items() if capacity[h] > 0), default=0
    )
