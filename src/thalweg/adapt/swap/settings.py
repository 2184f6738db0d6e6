"""What a site's eddies may be tuned by; results don't depend on any of it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.adapt.swap.policies.both import LotteryAndBackPressure
from thalweg.adapt.swap.policies.policy import PolicyMaker


@dataclass(frozen=True, slots=True)
class SwapSettings:
    batch_rows: int = 32  # that are routed together, and sent in one message
    window_rows: int = 128  # on the way to a site: the length of an RMO's queue
    pending_rows: int = 128  # made and not yet sent, before a node says that it has no room
    threshold_rows: int = 10  # virtual tuples that are told together
    beat_us: int = 250_000  # between two looks at what was not answered, and at frontiers
    policy: PolicyMaker = LotteryAndBackPressure
    managed: bool = False  # sites begin and end as the sink says, and results are kept until taken

    def __post_init__(self) -> None:
        sizes = (self.batch_rows, self.window_rows, self.pending_rows, self.threshold_rows)
        if min(*sizes, self.beat_us) < 1:
            raise ValueError(f"{self}: sizes and times are at least 1")
