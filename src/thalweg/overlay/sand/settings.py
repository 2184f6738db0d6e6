"""How often things are said again, and how long they hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandSettings:
    renew_every_us: int = 2_000_000
    lease_us: int = 10_000_000  # what is not said again for so long no longer holds
    measure_within_us: int = 2_000_000  # then a zone is placed with the distances that it has
    remeasure_every_us: int = 60_000_000  # for a probe may have been held up
    samples: int = 3  # of a way's last measurements, of which the least counts
    saving: float = 0.1  # of its present cost, for which a zone is placed anew as things drift

    def __post_init__(self) -> None:
        if min(self.renew_every_us, self.remeasure_every_us) < 1 or self.measure_within_us < 0:
            raise ValueError("a period takes some time, and a wait can't be negative")
        if self.samples < 1 or not 0 <= self.saving < 1:
            raise ValueError("a way is measured once or more, and a saving is a share below 1")
        if self.lease_us < 2 * self.renew_every_us:
            raise ValueError("a lease is two periods or more, else one lost message ends it")
