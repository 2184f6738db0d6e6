"""The mixed integer linear programme of SQPR (III.1 to III.8), in a tight form.

Variables are those of (III.1), fewer: z says that a host runs an operator, x that a host sends a
stream to another, d that a host serves a demand. Availability (y) is what provides a stream: at
most one of a run, a send and what is given. Potentials with a big M (III.7) relax badly; instead,
sends are counted by hops: a send of hop 1 starts where the stream is made or given, a
send of hop k where hop k − 1 arrived. No stream can then feed itself, and no M is needed. Only
sends to where a stream could be used exist at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights
from thalweg.placement.milp.instance import Instance
from thalweg.placement.rows import Place, Run, Send

Terms = list[tuple[int, float]]  # (variable, factor)


@dataclass(slots=True)
class Model:
    """Binary variables but for the last, if `busiest` is one; rows are lower ≤ Σ terms ≤ upper."""

    costs: list[float] = field(default_factory=list)
    rows: list[tuple[float, Terms, float]] = field(default_factory=list)
    runs: dict[tuple[int, int], int] = field(default_factory=dict)  # z[host, operator]
    sends: dict[tuple[int, int, int, int], int] = field(default_factory=dict)  # x[h, m, s, hop]
    serves: dict[tuple[int, int], int] = field(default_factory=dict)  # d[host, demand]
    busiest: int | None = None  # O₄, continuous

    def binary(self, cost: float) -> int:
        self.costs.append(cost)
        return len(self.costs) - 1

    def row(self, lower: float, terms: Terms, upper: float) -> None:
        self.rows.append((lower, terms, upper))


INFINITY = float("inf")


def build(instance: Instance, weights: Weights) -> Model:
    model = Model()
    _variables(instance, weights, model)
    sources = {p: _sources(instance, model, p) for p in _places(instance)}
    arrivals: dict[tuple[int, int, int], Terms] = {}  # by host, stream and hop
    for (_, target, stream, hop), variable in model.sends.items():
        arrivals.setdefault((target, stream, hop), []).append((variable, 1.0))
    _availability(instance, model, sources, arrivals)
    _demands(instance, model, sources, arrivals)
    _capacities(instance, weights, model)
    return model


def _variables(instance: Instance, weights: Weights, model: Model) -> None:
    problem = instance.problem
    cpu_scale = _inverse(float(problem.hosts.cpu.sum()))
    bps_scale = _inverse(float(problem.hosts.out_bps.sum()))
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
                model.row(-INFINITY, [(run, 1.0), *_negative(ways)], 0.0)
    for (sender, _, stream, hop), send in model.sends.items():  # III.5c
        if hop == 1:
            made = sources.get((sender, stream), [])
            if made is None:
                continue
            origin = made
        else:
            origin = arrivals.get((sender, stream, hop - 1), [])
        model.row(-INFINITY, [(send, 1.0), *_negative(origin)], 0.0)


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
    for number, demand in enumerate(instance.demands):
        servers: Terms = [(model.serves[host, number], 1.0) for host in demand.hosts]
        model.row(1.0 if demand.required else 0.0, servers, 1.0)  # III.4b, IV.9
        for host in demand.hosts:  # III.4a
            place = (host, demand.stream)
            if place not in instance.given:
                ways = _ways(instance, sources, arrivals, place)
                model.row(-INFINITY, [(model.serves[host, number], 1.0), *_negative(ways)], 0.0)


def _capacities(instance: Instance, weights: Weights, model: Model) -> None:
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
            _capacity(model, terms, left[host])
    for pair, terms in link.items():
        if pair in instance.link_left:
            _capacity(model, terms, instance.link_left[pair])
    if weights.balance > 0:
        _balance(instance, weights, model, cpu)


def _capacity(model: Model, terms: Terms, left: float) -> None:
    """Scaled to 1, so that CPU and bits per second mean the same to the solver's tolerances."""
    if left == INFINITY or sum(factor for _, factor in terms) <= left:
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


def _balance(instance: Instance, weights: Weights, model: Model, cpu: dict[int, Terms]) -> None:
    """O₄: one variable above every host's utilisation."""
    capacity = instance.problem.hosts.cpu
    model.busiest = model.binary(weights.balance)
    for host, terms in cpu.items():
        whole = float(capacity[host])
        if 0 < whole < INFINITY:
            used = 1.0 - instance.cpu_left[host] / whole
            loads = [(v, -f / whole) for v, f in terms]
            model.row(used, [(model.busiest, 1.0), *loads], INFINITY)


def _negative(terms: Terms) -> Terms:
    return [(variable, -factor) for variable, factor in terms]


def _inverse(total: float) -> float:
    return 1.0 / total if 0 < total < INFINITY else 0.0


def chosen(model: Model, values: list[float]) -> tuple[list[Run], list[Send], dict[int, int]]:
    """What a solution runs and sends, and which host serves which demand."""
    runs = [Run(*key) for key, variable in model.runs.items() if values[variable] > 0.5]
    sends = [Send(*key[:3]) for key, variable in model.sends.items() if values[variable] > 0.5]
    serves = {n: host for (host, n), variable in model.serves.items() if values[variable] > 0.5}
    return runs, sends, serves
