"""What a driver asks of a transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.stack import Stack

Receive = Callable[[Address, str, Message], None]  # sender, protocol, message


class Post(Protocol):
    """Carries messages between nodes, as well as it can: they may be lost, doubled or late."""

    @property
    def address(self) -> Address:
        """By which others reach this node."""

    def start(self, stack: Stack, receive: Receive) -> None:
        """From now on hand over what comes for the protocols of such a stack, on any thread."""

    def send(self, to: Address, protocol: str, message: Message) -> None:
        """Never waits, and never fails because of the other side."""

    def close(self, flush_within_s: float = 0.0) -> None:
        """End, after what was sent has left, if it does so in time."""
