"""One simulated machine: its disk, its clock, and whether it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack

PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """A machine's own time: wrong by an offset, and running fast or slow by parts per million."""

    offset_us: int = 0
    drift_ppm: int = 0

    def __post_init__(self) -> None:
        if self.drift_ppm <= -PPM:
            raise ValueError(f"a drift of {self.drift_ppm} ppm: a clock can't run backwards")

    def local_us(self, true_us: int) -> int:
        return true_us + self.offset_us + true_us * self.drift_ppm // PPM

    def true_delay_us(self, local_delay_us: int) -> int:
        """How long it really takes until this clock has advanced so far."""
        if not self.drift_ppm:
            return local_delay_us
        return local_delay_us * PPM // (PPM + self.drift_ppm)


class Timer(msgspec.Struct, eq=False):
    """One setting of a timer. Most are cancelled: the kernel then finds out at a glance."""

    host: Host
    protocol: str
    key: Hashable
    is_set: bool = True


TRUE_CLOCK = Clock()


@dataclass(slots=True, eq=False)
class Host:
    address: Address
    index: int  # where it is in the network
    clock: Clock = TRUE_CLOCK
    stack: Stack | None = None  # None while it is down
    lives: int = 0  # how often it was started
    disk: dict[str, dict[str, bytes]] = field(default_factory=dict)  # protocol -> key -> value
    timers: dict[tuple[str, Hashable], Timer] = field(default_factory=dict)  # those that are set
    gone: bool = False  # left for good
    paused: bool = False
    busy: bool = False  # a slow machine is at work on a step
    step_cost_us: int = 0  # above 0: slow
    # What came while it could not attend, in order: the action that would have been done.
    waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=deque)

    @property
    def is_up(self) -> bool:
        """Switched on; a paused machine is up, though it does nothing."""
        return self.stack is not None
