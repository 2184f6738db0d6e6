"""Capacities of hosts and links (III.6), and the balance of load (O₄)."""

from __future__ import annotations

from thalweg.placement.cost import Weights
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.linear import INFINITY, Model, Terms

_BEYOND = 1_000  # what runs may use more than a host has, if rates have changed


def capacities(instance: Instance, weights: Weights, model: Model) -> None:
    problem = instance.problem
    rate = problem.streams.rate_bps
    cpu: dict[int, Terms] = {}
    out: dict[int, Terms] = {}
    into: dict[int, Terms] = {}
    link: dict[tuple[int, int], Terms] = {}
    for (host, operator), variable in model.runs.items():
        cpu.setdefault(host, []).append((variable, float(problem.operators.cpu[operator])))
    for (sender, receiver, stream, _), variable in model.sends.items():
        term = (variable, float(rate[stream]))
        out.setdefault(sender, []).append(term)
        into.setdefault(receiver, []).append(term)
        link.setdefault((sender, receiver), []).append(term)
    for (host, number), variable in model.serves.items():
        stream = instance.demands[number].stream
        out.setdefault(host, []).append((variable, float(rate[stream])))
    for needs, left in (
        (cpu, instance.cpu_left),
        (out, instance.out_left),
        (into, instance.in_left),
    ):
        for host, terms in needs.items():
            capacity(model, terms, left[host])
    for pair, terms in link.items():
        if pair in instance.link_left:
            capacity(model, terms, instance.link_left[pair])
    if weights.balance > 0:
        balance(instance, weights, model, cpu)


def capacity(model: Model, terms: Terms, left: float) -> None:
    """Scaled to 1, so that CPU and bits per second mean the same to the solver's tolerances."""
    if left == INFINITY or sum(f * model.most.get(v, 1) for v, f in terms) <= left:
        return
    if left <= 0:
        for variable, factor in terms:
            if factor > 0:
                model.row(0.0, [(variable, 1.0)], 0.0)
        return
    for variable, factor in terms:
        if factor > left:  # alone it would be too much: said outright, the relaxation is tighter
            model.row(0.0, [(variable, 1.0)], 0.0)
    model.row(-INFINITY, [(v, f / left) for v, f in terms if f <= left], 1.0)


def balance(instance: Instance, weights: Weights, model: Model, cpu: dict[int, Terms]) -> None:
    """O₄: one variable above every host's utilisation."""
    capacity = instance.problem.hosts.cpu
    model.busiest = model.count(_BEYOND, weights.balance)
    for host, terms in cpu.items():
        whole = float(capacity[host])
        if 0 < whole < INFINITY:
            used = 1.0 - instance.cpu_left[host] / whole
            loads = [(v, -f / whole) for v, f in terms]
            model.row(used, [(model.busiest, 1.0), *loads], INFINITY)
