"""Numbers of the protocol. Those that the source gives are its own (COSMOS 6.3)."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.adapt.partners.selection import ORDERS

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    max1: int = 5  # partners that this node asked for
    max2: int = 3  # partners that asked for this node: ⌈max1 / 2⌉
    maximum_try: int = 4  # random nodes tried when neighbours don't suffice (Algorithm 6.1)
    kappa: float = 1.2
    alpha: float = 0.9
    round_us: int = _SECOND_US  # Δ
    order: str = "flow-aware"
    relieve: bool = True  # `requests.wish`: beyond the printed algorithm
    homing: bool = True  # `requests.homing`: beyond the source too
    least: float = 0.0  # load that is worth asking for: where all are idle nothing need move
    exported: float = 0.5  # of the load at a round's start, at most
    overloaded: float = 0.8  # with all partners above this, probe others
    probes: int = 3  # in a round
    explore_rounds: int = 3  # how often one random node is probed all the same; 0: never
    update_rounds: int = (
        10  # partners that are not answered by are replaced, and the set is redrawn
    )
    rest_rounds: int = 10  # a fragment that moved stays for so long
    lease_us: int = 4 * _SECOND_US  # for which an owner decides, without word from the home
    answer_us: int = _SECOND_US  # for an answer, before it is asked again

    def __post_init__(self) -> None:
        if self.max1 < 0 or self.max2 < 0:
            raise ValueError("numbers of partners can't be negative")
        if self.kappa <= 1:
            raise ValueError(f"κ = {self.kappa}: it is above 1")
        if not 0 <= self.alpha < 1:
            raise ValueError(f"α = {self.alpha}: it is in [0, 1)")
        if self.order not in ORDERS:
            raise ValueError(f"there is no order {self.order!r}: {', '.join(ORDERS)}")
        if not 0 < self.exported <= 1:
            raise ValueError("a node exports a share of its load in (0, 1] in a round")
        if self.least < 0:
            raise ValueError("the least load that is asked for can't be negative")
        if min(self.round_us, self.answer_us) < 1 or self.lease_us < 3 * self.round_us:
            raise ValueError("times are above 0, and a lease lasts for three rounds at least")

    @property
    def expiry_us(self) -> int:
        """When a lease is over for sure: clocks may run fast or slow by 2 % against each other."""
        return self.lease_us + self.lease_us // 8
