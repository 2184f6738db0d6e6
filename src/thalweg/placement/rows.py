"""The rows of a deployment under way, and the pieces that are added to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Place = tuple[int, int]  # (host, stream)

RESULT: Place = (-1, -1)  # as the user of a stream: queries


class Run(NamedTuple):
    host: int
    operator: int


class Send(NamedTuple):
    source: int
    target: int
    stream: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What it takes to serve one more stream: new runs and sends, and the host that serves."""

    stream: int
    host: int
    runs: tuple[Run, ...]
    sends: tuple[Send, ...]


@dataclass(frozen=True, slots=True)
class Shortage:
    """What a piece or a candidate lacks of a resource, if it does."""

    resource: str  # as in Refusal
    host: int
    need: float
    left: float
    target: int | None = None  # of a link

    @property
    def share(self) -> float:
        """Which part of the need is missing."""
        return (self.need - self.left) / self.need if self.need > self.left else 0.0
