"""Which sub-joins will be wanted again: rules that break ties between join orders.

Join orders cost about the same, and differ in what later queries can reuse. SQPR's objective does
not see that: left to itself, it goes from base stream to base stream, which sends least, and leaves
joins of three behind that hardly anybody else wants (docs/experiments/sqpr-reuse.md). A rule takes
a share off the price of making a stream:

- `forecast`: base streams are counted as queries come; a join's chance to appear in the next query
  is estimated by the product of its base streams' frequencies, which is known long before the join
  itself has been seen often. That rests on the workload staying as it is.
- `pairs`: joins of two, whatever was asked before. They fit into more queries than any larger join.
- `none`: the objective alone, as in the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from thalweg.placement.abstract import AbstractPlans

HORIZON = 100  # queries to look ahead
DISCOUNT = 0.5  # the share of an operator's price that a sure reuse takes off


class ReuseRule(Protocol):
    def see(self, plans: AbstractPlans) -> None:
        """A query has come."""
        ...

    def discount(self, plans: AbstractPlans, stream: int) -> float:
        """What to take off the price of making this stream."""
        ...


@dataclass(slots=True)
class ReuseForecast:
    seen: int = 0
    counts: dict[int, int] = field(default_factory=dict)  # base stream -> queries over it

    def see(self, plans: AbstractPlans) -> None:
        self.seen += 1
        for stream in plans.bases[plans.wanted]:
            self.counts[stream] = self.counts.get(stream, 0) + 1

    def discount(self, plans: AbstractPlans, stream: int) -> float:
        expected = float(HORIZON)
        for base in plans.bases[stream]:
            expected *= self.counts.get(base, 0) / max(self.seen, 1)
        return DISCOUNT * min(1.0, expected)


@dataclass(frozen=True, slots=True)
class SmallJoins:
    def see(self, plans: AbstractPlans) -> None:
        pass

    def discount(self, plans: AbstractPlans, stream: int) -> float:
        """The wanted stream is made in any case; a discount on it would decide nothing."""
        small = stream != plans.wanted and len(plans.bases[stream]) == 2
        return DISCOUNT if small else 0.0


@dataclass(frozen=True, slots=True)
class NoRule:
    def see(self, plans: AbstractPlans) -> None:
        pass

    def discount(self, plans: AbstractPlans, stream: int) -> float:
        return 0.0


RULES: dict[str, type[ReuseForecast] | type[SmallJoins] | type[NoRule]] = {
    "forecast": ReuseForecast,
    "pairs": SmallJoins,
    "none": NoRule,
}


def reuse_rule(name: str) -> ReuseRule:
    """By its name in `Options.reuse`."""
    return RULES[name]()
