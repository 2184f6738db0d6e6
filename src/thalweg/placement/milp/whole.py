"""The whole problem at once (SQPR, III.8): all queries, all hosts, nothing fixed.

For small problems, and to judge the planners that go query by query. Where links have no limits of
their own, the model has a few variables for each host and stream (`counted`). Where they have, it
has hosts² × streams, and a stream may be passed on once before it is used, which is no limit in
practice: with b copies that a host can send, b² hosts are reached.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.arrays import NONE
from thalweg.placement.ledger import Ledger
from thalweg.placement.milp.instance import Demand, Instance
from thalweg.placement.milp.solving import Limits, best_plan
from thalweg.placement.problem import Problem
from thalweg.placement.strategy import Options, Outcome, Refusal, Strategy

GAP = 1e-6
SECONDS = 600.0
LARGEST = 200_000  # variables; beyond, building the model alone takes minutes


Wish = tuple[int, int]  # (stream, proxy)


def wishes(problem: Problem) -> dict[Wish, list[int]]:
    """Equal wishes are one demand: the queries of each, in order."""
    queries = problem.queries
    found: dict[Wish, list[int]] = {}
    for query in range(len(queries)):
        wish = (int(queries.wanted[query]), int(queries.proxy[query]))
        found.setdefault(wish, []).append(query)
    return dict(sorted(found.items()))


def whole(problem: Problem, hops: int = 2) -> Instance:
    hosts = tuple(range(len(problem.hosts)))
    demands = tuple(
        Demand(stream, hosts if proxy == NONE else (proxy,), required=False, queries=len(askers))
        for (stream, proxy), askers in wishes(problem).items()
    )
    operators = {o for d in demands for o in abstract_plans(problem, d.stream).operators}
    based = np.flatnonzero(problem.streams.home != NONE)
    columns, link = problem.hosts, problem.hosts.link_bps
    return Instance(
        problem,
        hosts,
        tuple(sorted(operators)),
        frozenset((int(problem.streams.home[s]), int(s)) for s in based),
        demands,
        dict(enumerate(columns.cpu.tolist())),
        dict(enumerate(columns.out_bps.tolist())),
        dict(enumerate(columns.in_bps.tolist())),
        {}
        if link is None
        else {(h, m): float(link[h, m]) for h in hosts for m in hosts if np.isfinite(link[h, m])},
        hops,
    )


def plan(problem: Problem, options: Options) -> Outcome:
    _check(problem)
    limits = Limits(max(options.work_limit, 1), GAP, SECONDS)
    answer, plan = best_plan(whole(problem), options.weights, limits)
    assert plan is not None, "serving nobody is a solution, and HiGHS starts from it"
    ledger = Ledger(problem)
    for run in plan.runs:
        ledger.add_run(run)
    for send in plan.sends:
        ledger.add_send(send)
    for number, askers in enumerate(wishes(problem).values()):
        if number in plan.serves:
            for query in askers:
                ledger.serve(query, plan.serves[number])
    ledger.sweep(list(ledger.providers))  # within the gap, a solution may hold what it does not use
    proof = "the best there is" if answer.proven else "the best found within the work limit"
    left_out = sorted(set(range(len(problem.queries))) - set(ledger.server))
    refusals = (Refusal(q, "cpu or bandwidth", None, f"it is not in {proof}") for q in left_out)
    clock = ("the clock ended the search: another run may differ",) if answer.clock else ()
    return Outcome(ledger.deployment(), tuple(refusals), (f"this is {proof}", *clock))


def _check(problem: Problem) -> None:
    if np.isfinite(problem.queries.latency_bound_ms).any():
        raise ValueError("this model knows no latency: choose sqpr for queries with a bound")
    if problem.running is not None:
        raise ValueError("this model plans from nothing: leave `running` out, or choose sqpr")
    hosts = len(problem.hosts)
    ways = 3 * hosts if problem.hosts.link_bps is None else 2 * hosts**2
    size = ways * len(problem.streams)
    if size > LARGEST:
        raise ValueError(
            f"about {size:,} variables are too many for one model (at most {LARGEST:,}): "
            "choose sqpr, which plans query by query"
        )


MILP = Strategy("milp", "the whole problem in one model, for small problems", plan)
