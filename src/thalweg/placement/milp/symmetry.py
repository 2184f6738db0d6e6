"""Hosts that are alike are put in an order, so that the solver does not try all their exchanges.

Two hosts are alike if they have equal capacities and none of the streams in question, and nothing
is pinned or bound to one of them. Of such hosts, the first has the most to do.
"""

from __future__ import annotations

from itertools import pairwise

from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.linear import INFINITY, Model


def order_alike(instance: Instance, model: Model) -> None:
    gamma = instance.problem.operators.cpu
    largest = float(gamma[list(instance.operators)].max(initial=0.0)) or 1.0
    loads: dict[int, list[tuple[int, float]]] = {}
    for (host, operator), variable in model.runs.items():
        loads.setdefault(host, []).append((variable, float(gamma[operator]) / largest))
    for group in alike(instance):
        for first, second in pairwise(group):
            less = [(variable, -load) for variable, load in loads.get(second, [])]
            model.row(0.0, [*loads.get(first, []), *less], INFINITY)


def alike(instance: Instance) -> list[list[int]]:
    if instance.link_left:
        return []
    problem = instance.problem
    singled_out = {host for host, _ in instance.given | instance.needed}
    singled_out |= {int(problem.operators.pinned[o]) for o in instance.operators}
    for demand in instance.demands:
        if set(demand.hosts) != set(instance.hosts):
            singled_out |= set(demand.hosts)
    groups: dict[tuple[float, ...], list[int]] = {}
    for host in instance.hosts:
        if host not in singled_out:
            left = (instance.cpu_left[host], instance.out_left[host], instance.in_left[host])
            whole = float(problem.hosts.cpu[host])
            groups.setdefault((*left, whole), []).append(host)
    return [group for group in groups.values() if len(group) > 1]
