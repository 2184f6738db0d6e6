"""Why a query can't be admitted: which resource is short, on which host.

The nearest plan is found by the same programme with capacities that may be exceeded at a high
price: it exceeds as little as it can, and what it exceeds is the answer.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.arrays import NONE
from thalweg.placement.ledger import SLACK, Ledger
from thalweg.placement.rows import Piece
from thalweg.placement.sqpr.offers import offer, withdraw
from thalweg.placement.sqpr.prices import Prices
from thalweg.placement.sqpr.reuse_rules import ReuseRule
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.sqpr.subset_dp import cheapest
from thalweg.placement.strategy import Refusal


def least_cpu(ledger: Ledger, plans: AbstractPlans) -> float:
    """What the query needs if every stream that runs anywhere could be had for nothing."""
    gamma = ledger.problem.operators.cpu
    running = np.asarray((ledger.available[list(plans.streams)] & ledger.alive).any(axis=1))
    need: dict[int, float] = {}
    for stream, runs in zip(plans.streams, running, strict=True):
        if runs:
            need[stream] = 0.0
            continue
        need[stream] = min(
            (float(gamma[o]) + sum(need[i] for i in plans.inputs[o]) for o in plans.makers[stream]),
            default=float("inf"),
        )
    return need[plans.wanted]


def cpu_is_short(ledger: Ledger, plans: AbstractPlans) -> bool:
    """Whether all hosts together have too little CPU left, wherever things would run."""
    slack = SLACK * float(ledger.problem.hosts.cpu.sum())
    return least_cpu(ledger, plans) > float(ledger.cpu_left[ledger.alive].sum()) + slack


def nearest(
    ledger: Ledger, plans: AbstractPlans, prices: Prices, reuse: ReuseRule, proxy: int
) -> Piece | None:
    """The plan that lacks least; None if a base stream is nowhere to be had."""
    return cheapest(ledger, plans, offer(ledger, prices, strict=False), reuse, proxy)


def nearest_plans(
    ledger: Ledger,
    plans: AbstractPlans,
    prices: Prices,
    reuse: ReuseRule,
    proxy: int,
    count: int,
) -> list[Piece]:
    """The nearest plan, and the next nearest that lack something else, on other hosts."""
    offered = offer(ledger, prices, strict=False)
    found: list[Piece] = []
    for _ in range(count):
        piece = cheapest(ledger, plans, offered, reuse, proxy)
        if piece is None or piece in found:
            break
        found.append(piece)
        for lack in shortages(ledger, piece):
            withdraw(offered, lack)
    return found


def refusal(
    ledger: Ledger,
    query: int,
    plans: AbstractPlans,
    prices: Prices,
    reuse: ReuseRule,
) -> Refusal:
    problem = ledger.problem
    proxy = int(problem.queries.proxy[query])
    need = least_cpu(ledger, plans)
    if need == float("inf"):
        return Refusal(query, "source", None, _lost(ledger, plans, proxy))
    if cpu_is_short(ledger, plans):
        left = float(ledger.cpu_left[ledger.alive].sum())
        detail = f"it needs {need:g} CPU, and all hosts together have {left:g} left"
        return Refusal(query, "cpu", None, detail)
    piece = nearest(ledger, plans, prices, reuse, proxy)
    if piece is None:
        return Refusal(query, "source", None, _lost(ledger, plans, proxy))
    short = shortages(ledger, piece)
    if not short:
        return Refusal(query, "work limit", None, "no plan was found that fits, nor one that lacks")
    worst = max(short, key=lambda lack: (lack.need - lack.left) / lack.need)
    names = problem.hosts.names
    where = (
        names[worst.host]
        if worst.target is None
        else (f"{names[worst.host]} to {names[worst.target]}")
    )
    unit = "CPU" if worst.resource == "cpu" else "bps"
    detail = (
        f"the nearest plan needs {worst.need:g} {unit} ({worst.resource}) at {where},"
        f" which has {max(worst.left, 0.0):g} left"
    )
    return Refusal(query, worst.resource, worst.host, detail)


def _lost(ledger: Ledger, plans: AbstractPlans, proxy: int) -> str:
    streams, hosts = ledger.problem.streams, ledger.problem.hosts
    bases = [s for s in sorted(plans.bases[plans.wanted]) if streams.home[s] != NONE]
    lost = [s for s in bases if not (ledger.available[s] & ledger.alive).any()]
    if lost:
        return f"no host has {_listed(streams.names, lost)}"
    if hosts.latency_ms is not None and not np.isfinite(hosts.latency_ms).all():
        to = "one host" if proxy == NONE else f"the proxy {hosts.names[proxy]}"
        return f"no way leads from {_listed(streams.names, bases)} to {to}: add a link"
    return "a pin can't be kept: its host is gone"


def _listed(names: tuple[str, ...], which: list[int]) -> str:
    return ", ".join(names[i] for i in which)
