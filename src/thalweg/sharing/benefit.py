"""What it saves to answer queries together (COSMOS 3.2: Σ C(Qᵢ) − C(Q)).

COSMOS counts C as the rate of the result stream; that is `saved_rows_per_s`, what need not be kept
or sent twice. Whether a merge is made is a matter of CPU: a representative may compute rows that no
member wants. CPU is what a tuple read, a row computed, a row matched with members and a row
delivered were measured to cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics, rows_per_s
from thalweg.sharing.representative import Representative, representative


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured CPU seconds each."""

    tuple_s: float  # a tuple of a stream is read
    row_s: float  # a row of a join is computed
    match_s: float  # the members that want a row of their representative are found
    delivery_s: float  # a row is delivered to a member


@dataclass(frozen=True, slots=True)
class Benefit:
    alone_rows_per_s: float
    shared_rows_per_s: float
    alone_cpu: float  # CPU seconds per second
    shared_cpu: float

    @property
    def saved_rows_per_s(self) -> float:
        return self.alone_rows_per_s - self.shared_rows_per_s

    @property
    def saved_cpu(self) -> float:
        return self.alone_cpu - self.shared_cpu

    @property
    def pays(self) -> bool:
        return self.saved_cpu > 0


def benefit(members: Sequence[Core], statistics: Statistics, costs: Costs) -> Benefit:
    """Of one group for all, against each for itself."""
    rows = [rows_per_s(m, statistics) for m in members]
    wanted = sum(rows)
    shared = rows_per_s(representative(members).to_core(), statistics)
    reading = costs.tuple_s * _tuples_per_s(members[0], statistics)
    delivery = costs.delivery_s * wanted
    return Benefit(
        wanted,
        shared,
        len(members) * reading + costs.row_s * wanted + delivery,
        reading + (costs.row_s + costs.match_s) * shared + delivery,
    )


def gain(rep: Representative, core: Core, statistics: Statistics, costs: Costs) -> float:
    """CPU seconds per second that are saved if a query joins a group instead of standing alone.

    The query's own matching and delivery are the same in both, and are left out.
    """
    before, after, own = (
        rows_per_s(c, statistics) for c in (rep.to_core(), rep.merged(core).to_core(), core)
    )
    alone = costs.tuple_s * _tuples_per_s(core, statistics) + costs.row_s * own
    return alone - (costs.row_s + costs.match_s) * (after - before)


def _tuples_per_s(core: Core, statistics: Statistics) -> float:
    return sum(statistics.rates[name] for name in {s.name for s in core.streams})
