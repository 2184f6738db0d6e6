"""IDLE, WAIT and HOLD: trees that share nodes adapt one at a time where they meet.

Source: COSMOS (seed 000) 4.3.2, Algorithms 4.4 to 4.6. Who gets a token asks its children of
that tree to hold still, and adapts when all have acknowledged, if nobody holds the node itself. A
child that waits for acknowledgements itself holds still only for a higher number than its own.

As printed this can deadlock, though theorem 4.2 says otherwise. Its proof looks at nodes that wait
for an acknowledgement. A node that is held waits too, for a token: q holds c and waits for p; p,
whose number is higher, waits for c; c waits for q's token. (`tests/overlay/trees/test_holding.py`
plays it.) Numbers alone don't help, and messages and nodes may be lost besides. So both kinds of
waiting have leases: who waits for `wait_us` goes on with those that have acknowledged, and who is
held for `hold_us` is held no longer. Nothing but an adaptation is missed by that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from thalweg.overlay.protocol import Address
from thalweg.overlay.trees.stream import Tree


class State(StrEnum):
    IDLE = "idle"
    WAIT = "wait"
    HOLD = "hold"


class AskToHold(NamedTuple):
    to: Address
    tree: Tree
    round: int


class Acknowledge(NamedTuple):
    to: Address
    tree: Tree
    round: int


class Adapt(NamedTuple):
    """All children that take part hold still now."""

    tree: Tree
    round: int
    children: tuple[Address, ...]


Action = AskToHold | Acknowledge | Adapt


@dataclass(slots=True)
class _Wait:
    round: int
    since_us: int
    missing: list[Address]
    acknowledged: list[Address] = field(default_factory=list)


class _Held(NamedTuple):
    tree: Tree
    round: int
    by: Address
    since_us: int


class _Asked(NamedTuple):
    sender: Address
    tree: Tree
    round: int
    number: int
    since_us: int


class Holding:
    def __init__(self, number: int, wait_us: int, hold_us: int) -> None:
        self.number = number  # NUM
        self._wait_us, self._hold_us = wait_us, hold_us
        self._waits: dict[Tree, _Wait] = {}
        self._adapting: dict[Tree, int] = {}  # -> since when
        self._ready: list[tuple[Tree, _Wait]] = []
        self._tokens: list[tuple[Tree, int, tuple[Address, ...]]] = []
        self._holds: list[_Asked] = []
        self._held: _Held | None = None
        self._last_round: dict[Tree, int] = {}

    @property
    def state(self) -> State:
        if self._held is not None:
            return State.HOLD
        return State.WAIT if self._waits or self._adapting else State.IDLE

    def waits_since(self) -> int | None:
        """The oldest thing that somebody here waits for."""
        found = [w.since_us for w in self._waits.values()] + list(self._adapting.values())
        if self._held is not None:
            found.append(self._held.since_us)
        return min(found, default=None)

    def is_busy(self, tree: Tree) -> bool:
        """Has the token of this tree: no time to be re-hung."""
        return tree in self._waits or tree in self._adapting

    # --- what may come: HandleMsg of Algorithm 4.5 ---

    def token(
        self, now_us: int, tree: Tree, round_: int, children: tuple[Address, ...]
    ) -> list[Action]:
        if self._held is not None:
            if self._held.tree != tree:
                self._tokens.append((tree, round_, children))
                return []
            self._held = None  # this token unlocks the hold
        actions = self._take_token(now_us, tree, round_, children)
        return actions + self._go_on(now_us)

    def hold(
        self, now_us: int, sender: Address, tree: Tree, round_: int, number: int
    ) -> list[Action]:
        asked = _Asked(sender, tree, round_, number, now_us)
        actions = self._take_hold(now_us, asked)
        if actions is None:
            self._holds = [a for a in self._holds if (a.sender, a.tree) != (sender, tree)]
            self._holds.append(asked)
            return []
        return actions

    def ack(self, now_us: int, sender: Address, tree: Tree, round_: int) -> list[Action]:
        wait = self._waits.get(tree)
        if wait is None or wait.round != round_ or sender not in wait.missing:
            return []
        wait.missing.remove(sender)
        wait.acknowledged.append(sender)
        if wait.missing:
            return []
        del self._waits[tree]
        self._ready.append((tree, wait))
        return self._go_on(now_us)

    def adapted(self, now_us: int, tree: Tree) -> list[Action]:
        """PerformAdapt is done."""
        self._adapting.pop(tree, None)
        return self._go_on(now_us)

    def expire(self, now_us: int) -> list[Action]:
        """Leases, which the source does not have."""
        if self._held is not None and now_us - self._held.since_us >= self._hold_us:
            self._held = None
        for tree, wait in list(self._waits.items()):
            if now_us - wait.since_us >= self._wait_us:
                del self._waits[tree]
                self._ready.append((tree, wait))
        for tree, since_us in list(self._adapting.items()):
            if now_us - since_us >= self._hold_us:
                del self._adapting[tree]
        self._holds = [a for a in self._holds if now_us - a.since_us < self._wait_us]
        return self._go_on(now_us)

    # --- inside ---

    def _take_token(
        self, now_us: int, tree: Tree, round_: int, children: tuple[Address, ...]
    ) -> list[Action]:
        if self.is_busy(tree) or round_ <= self._last_round.get(tree, -1):
            return []
        self._last_round[tree] = round_
        if not children:
            return []
        self._waits[tree] = _Wait(round_, now_us, list(children))
        return [AskToHold(c, tree, round_) for c in children]

    def _take_hold(self, now_us: int, asked: _Asked) -> list[Action] | None:
        """None: not now."""
        if self._held is not None:
            if (self._held.by, self._held.tree) != (asked.sender, asked.tree):
                return None
        elif self._adapting or (self._waits and asked.number < self.number):
            return None
        self._held = _Held(asked.tree, asked.round, asked.sender, now_us)
        return [Acknowledge(asked.sender, asked.tree, asked.round)]

    def _go_on(self, now_us: int) -> list[Action]:
        """Algorithm 4.4, lines 5 to 17: what waited, while nobody holds this node."""
        actions: list[Action] = []
        if self._held is None and self._ready:
            for tree, wait in self._ready:
                self._adapting[tree] = now_us
                actions.append(Adapt(tree, wait.round, tuple(wait.acknowledged)))
            self._ready = []
        if self._held is None and self._tokens:
            tokens, self._tokens = self._tokens, []
            for tree, round_, children in tokens:
                actions += self._take_token(now_us, tree, round_, children)
        for asked in list(self._holds):
            if self._held is not None:
                break
            taken = self._take_hold(now_us, asked)
            if taken is not None:
                self._holds.remove(asked)
                actions += taken
        return actions
