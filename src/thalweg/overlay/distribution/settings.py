"""How a node takes part in query distribution, and how long it waits for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    capability: float = 1.0
    slack: float = 0.1  # of a provider's share of the load
    beat_us: int = 1_000_000  # reports and renewals
    lease_us: int = 3_000_000
    silent_us: int = 8_000_000  # after that, a proxy takes an owner for lost
    orphaned_us: int = 10_000_000  # after that, the root looks after one whose proxy is gone
    round_us: int = 4_000_000  # between rounds of redistribution; 200 s in the source
    answer_within_us: int = 1_000_000
    tries: int = 3  # of one grant

    def __post_init__(self) -> None:
        if self.capability < 0 or self.slack < 0:
            raise ValueError("a capability or a slack can't be negative")
        if not 0 < 2 * self.beat_us <= self.lease_us < self.silent_us:
            raise ValueError("a lease lasts two beats or more, and ends before an owner is lost")
        if min(self.round_us, self.answer_within_us, self.tries, self.orphaned_us) < 1:
            raise ValueError("periods, times to wait and tries must be above 0")
