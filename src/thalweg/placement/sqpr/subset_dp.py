"""The exact dynamic programme for one query: sub-joins × hosts.

In the way of Dreyfus and Wagner's Steiner trees: the cheapest way to have stream s at host h is the
cheapest of having it there already, making it there by one of its operators from inputs that are
brought to h, and receiving it from the host where it is cheapest to have and to send. Streams are
taken inputs first, and all hosts at once as a vector. Prices being fixed, the plan found is the
cheapest tree over all join orders and all hosts; what runs already is free.

A step is allowed if its host can carry it together with the steps below it *at the same host*. What
a plan takes in all of a host is checked at the end: where that is too much, the host is offered
with less, and the programme runs again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.arrays import NONE, Flags, Floats, Ints
from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Piece, Run, Send
from thalweg.placement.sqpr.offers import Offer, limited, offer, offer_less
from thalweg.placement.sqpr.prices import Prices
from thalweg.placement.sqpr.reuse_rules import ReuseRule
from thalweg.placement.sqpr.shortages import shortages

HERE, RECEIVED = -1, -2  # how a stream comes to a host, where no operator's number says it
ATTEMPTS = 4


@dataclass(slots=True, eq=False)
class _Ways:
    """For one stream, host by host: the cheapest way to have it, and what it takes there."""

    cost: Floats
    cpu: Floats
    in_bps: Floats
    how: Ints  # HERE, RECEIVED, or the operator that makes it
    sender: Ints

    def improve(
        self,
        better: Flags,
        cost: Floats,
        cpu: Floats | float,
        in_bps: Floats | float,
        how: int,
        sender: Ints | int | None = None,
    ) -> None:
        """Where it is better; without a sender, nobody sends."""
        np.copyto(self.cost, cost, where=better)
        np.copyto(self.cpu, cpu, where=better)
        np.copyto(self.in_bps, in_bps, where=better)
        np.copyto(self.how, how, where=better)
        if sender is not None:
            np.copyto(self.sender, sender, where=better)


def plan_query(
    ledger: Ledger,
    plans: AbstractPlans,
    prices: Prices,
    reuse: ReuseRule,
    proxy: int = NONE,
    delay_price: float = 0.0,
) -> Piece | None:
    """The cheapest piece that fits what is left, or None if the programme finds none."""
    offered = offer(ledger, prices)
    offered.delay_price = delay_price
    for _ in range(ATTEMPTS):
        piece = cheapest(ledger, plans, offered, reuse, proxy)
        if piece is None:
            return None
        short = shortages(ledger, piece)
        if not short:
            return piece
        offer_less(offered, short)
    return None


def cheapest(
    ledger: Ledger,
    plans: AbstractPlans,
    offered: Offer,
    reuse: ReuseRule,
    proxy: int = NONE,
) -> Piece | None:
    rate = ledger.problem.streams.rate_bps
    ways: dict[int, _Ways] = {}
    for stream in plans.streams:
        found = _present(ledger, stream)
        _make(ledger, plans, stream, ways, found, offered, reuse.discount(plans, stream))
        _spread(ledger, found, float(rate[stream]), offered)
        ways[stream] = found
    wanted = plans.wanted
    need = float(rate[wanted])
    total = ways[wanted].cost + need * offered.prices.out_bps
    total = limited(total, need, offered.out_bps, offered.strict)
    host = proxy if proxy != NONE else int(total.argmin())
    if not np.isfinite(total[host]):
        return None
    return _piece(plans, ways, host)


def _present(ledger: Ledger, stream: int) -> _Ways:
    here = ledger.available[stream] & ledger.alive
    hosts = len(here)
    return _Ways(
        np.where(here, 0.0, np.inf),
        np.zeros(hosts),
        np.zeros(hosts),
        np.full(hosts, HERE, np.int32),
        np.full(hosts, NONE, np.int32),
    )


def _make(
    ledger: Ledger,
    plans: AbstractPlans,
    stream: int,
    ways: dict[int, _Ways],
    found: _Ways,
    offered: Offer,
    discount: float,
) -> None:
    operators = ledger.problem.operators
    price = offered.prices.cpu * (1.0 - discount)
    for operator in plans.makers[stream]:
        first, *others = (ways[i] for i in plans.inputs[operator])
        gamma = float(operators.cpu[operator])
        cost, cpu, in_bps = first.cost + gamma * price, first.cpu + gamma, first.in_bps
        for other in others:
            cost, cpu, in_bps = cost + other.cost, cpu + other.cpu, in_bps + other.in_bps
        if offered.strict:  # what does not fit is not better, whatever it costs
            better = (cost < found.cost) & (cpu <= offered.cpu)
            better &= in_bps <= offered.in_bps
        else:
            cost = limited(cost, cpu, offered.cpu, strict=False)
            cost = limited(cost, in_bps, offered.in_bps, strict=False)
            better = cost < found.cost
        better &= ledger.alive
        pinned = int(operators.pinned[operator])
        if pinned != NONE:
            better &= np.arange(len(price)) == pinned
        found.improve(better, cost, cpu, in_bps, operator)


def _spread(ledger: Ledger, found: _Ways, rate: float, offered: Offer) -> None:
    hosts = ledger.problem.hosts
    if offered.link_bps is None and (hosts.latency_ms is None or offered.delay_price == 0.0):
        _spread_from_best(ledger, found, rate, offered)
    else:
        _spread_by_links(ledger, found, rate, offered)


def _spread_from_best(ledger: Ledger, found: _Ways, rate: float, offered: Offer) -> None:
    """All links being alike, one host is the best sender for everyone, and no relay helps."""
    leaving = found.cost + rate * offered.prices.out_bps
    leaving = limited(leaving, rate, offered.out_bps, offered.strict)
    sender = int(leaving.argmin())
    if not np.isfinite(leaving[sender]):
        return
    cost = leaving[sender] + rate * offered.prices.in_bps
    cost = limited(cost, rate, offered.in_bps, offered.strict)
    better = (cost < found.cost) & ledger.alive
    better[sender] = False
    found.improve(better, cost, 0.0, rate, RECEIVED, sender)


def _spread_by_links(ledger: Ledger, found: _Ways, rate: float, offered: Offer) -> None:
    """Each receiver has its own best sender, and a relay may get round a full link."""
    hosts = ledger.problem.hosts
    link = np.zeros((len(hosts), len(hosts)))
    if offered.link_bps is not None and offered.prices.link_bps is not None:
        link = link + rate * offered.prices.link_bps
        link = limited(link, rate, offered.link_bps, offered.strict)
    if hosts.latency_ms is not None:
        way = np.isfinite(hosts.latency_ms)  # where none leads, nothing can be sent at any price
        link = link + np.where(
            way, offered.delay_price * np.where(way, hosts.latency_ms, 0), np.inf
        )
    np.fill_diagonal(link, np.inf)
    into = limited(rate * offered.prices.in_bps, rate, offered.in_bps, offered.strict)
    count = len(hosts)
    for _ in range(count):  # as many rounds as a way has hops; mostly one or two
        leaving = found.cost + rate * offered.prices.out_bps
        leaving = limited(leaving, rate, offered.out_bps, offered.strict)
        through = leaving[:, None] + link
        sender = through.argmin(axis=0).astype(np.int32)
        cost = through[sender, np.arange(count)] + into
        better = (cost < found.cost) & ledger.alive
        if not better.any():
            return
        found.improve(better, cost, 0.0, rate, RECEIVED, sender)


def _piece(plans: AbstractPlans, ways: dict[int, _Ways], host: int) -> Piece:
    runs: list[Run] = []
    sends: list[Send] = []
    seen: set[tuple[int, int]] = set()
    stack = [(plans.wanted, host)]
    while stack:
        stream, at = stack.pop()
        if (stream, at) in seen:
            continue
        seen.add((stream, at))
        how = int(ways[stream].how[at])
        if how == RECEIVED:
            sender = int(ways[stream].sender[at])
            sends.append(Send(sender, at, stream))
            stack.append((stream, sender))
        elif how != HERE:
            runs.append(Run(at, how))
            stack += [(i, at) for i in plans.inputs[how]]
    return Piece(plans.wanted, host, tuple(runs), tuple(sends))
