"""The mixed integer linear programme of SQPR (III.1 to III.8), in a tight form.

Variables are those of (III.1), fewer: z says that a host runs an operator, x that a host sends a
stream to another, d that a host serves a demand. Availability (y) is what provides a stream: at
most one of a run, a send and what is given. Potentials with a big M (III.7) relax badly; instead,
sends are counted by hops: a send of hop 1 starts where the stream is made or given, a
send of hop k where hop k − 1 arrived. No stream can then feed itself, and no M is needed. Only
sends to where a stream could be used exist at all.
"""

from __future__ import annotations

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights, yardsticks
from thalweg.placement.milp.capacities import capacities
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.linear import INFINITY, Model, Terms
from thalweg.placement.problem import Problem
from thalweg.placement.rows import Place, Run, Send


def build(instance: Instance, weights: Weights) -> Model:
    model = Model()
    _variables(instance, weights, model)
    sources = {p: _sources(instance, model, p) for p in _places(instance)}
    arrivals: dict[tuple[int, int, int], Terms] = {}  # by host, stream and hop
    for (_, target, stream, hop), variable in model.sends.items():
        arrivals.setdefault((target, stream, hop), []).append((variable, 1.0))
    _availability(instance, model, sources, arrivals)
    _demands(instance, model, sources, arrivals)
    capacities(instance, weights, model)
    return model


def _variables(instance: Instance, weights: Weights, model: Model) -> None:
    problem = instance.problem
    cpu_scale, bps_scale = scales(problem)
    for operator in instance.operators:
        pinned = int(problem.operators.pinned[operator])
        cost = weights.cpu * cpu_scale * float(problem.operators.cpu[operator])
        output = int(problem.operators.output[operator])
        for host in instance.hosts:
            if pinned in (NONE, host) and (host, output) not in instance.given:
                model.runs[host, operator] = model.binary(cost)
    for demand_number, demand in enumerate(instance.demands):
        for host in demand.hosts:
            gain = 0.0 if demand.required else -weights.admitted * demand.queries
            model.serves[host, demand_number] = model.binary(gain)
    for stream, (senders, receivers) in _traffic(instance).items():
        cost = weights.network * bps_scale * float(problem.streams.rate_bps[stream])
        for hop in range(1, instance.hops + 1):
            for sender in senders if hop == 1 else instance.hosts:
                for receiver in receivers:
                    if sender != receiver and (receiver, stream) not in instance.given:
                        model.sends[sender, receiver, stream, hop] = model.binary(cost)


def _traffic(instance: Instance) -> dict[int, tuple[list[int], list[int]]]:
    """For each stream, hosts that could have it by themselves, and hosts that could use it."""
    operators = instance.problem.operators
    senders: dict[int, set[int]] = {}
    receivers: dict[int, set[int]] = {}
    for host, stream in instance.given:
        senders.setdefault(stream, set()).add(host)
    for operator in instance.operators:
        senders.setdefault(int(operators.output[operator]), set()).update(instance.hosts)
        for stream in operators.inputs[operator].tolist():
            receivers.setdefault(stream, set()).update(instance.hosts)
    for demand in instance.demands:
        receivers.setdefault(demand.stream, set()).update(demand.hosts)
    for host, stream in instance.needed:
        receivers.setdefault(stream, set()).add(host)
    if instance.hops > 1:
        for stream in receivers:
            receivers[stream].update(instance.hosts)
    return {s: (sorted(senders.get(s, ())), sorted(receivers[s])) for s in sorted(receivers)}


def _places(instance: Instance) -> list[Place]:
    return [(n, s) for s, (_, receivers) in _traffic(instance).items() for n in receivers] + sorted(
        instance.given
    )


def _sources(instance: Instance, model: Model, place: Place) -> Terms | None:
    """The runs that make a stream at its host; None where it is given."""
    if place in instance.given:
        return None
    host, stream = place
    makers = instance.problem.makers[stream].tolist()
    return [(model.runs[host, o], 1.0) for o in makers if (host, o) in model.runs]


def _availability(
    instance: Instance,
    model: Model,
    sources: dict[Place, Terms | None],
    arrivals: dict[tuple[int, int, int], Terms],
) -> None:
    problem = instance.problem
    for (host, stream), made in sources.items():
        ways = _ways(instance, sources, arrivals, (host, stream))
        if made is None:
            continue
        if len(ways) > 1:
            model.row(-INFINITY, ways, 1.0)  # C3: one provider
    for (host, operator), run in model.runs.items():  # III.5b
        for stream in problem.operators.inputs[operator].tolist():
            if (host, stream) not in instance.given:
                ways = _ways(instance, sources, arrivals, (host, stream))
                model.row(-INFINITY, [(run, 1.0), *negative(ways)], 0.0)
    for (sender, _, stream, hop), send in model.sends.items():  # III.5c
        if hop == 1:
            made = sources.get((sender, stream), [])
            if made is None:
                continue
            origin = made
        else:
            origin = arrivals.get((sender, stream, hop - 1), [])
        model.row(-INFINITY, [(send, 1.0), *negative(origin)], 0.0)


def _ways(
    instance: Instance,
    sources: dict[Place, Terms | None],
    arrivals: dict[tuple[int, int, int], Terms],
    place: Place,
) -> Terms:
    ways = list(sources.get(place) or [])
    for hop in range(1, instance.hops + 1):
        ways += arrivals.get((*place, hop), [])
    return ways


def _demands(
    instance: Instance,
    model: Model,
    sources: dict[Place, Terms | None],
    arrivals: dict[tuple[int, int, int], Terms],
) -> None:
    for place in sorted(instance.needed - instance.given):
        model.row(1.0, _ways(instance, sources, arrivals, place), INFINITY)
    for number, demand in enumerate(instance.demands):
        servers: Terms = [(model.serves[host, number], 1.0) for host in demand.hosts]
        model.row(1.0 if demand.required else 0.0, servers, 1.0)  # III.4b, IV.9
        for host in demand.hosts:  # III.4a
            place = (host, demand.stream)
            if place not in instance.given:
                ways = _ways(instance, sources, arrivals, place)
                model.row(-INFINITY, [(model.serves[host, number], 1.0), *negative(ways)], 0.0)


def negative(terms: Terms) -> Terms:
    return [(variable, -factor) for variable, factor in terms]


def scales(problem: Problem) -> tuple[float, float]:
    """λ₃ and λ₂: what one unit of CPU, and one bit per second, is of the whole system's."""
    cpu, bps = yardsticks(problem)
    return 1.0 / cpu if cpu > 0 else 0.0, 1.0 / bps if bps > 0 else 0.0


def chosen(model: Model, values: list[float]) -> tuple[list[Run], list[Send], dict[int, int]]:
    """What a solution runs and sends, and which host serves which demand."""
    runs = [Run(*key) for key, variable in model.runs.items() if values[variable] > 0.5]
    sends = [Send(*key[:3]) for key, variable in model.sends.items() if values[variable] > 0.5]
    serves = {n: host for (host, n), variable in model.serves.items() if values[variable] > 0.5}
    return runs, sends, serves
