"""PR is what balancing is for (COSMOS 6.1): what a move would make of it, as far as a giver sees.

The source approaches PR_max by heuristics: equal loads (they make PPR_max least), few nodes for a
query, little traffic. This is the check behind them: a fragment whose own work is so small that one
hop more would make it the worst of all is better off where it waits.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.partners.ratios import mm1

_FULL = 0.98  # loads above count as this: a queue that grows has no slowdown


class Ratio(msgspec.Struct, frozen=True):
    """Of a fragment, as measured: PR is the sum of the two; the work in a result, in seconds."""

    ppr: float
    cpr: float
    work_s: float

    @property
    def pr(self) -> float:
        return self.ppr + self.cpr


def foreseen(
    ratio: Ratio, load_here: float, load_there: float, more_hops: int, hop_s: float
) -> Ratio:
    """At a node with that load (this fragment's included): waiting changes as queues' slowdowns do,
    and each hop more or less takes its time."""
    waits = ratio.ppr * mm1(min(load_there, _FULL)) / mm1(min(load_here, _FULL))
    hops = 0.0 if ratio.work_s <= 0 else more_hops * hop_s / ratio.work_s
    return Ratio(waits, max(0.0, ratio.cpr + hops), ratio.work_s)


def helps(before: Ratio, after: Ratio, worst: float) -> bool:
    """Whether no new worst comes of it: `worst` is PR_max at the giver."""
    return after.pr <= max(worst, before.pr)
