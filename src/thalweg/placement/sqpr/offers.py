"""What the programme may use of each host, and what it pays: prices with what is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.ledger import SLACK, Ledger
from thalweg.placement.rows import Shortage
from thalweg.placement.sqpr.prices import Prices

MISUSE = 1e6  # what using all of a host's capacity once too much costs, when that is allowed


@dataclass(slots=True, eq=False)
class Offer:
    prices: Prices
    cpu: Floats
    out_bps: Floats
    in_bps: Floats
    link_bps: Floats | None
    delay_price: float = 0.0  # per ms of each send
    strict: bool = True  # False: capacities may be exceeded, at a price that no plan would pay


def offer(ledger: Ledger, prices: Prices, *, strict: bool = True) -> Offer:
    hosts = ledger.problem.hosts
    return Offer(
        prices,
        ledger.cpu_left + SLACK * hosts.cpu,
        ledger.out_left + SLACK * hosts.out_bps,
        ledger.in_left + SLACK * hosts.in_bps,
        None if ledger.link_left is None else ledger.link_left + SLACK,
        strict=strict,
    )


def limited(cost: Floats, need: Floats | float, left: Floats, strict: bool) -> Floats:
    if strict:
        return np.where(need > left, np.inf, cost)
    excess = np.maximum(need - left, 0.0)
    return cost + MISUSE * (excess / np.maximum(left + excess, 1e-12))


def offer_less(offered: Offer, short: list[Shortage]) -> None:
    for lack in short:
        if lack.resource == "link":
            assert offered.link_bps is not None
            offered.link_bps[lack.host, lack.target] /= 2
        else:
            _column(offered, lack.resource)[lack.host] /= 2


def withdraw(offered: Offer, lack: Shortage) -> None:
    """Offer none of what was short, where it was short."""
    if lack.resource == "link":
        assert offered.link_bps is not None
        offered.link_bps[lack.host, lack.target] = 0.0
    else:
        _column(offered, lack.resource)[lack.host] = 0.0


def _column(offered: Offer, resource: str) -> Floats:
    return {
        "cpu": offered.cpu,
        "bandwidth out": offered.out_bps,
        "bandwidth in": offered.in_bps,
    }[resource]
