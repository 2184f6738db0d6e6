"""Times of the tree protocol. Rounds and windows are the source's (COSMOS 4.4.1)."""

from __future__ import annotations

from dataclasses import dataclass

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class TreeTimes:
    round_us: int | None = 200 * _SECOND_US  # adaptation; None: somebody else says who moves
    window_us: int = 50 * _SECOND_US  # information collection
    beat_us: int = 1 * _SECOND_US
    lease_us: int = 4 * _SECOND_US  # without a beat, a parent or child is lost
    stale_us: int = 12 * _SECOND_US  # without news of the home, the way to it is
    join_us: int = 1 * _SECOND_US  # for an answer to a Join
    wait_us: int = 3 * _SECOND_US  # for acknowledgements
    move_us: int = 4 * _SECOND_US  # for one node to change its publisher
    hold_us: int = 20 * _SECOND_US  # for the one who holds to be done
    tau: float = 0.2  # what has changed by less is not told
    least_gain: float = 0.0  # of what is lost on links; more means fewer moves, and a worse tree

    def __post_init__(self) -> None:
        round_us = 1 if self.round_us is None else self.round_us
        if min(round_us, self.window_us, self.beat_us, self.join_us, self.move_us) < 1:
            raise ValueError("times must be above 0")
        if not self.beat_us < self.lease_us < self.stale_us:
            raise ValueError("a lease is longer than a beat, and news of the home older than both")
        if self.hold_us < self.wait_us + 2 * self.move_us:
            raise ValueError("who is held must outlast a wait and two moves")
        if self.tau < 0 or self.least_gain < 0:
            raise ValueError("τ and the least gain can't be negative")
