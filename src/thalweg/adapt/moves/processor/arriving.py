"""State that is on its way to a processor: by move, what it has fetched, in memory and on disk."""

from __future__ import annotations

from thalweg.adapt.moves.ways.shipping import Incoming
from thalweg.overlay.protocol import Effect, Persist


class Arriving:
    def __init__(self) -> None:
        self.incoming: dict[str, Incoming] = {}
        self.fetched: dict[str, dict[str, bytes]] = {}  # durable segments
        self._since_us: dict[str, int] = {}

    def restore(self, key: str, value: bytes) -> None:
        if key.startswith("fetched/"):
            self.fetched.setdefault(key.split("/")[1], {})[key] = value

    def forget(self, move: str) -> list[Effect]:
        self.incoming.pop(move, None)
        self._since_us.pop(move, None)
        return [Persist(key, None) for key in self.fetched.pop(move, {})]

    def tidy(self, now_us: int, after_us: int) -> list[Effect]:
        """What nobody has pursued for so long."""
        effects: list[Effect] = []
        for move, incoming in list(self.incoming.items()):
            if now_us - incoming.since_us > after_us:
                del self.incoming[move]
        for move in [m for m in self.fetched if m not in self.incoming]:
            since_us = self._since_us.setdefault(move, now_us)
            if now_us - since_us > after_us:
                effects += self.forget(move)
        return effects
