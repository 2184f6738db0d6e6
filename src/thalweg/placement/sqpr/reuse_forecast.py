"""Which streams will be wanted again: a forecast from the queries seen so far.

Of two join orders that cost the same, the one whose sub-join other queries will ask for is the
better one. Base streams are counted as queries come; a join's chance to appear in the next query is
estimated by the product of its base streams' frequencies, which is known long before the join
itself has been seen often.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.placement.abstract import AbstractPlans

HORIZON = 100  # queries to look ahead
DISCOUNT = 0.5  # the share of an operator's price that a sure reuse takes off


@dataclass(slots=True)
class ReuseForecast:
    seen: int = 0
    counts: dict[int, int] = field(default_factory=dict)  # base stream -> queries over it

    def see(self, plans: AbstractPlans) -> None:
        self.seen += 1
        for stream in plans.bases[plans.wanted]:
            self.counts[stream] = self.counts.get(stream, 0) + 1

    def discount(self, plans: AbstractPlans, stream: int) -> float:
        """What to take off the price of making this stream."""
        expected = float(HORIZON)
        for base in plans.bases[stream]:
            expected *= self.counts.get(base, 0) / max(self.seen, 1)
        return DISCOUNT * min(1.0, expected)
