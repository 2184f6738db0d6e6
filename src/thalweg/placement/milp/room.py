"""Making room by the solver: several results are taken out and placed again together (IV-A).

A neighbourhood is bounded on all sides: a few results that stand in the way, a few hosts, and a few
outside hosts that may send a stream in. The solver places the new query and all that was taken out:
what was admitted must still be served (IV.9), by whichever host. If it finds no solution,
everything is put back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.cost import Weights
from thalweg.placement.ledger import Ledger
from thalweg.placement.milp.highs import Answer, solve
from thalweg.placement.milp.instance import Demand, Instance
from thalweg.placement.milp.linear import Model
from thalweg.placement.milp.model import build, chosen
from thalweg.placement.milp.symmetry import order_alike
from thalweg.placement.rows import Piece, Place, Run
from thalweg.placement.sqpr.displacement import TakenOut, put_back, take_out
from thalweg.placement.sqpr.refusing import least_cpu


@dataclass(frozen=True, slots=True)
class Limits:
    results: int = 3  # that may move
    hosts: int = 6
    senders: int = 3  # outside hosts that may send a stream in
    variables: int = 700
    nodes: int = 300
    gap: float = 0.1
    seconds: float = 10.0  # the safety net
    spare_cpu: float = 2.0  # times what is needed: with less, the solver would pack bins


def make_room(
    ledger: Ledger,
    query: int,
    plans: AbstractPlans,
    near: Piece,
    in_the_way: list[tuple[Place, ...]],
    weights: Weights,
    limits: Limits,
) -> Answer | None:
    """Serve the query if the solver finds how; the answer has values if it does.

    None if the solver was not asked: the smallest neighbourhood is too large, or CPU is scarce too.
    It would then have to prove that ends of CPU can't be packed, which took it seconds in a single
    node, where no limit on nodes holds, and never found room.
    """
    places = tuple(dict.fromkeys(p for results in in_the_way for p in results))
    for count in range(min(limits.results, len(places)), 0, -1):
        taken = take_out(ledger, places[:count])
        hosts = _hosts(ledger, near, taken, limits)
        instance = _instance(ledger, _demands(ledger, query, plans, taken, hosts), hosts, limits)
        model = build(instance, weights)
        if len(model.costs) <= limits.variables and _cpu_to_spare(ledger, instance, limits):
            order_alike(instance, model)
            answer = solve(model, nodes=limits.nodes, gap=limits.gap, seconds=limits.seconds)
            if answer.values is None:
                put_back(ledger, taken)
            else:
                waiting = [(query,), *(queries for _, queries in taken.results)]
                _put(ledger, model, answer.values, waiting)
            return answer
        put_back(ledger, taken)
    return None


def _demands(
    ledger: Ledger, query: int, plans: AbstractPlans, taken: TakenOut, hosts: list[int]
) -> tuple[Demand, ...]:
    proxy = int(ledger.problem.queries.proxy[query])
    new = Demand(plans.wanted, tuple(hosts) if proxy == NONE else (proxy,))
    return (new, *(Demand(stream, tuple(hosts)) for (_, stream), _ in taken.results))


def _cpu_to_spare(ledger: Ledger, instance: Instance, limits: Limits) -> bool:
    """Ends of CPU that are too small for the largest operator do not count."""
    streams = (demand.stream for demand in instance.demands)
    need = sum(least_cpu(ledger, abstract_plans(ledger.problem, s)) for s in streams)
    gamma = ledger.problem.operators.cpu[list(instance.operators)]
    left = ledger.cpu_left[list(instance.hosts)]
    usable = left[left >= gamma.max(initial=0.0)].sum()
    return bool(limits.spare_cpu * need <= usable)


def _hosts(ledger: Ledger, near: Piece, taken: TakenOut, limits: Limits) -> list[int]:
    """The nearest plan's, those that were used by what was taken out, and those with most left."""
    chosen = dict.fromkeys([near.host, *(run.host for run in near.runs)])  # near.host: the proxy
    chosen |= dict.fromkeys(row.host for row in taken.removed if isinstance(row, Run))
    for host in np.argsort(-_plenty(ledger), kind="stable").tolist():
        if ledger.alive[host]:
            chosen.setdefault(host)
    return list(chosen)[: limits.hosts]


def _plenty(ledger: Ledger) -> Floats:
    """Between 0 and 1: the share of CPU and bandwidth that is left, whichever is less."""
    hosts = ledger.problem.hosts
    with np.errstate(invalid="ignore", divide="ignore"):
        left = [
            np.nan_to_num(a / b, nan=1.0, posinf=1.0)
            for a, b in (
                (ledger.cpu_left, hosts.cpu),
                (ledger.out_left, hosts.out_bps),
                (ledger.in_left, hosts.in_bps),
            )
        ]
    plenty: Floats = np.clip(np.minimum.reduce(left), 0.0, 1.0)
    return plenty


def _instance(
    ledger: Ledger, demands: tuple[Demand, ...], hosts: list[int], limits: Limits
) -> Instance:
    problem = ledger.problem
    plans = [abstract_plans(problem, demand.stream) for demand in demands]
    operators = dict.fromkeys(o for p in plans for o in p.operators)
    streams = dict.fromkeys(s for p in plans for s in p.streams)
    given = _given(ledger, list(streams), hosts, limits)
    nodes = {*hosts, *(host for host, _ in given), *(h for d in demands for h in d.hosts)}
    link = ledger.link_left
    return Instance(
        problem,
        tuple(hosts),
        tuple(operators),
        given,
        demands,
        {h: max(float(ledger.cpu_left[h]), 0.0) for h in nodes},
        {h: max(float(ledger.out_left[h]), 0.0) for h in nodes},
        {h: max(float(ledger.in_left[h]), 0.0) for h in nodes},
        {}
        if link is None
        else {(h, m): max(float(link[h, m]), 0.0) for h in nodes for m in nodes if h != m},
    )


def _given(
    ledger: Ledger, streams: list[int], hosts: list[int], limits: Limits
) -> frozenset[Place]:
    """Where streams are: at these hosts, and at a few others that can spare the bandwidth."""
    given: set[Place] = set()
    for stream in streams:
        holders = np.flatnonzero(ledger.available[stream] & ledger.alive).tolist()
        given |= {(h, stream) for h in holders if h in hosts}
        rate = ledger.problem.streams.rate_bps[stream]
        outside = [h for h in holders if h not in hosts and ledger.out_left[h] >= rate]
        outside.sort(key=lambda h: (-float(ledger.out_left[h]), h))
        given |= {(h, stream) for h in outside[: limits.senders]}
    return frozenset(given)


def _put(ledger: Ledger, model: Model, values: list[float], waiting: list[tuple[int, ...]]) -> None:
    runs, sends, serves = chosen(model, values)
    for run in runs:
        ledger.add_run(run)
    for send in sends:
        ledger.add_send(send)
    for number, host in serves.items():
        for query in waiting[number]:
            ledger.serve(query, host)
    # Within the gap a solution may hold what it does not use.
    ledger.sweep(list(ledger.providers))
