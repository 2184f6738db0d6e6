"""Adaptive replanning (SQPR, section IV-B).

Estimates err, and rates change. Queries whose measured use of CPU or network differs from what was
planned by more than a threshold, or that rest on a host which is short of something, are taken out
and planned again on the measured problem; the rest stays. The difference is a list of migrations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Flags, Floats
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.ledger import Ledger
from thalweg.placement.migrations import Migration, migrations
from thalweg.placement.problem import Problem
from thalweg.placement.rows import Run
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.strategy import Options, Refusal


@dataclass(frozen=True, slots=True)
class Replan:
    deployment: Deployment
    migrations: tuple[Migration, ...]
    replanned: tuple[int, ...]  # the queries that were taken out
    refusals: tuple[Refusal, ...]  # those among them for which there is no room any more


def replan(
    planned: Problem,
    measured: Problem,
    running: Deployment,
    threshold: float = 0.2,
    options: Options | None = None,
) -> Replan:
    """`planned` and `measured` differ in rates, costs and capacities only.

    A query that was taken out and finds no room is refused, with the reason: what runs must fit
    what was measured.
    """
    _check_alike(planned, measured)
    taken_out = drifted(planned, measured, running, threshold) | starved(measured, running)
    planner = Sqpr(measured.with_running(running), options)
    planner.remove(sorted(taken_out))
    decision = planner.submit(sorted(taken_out))
    after = planner.deployment()
    return Replan(
        after,
        migrations(measured, running, after),
        tuple(sorted(taken_out)),
        decision.refusals,
    )


def drifted(planned: Problem, measured: Problem, running: Deployment, threshold: float) -> set[int]:
    """Queries whose use differs from the estimate by more than the threshold, as a share of it."""
    ledger = Ledger(planned, running)
    found = set()
    for query in ledger.server:
        rows = [ledger.providers[p] for p in ledger.upstream(ledger.result_of(query))]
        runs = [row.operator for row in rows if isinstance(row, Run)]
        sent = [row.stream for row in rows if not isinstance(row, Run)]
        sent.append(int(planned.queries.wanted[query]))
        for before, now, which in (
            (planned.operators.cpu, measured.operators.cpu, runs),
            (planned.streams.rate_bps, measured.streams.rate_bps, sent),
        ):
            expected, observed = float(before[which].sum()), float(now[which].sum())
            if abs(observed - expected) > threshold * expected:
                found.add(query)
    return found


def starved(measured: Problem, running: Deployment) -> set[int]:
    """Queries that rest on a host with more to do than it can.

    One after another is listed, the latest arrivals first, until the rest fits: those who came
    first are disturbed last.
    """
    ledger = Ledger(measured, running)
    found: set[int] = set()
    for query in sorted(ledger.server, reverse=True):
        short = _overloaded(ledger)
        if not short:
            break
        places = ledger.upstream(ledger.result_of(query))
        hosts = {ledger.server[query], *(host for host, _ in places)}
        hosts |= {p[0] for place in places for p in ledger.inputs_of(ledger.providers[place])}
        if hosts & short:
            place = ledger.result_of(query)
            ledger.unserve(query)
            ledger.sweep([place])
            found.add(query)
    return found


def _overloaded(ledger: Ledger) -> set[int]:
    hosts = ledger.problem.hosts
    load = load_of(ledger.problem, ledger.deployment())
    over = (
        _exceeds(load.cpu, hosts.cpu)
        | _exceeds(load.out_bps, hosts.out_bps)
        | _exceeds(load.in_bps, hosts.in_bps)
    )
    found = set(np.flatnonzero(over).tolist())
    if ledger.link_left is not None and hosts.link_bps is not None:
        links = np.argwhere(ledger.link_left < -1e-9 * hosts.link_bps)
        found |= {int(h) for pair in links for h in pair}
    return found


def _exceeds(used: Floats, capacity: Floats) -> Flags:
    over: Flags = used > capacity * (1 + 1e-9)
    return over


def _check_alike(planned: Problem, measured: Problem) -> None:
    for column in ("hosts", "streams", "operators", "queries"):
        if getattr(planned, column).names != getattr(measured, column).names:
            raise ValueError(f"the measured problem has other {column} than the planned one")
    if not np.array_equal(planned.queries.wanted, measured.queries.wanted):
        raise ValueError("the measured problem's queries want other streams")
