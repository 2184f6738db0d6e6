"""SQPR's model (III.1 to III.8) where all links are alike: copies are counted, not routed.

A variable for every stream and pair of hosts makes hosts² × streams of them. Where no link has a
limit of its own, it does not matter who sends to whom; so there is one variable for each stream
and host that receives it, and one for the number of copies that the host sends:

    z[h,o]   host h runs o                        r[h,s]   host h receives s
    u[h,s]   copies of s that h sends where s is made or given          ≤ most · (z or given)
    v[h,s]   copies of s that h passes on                               ≤ most · r[h,s]
    Σ (u + v) = Σ r        r[m,s] ≤ Σ u           a stream that is received has a real source

The last row takes the place of potentials (III.7). It is enough: hand the copies out to those
first who pass on most. Should the copies run out early, those who are left would have as many to
pass on as they are, so each that was served has one or more, and with the source's own copy there
would be one left. So this model has a solution exactly where (III.8) has one, of the same cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights
from thalweg.placement.milp.capacities import balance, capacity
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.linear import INFINITY, Model, Terms
from thalweg.placement.milp.model import negative, scales
from thalweg.placement.rows import Place, Run, Send


@dataclass(slots=True)
class Counted(Model):
    received: dict[Place, int] = field(default_factory=dict)  # r
    sent: dict[Place, int] = field(default_factory=dict)  # u
    passed_on: dict[Place, int] = field(default_factory=dict)  # v


def build_counted(instance: Instance, weights: Weights) -> Counted:
    if instance.link_left:
        raise ValueError("where links have limits, it matters who sends to whom: use `build`")
    model = Counted()
    _runs_and_serves(instance, weights, model)
    for stream in _wanted_somewhere(instance):
        _copies(instance, weights, model, stream)
    _availability(instance, model)
    _capacities(instance, weights, model)
    return model


def _runs_and_serves(instance: Instance, weights: Weights, model: Counted) -> None:
    problem, (of_cpu, _) = instance.problem, scales(instance.problem)
    for operator in instance.operators:
        pinned = int(problem.operators.pinned[operator])
        cost = weights.cpu * of_cpu * float(problem.operators.cpu[operator])
        output = int(problem.operators.output[operator])
        for host in instance.hosts:
            if pinned in (NONE, host) and (host, output) not in instance.given:
                model.runs[host, operator] = model.binary(cost)
    for number, demand in enumerate(instance.demands):
        gain = 0.0 if demand.required else -weights.admitted * demand.queries
        for host in demand.hosts:
            model.serves[host, number] = model.binary(gain)


def _wanted_somewhere(instance: Instance) -> list[int]:
    inputs = instance.problem.operators.inputs
    found = {s for o in instance.operators for s in inputs[o].tolist()}
    found |= {demand.stream for demand in instance.demands}
    return sorted(found | {stream for _, stream in instance.needed})


def _copies(instance: Instance, weights: Weights, model: Counted, stream: int) -> None:
    rate = float(instance.problem.streams.rate_bps[stream])
    cost = weights.network * scales(instance.problem)[1] * rate
    receivers = [h for h in instance.hosts if (h, stream) not in instance.given]
    places = [(h, stream) for h in dict.fromkeys([*_holders(instance, stream), *receivers])]
    for host in receivers:
        model.received[host, stream] = model.binary(cost)
    sources: Terms = []
    copies: Terms = []
    for place in places:
        left = instance.out_left[place[0]]
        most = len(receivers)
        if rate > 0 and isfinite(left):
            most = min(most, int((left + 1e-6) // rate))
        if most <= 0:
            continue
        made = made_at(instance, model, place)
        if place in instance.given or made:
            model.sent[place] = sent = model.count(most)
            sources.append((sent, 1.0))
            if place not in instance.given:
                model.row(-INFINITY, [(sent, 1.0), *((z, -float(most)) for z, _ in made)], 0.0)
        if place in model.received:
            model.passed_on[place] = again = model.count(most)
            row = [(again, 1.0), (model.received[place], -float(most))]
            model.row(-INFINITY, row, 0.0)
            copies.append((again, 1.0))
    arrivals: Terms = [(model.received[h, stream], 1.0) for h in receivers]
    model.row(0.0, [*sources, *copies, *negative(arrivals)], 0.0)
    for arrival in arrivals:
        model.row(-INFINITY, [arrival, *negative(sources)], 0.0)


def _holders(instance: Instance, stream: int) -> list[int]:
    return sorted(host for host, given in instance.given if given == stream)


def made_at(instance: Instance, model: Model, place: Place) -> Terms:
    host, stream = place
    makers = instance.problem.makers[stream].tolist()
    return [(model.runs[host, o], 1.0) for o in makers if (host, o) in model.runs]


def _availability(instance: Instance, model: Counted) -> None:
    def ways(place: Place) -> Terms:
        received = [(model.received[place], 1.0)] if place in model.received else []
        return [*received, *made_at(instance, model, place)]

    for place in model.received:
        if len(ways(place)) > 1:
            model.row(-INFINITY, ways(place), 1.0)  # C3: one provider
    for (host, operator), run in model.runs.items():  # III.5b
        for stream in instance.problem.operators.inputs[operator].tolist():
            if (host, stream) not in instance.given:
                model.row(-INFINITY, [(run, 1.0), *negative(ways((host, stream)))], 0.0)
    for number, demand in enumerate(instance.demands):
        servers: Terms = [(model.serves[host, number], 1.0) for host in demand.hosts]
        model.row(1.0 if demand.required else 0.0, servers, 1.0)  # III.4b, IV.9
        for host in demand.hosts:  # III.4a
            place = (host, demand.stream)
            if place not in instance.given:
                served = (model.serves[host, number], 1.0)
                model.row(-INFINITY, [served, *negative(ways(place))], 0.0)
    for place in sorted(instance.needed - instance.given):
        model.row(1.0, ways(place), INFINITY)


def _capacities(instance: Instance, weights: Weights, model: Counted) -> None:
    problem = instance.problem
    cpu: dict[int, Terms] = {}
    out: dict[int, Terms] = {}
    into: dict[int, Terms] = {}
    for (host, operator), run in model.runs.items():
        cpu.setdefault(host, []).append((run, float(problem.operators.cpu[operator])))
    for uses, variables in ((out, model.sent), (out, model.passed_on), (into, model.received)):
        for (host, stream), variable in variables.items():
            rate = float(problem.streams.rate_bps[stream])
            uses.setdefault(host, []).append((variable, rate))
    for (host, number), variable in model.serves.items():
        rate = float(problem.streams.rate_bps[instance.demands[number].stream])
        out.setdefault(host, []).append((variable, rate))
    for uses, left in (
        (cpu, instance.cpu_left),
        (out, instance.out_left),
        (into, instance.in_left),
    ):
        for host, terms in uses.items():
            capacity(model, terms, left[host])
    if weights.balance > 0:
        balance(instance, weights, model, cpu)


def chosen_counted(
    instance: Instance, model: Counted, values: list[float]
) -> tuple[list[Run], list[Send], dict[int, int]]:
    """What a solution runs and sends, and which host serves which demand."""
    runs = [Run(*key) for key, variable in model.runs.items() if values[variable] > 0.5]
    serves = {n: host for (host, n), variable in model.serves.items() if values[variable] > 0.5}
    sends: list[Send] = []
    for stream in dict.fromkeys(s for _, s in model.received):
        sends += _routed(instance, model, values, stream)
    return runs, sends, serves


def _routed(instance: Instance, model: Counted, values: list[float], stream: int) -> list[Send]:
    """Copies are handed out to those first who pass on most (see above)."""

    def copies(variables: dict[Place, int], host: int) -> int:
        variable = variables.get((host, stream))
        return 0 if variable is None else round(values[variable])

    targets = [h for (h, s), r in model.received.items() if s == stream and values[r] > 0.5]
    targets.sort(key=lambda h: (-copies(model.passed_on, h), h))
    senders = [h for (h, s) in model.sent if s == stream for _ in range(copies(model.sent, h))]
    found: list[Send] = []
    for target in targets:
        found.append(Send(senders.pop(0), target, stream))
        senders += [target] * copies(model.passed_on, target)
    return found
