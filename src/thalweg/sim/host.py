"""One simulated machine: its disk, its clock, and whether it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from thalweg.overlay.driving import Machine
from thalweg.overlay.protocol import Message

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


TRUE_CLOCK = Clock()


@dataclass(slots=True, eq=False)
class Host(Machine):
    index: int = 0  # where it is in the network
    clock: Clock = TRUE_CLOCK
    disk: dict[str, dict[str, bytes]] = field(default_factory=dict)  # protocol -> key -> value
    gone: bool = False  # left for good
    paused: bool = False
    busy: bool = False  # a slow machine is at work on a step
    step_cost_us: int = 0  # above 0: slow
    heard: tuple[str, Message] | None = None  # protocol and message, the last that it has heard
    # What came while it could not attend, in order: the action that would have been done.
    waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=deque)

    def switch_off(self) -> None:
        Machine.switch_off(self)
        self.waiting.clear()
        self.paused = self.busy = False
        self.heard = None
