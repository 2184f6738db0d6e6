"""What every driver of stacks does, in simulated time and live: machines, timers, effects in order.

A driver turns what happens into events, one step at a time, and carries out what the step wants.
How a message travels, who rings when a timer is due and what a disk is differs from driver to
driver: these are its `Hands`. All else is here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from thalweg.overlay.generator import seed_of
from thalweg.overlay.protocol import (
    Address,
    CancelTimer,
    Deliver,
    Message,
    Persist,
    Send,
    SetTimer,
)
from thalweg.overlay.stack import Effects, Stack


class Timer(msgspec.Struct, eq=False):
    """One setting of a timer. Most are cancelled: a driver then finds out at a glance."""

    machine: Any  # the driver's own kind of machine
    protocol: str
    key: Hashable
    is_set: bool = True


@dataclass(slots=True, eq=False)
class Machine:
    """Where one stack runs, life after life."""

    address: Address
    stack: Stack | None = None  # None while it is down
    lives: int = 0  # how often it was started
    timers: dict[tuple[str, Hashable], Timer] = field(default_factory=dict)  # those that are set

    @property
    def is_up(self) -> bool:
        """Switched on; a machine that stands still for a while is up, though it does nothing."""
        return self.stack is not None

    def switch_on(
        self, stack: Stack, now_us: int, seed: int, persisted: Mapping[str, Mapping[str, bytes]]
    ) -> Effects:
        """A new life, with random numbers of its own."""
        self.stack = stack
        self.lives += 1
        life_seed = seed_of(seed, self.address, self.lives)
        return stack.start(now_us, self.address, life_seed, persisted)

    def switch_off(self) -> None:
        """Memory and timers are gone."""
        self.stack = None
        for timer in self.timers.values():
            timer.is_set = False
        self.timers.clear()

    def expired(self, timer: Timer) -> None:
        """It fires now: the same key may be set anew in the step that this causes."""
        timer.is_set = False
        del self.timers[timer.protocol, timer.key]


M = TypeVar("M", bound=Machine, contravariant=True)


class Hands(Protocol[M]):
    """What a driver can do for a machine."""

    def send(self, machine: M, protocol: str, to: Address, message: Message) -> None: ...

    def wake(self, machine: M, timer: Timer, after_us: int) -> None:
        """Call at its time, unless it is no longer set by then."""

    def persist(self, machine: M, protocol: str, effect: Persist) -> None:
        """Durable before anything that is sent or delivered after this call leaves."""

    def deliver(self, machine: M, protocol: str, value: object) -> None: ...


def carry_out(hands: Hands[M], machine: M, effects: Effects) -> None:
    """What one step wants, in its order."""
    for protocol, effect in effects:
        kind = type(effect)  # told apart by type: this is among the busiest of loops
        if kind is Send:
            hands.send(machine, protocol, effect.to, effect.message)  # type: ignore[union-attr]
        elif kind is SetTimer:
            _set_timer(hands, machine, protocol, effect)  # type: ignore[arg-type]
        elif kind is CancelTimer:
            _cancel(machine, protocol, effect.key)  # type: ignore[union-attr]
        elif kind is Persist:
            hands.persist(machine, protocol, effect)  # type: ignore[arg-type]
        elif kind is Deliver:
            hands.deliver(machine, protocol, effect.value)  # type: ignore[union-attr]
        else:
            raise TypeError(f"{protocol} at {machine.address} returned no effect: {effect!r}")


def _set_timer(hands: Hands[M], machine: M, protocol: str, effect: SetTimer) -> None:
    if effect.after_us < 0:
        raise ValueError(
            f"{protocol} at {machine.address} set timer {effect.key!r} "
            f"for {effect.after_us} µs from now: a delay can't be negative"
        )
    _cancel(machine, protocol, effect.key)
    timer = machine.timers[protocol, effect.key] = Timer(machine, protocol, effect.key)
    hands.wake(machine, timer, effect.after_us)


def _cancel(machine: Machine, protocol: str, key: Hashable) -> None:
    timer = machine.timers.pop((protocol, key), None)
    if timer is not None:
        timer.is_set = False
