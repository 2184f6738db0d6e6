"""The protocols of one node, as one state machine: what a driver runs.

The stack routes by protocol name. Messages and timers belong to the protocol that made them; Tell
becomes a Call, Deliver is Heard by those that listen. Both stay inside the step that caused them,
first come first served, so that a driver sees one atomic step per outside event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from thalweg.overlay.generator import seed_of
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Leave,
    NodeProtocol,
    Tell,
)

Effects = list[tuple[str, Effect]]  # each with the name of the protocol that wants it
NOTHING_PERSISTED: Mapping[str, bytes] = {}

# More inner events than any sane step causes: two protocols that tell each other for ever.
MOST_INNER_EVENTS = 10_000


class Stack:
    """Protocols from the lowest to the highest: the order in which they start."""

    __slots__ = ("_listeners", "protocols")

    def __init__(self, protocols: Sequence[NodeProtocol]) -> None:
        self.protocols = {p.name: p for p in protocols}
        if len(self.protocols) < len(protocols):
            raise ValueError(f"two protocols of a node share a name: {_names(protocols)}")
        self._listeners: dict[str, tuple[str, ...]] = {}
        for name in self.protocols:
            self._listeners[name] = tuple(p.name for p in protocols if name in p.listens_to)
        for protocol in protocols:
            for wanted in protocol.listens_to:
                if wanted not in self.protocols:
                    raise ValueError(
                        f"{protocol.name} listens to {wanted}, "
                        f"which is not in this stack: {_names(protocols)}"
                    )

    def __getitem__(self, name: str) -> NodeProtocol:
        return self.protocols[name]

    def start(
        self,
        now_us: int,
        address: Address,
        seed: int,
        persisted: Mapping[str, Mapping[str, bytes]],
    ) -> Effects:
        """Init for each protocol, each with a seed and a drawer of its own."""
        effects: Effects = []
        for name in self.protocols:
            drawer = persisted.get(name, NOTHING_PERSISTED)
            effects += self.step(now_us, name, Init(address, seed_of(seed, name), drawer))
        return effects

    def leave(self, now_us: int) -> Effects:
        """Goodbyes, from the highest protocol to the lowest."""
        effects: Effects = []
        for name in reversed(self.protocols):
            effects += self.step(now_us, name, Leave())
        return effects

    def step(self, now_us: int, protocol: str, event: Event) -> Effects:
        """One event for one protocol, and all that it causes inside this node."""
        effects: Effects = []
        inner: deque[tuple[str, Event]] | None = None  # rare, and this is the busiest of loops
        steps = 0
        while True:
            for effect in self.protocols[protocol].step(now_us, event):
                kind = type(effect)
                if kind is Deliver:
                    for listener in self._listeners[protocol]:
                        inner = deque() if inner is None else inner
                        inner.append((listener, Heard(protocol, effect.value)))  # type: ignore[union-attr]
                    effects.append((protocol, effect))
                elif kind is Tell:
                    inner = deque() if inner is None else inner
                    inner.append((effect.protocol, Call(effect.request)))  # type: ignore[union-attr]
                else:
                    effects.append((protocol, effect))
            if not inner:
                return effects
            steps += 1
            if steps > MOST_INNER_EVENTS:
                raise RuntimeError(f"protocols of one node call each other for ever: {protocol}")
            protocol, event = inner.popleft()


def _names(protocols: Sequence[NodeProtocol]) -> str:
    return ", ".join(p.name for p in protocols)
