"""What a node asks of an engine that runs its queries.

An engine need not know the network, nor other queries, nor Thalweg's files. It is given plans and
rows, and gives rows back:

    add ─▶ feed, feed, feed … ─▶ publish ─▶ forget … ─▶ drop

The law is that of the network: a position is an instant. What an engine was fed of a stream is all
of it below an instant, and what it says is all of a result below one. So whoever asks again, after
a crash of the engine or of himself, names an instant, and nothing counts twice.

`tests/engine/wrappers/test_conformance.py` demands of every engine what stands here; how to add one
is told in docs/how-to/add-an-engine.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from thalweg.engine.pieces import Piece
from thalweg.plan.nodes import Node


class EngineError(Exception):
    """A query can't go on, and why. What it has said stays right."""


class Wrapper(Protocol):
    """May be called from any thread. What returns is durable, but for what is computed: that an
    engine may do again."""

    name: str
    changed: Callable[[], None]  # set by the node: to be called when some query has said more

    def refusal(self, plan: Node) -> str | None:
        """Why this engine can't run a plan exactly; None if it can. Known without running it."""

    def add(self, query: str, plan: Node, begins: int | None) -> None:
        """Begin to compute a plan that is not refused. The result is empty before the instant
        `begins`; None: it begins with its streams. Added again, it goes on as it is."""

    def drop(self, query: str) -> None:
        """Forget all about it; it need not be there."""

    def queries(self) -> list[str]:
        """Those that were added, also before a restart."""

    def fed(self, query: str, stream: str) -> int:
        """Up to which instant a query has been fed a stream; BEGINNING before the first piece."""

    def feed(self, query: str, stream: str, piece: Piece) -> None:
        """All tuples of a stream in [low, upto): `_instant`, `_position` and its columns. The first
        piece also has those of before `begins` that windows still hold then. What was fed before
        is passed over; after a gap, EngineError."""

    def publish(self, query: str, since: int) -> Iterator[Piece]:
        """All that the result says from an instant on, as far as it is final: `_ts`, `_op` (-1
        before +1 within an instant) and `c0`, `c1`, …; a stream says +1 only. Without a gap, and
        the same however often it is asked. Raises EngineError if the query can't go on."""

    def forget(self, query: str, below: int) -> None:
        """Nobody will ask again for what was said below an instant."""

    def seconds(self) -> float:
        """CPU, or at least time, that computing has taken so far; planners look at it."""

    def close(self) -> None:
        """Stop; all that was added stands again when the engine is opened."""
