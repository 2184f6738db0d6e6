"""What producers and consumers say to each other, and what is asked of alerts and told by them."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message

# --- messages ---


class Demand(Message, frozen=True):
    producer: str
    consumer: str
    wanted: bool
    stamp_us: int  # the consumer's clock: what comes late does not undo what came after it


class Status(Message, frozen=True):
    producer: str
    consumer: str
    able: bool
    stamp_us: int  # the producer's clock


# --- requests ---


class Operator(msgspec.Struct, frozen=True):
    """Runs at this node; its inputs are operators by name and node. A source has none."""

    name: str
    inputs: tuple[tuple[str, Address], ...] = ()


class Install(msgspec.Struct, frozen=True):
    operator: Operator


class Remove(msgspec.Struct, frozen=True):
    operator: str


class Want(msgspec.Struct, frozen=True):
    """A query at this node wants the operator's output, or no longer."""

    operator: str
    query: str
    wanted: bool = True


class SetAble(msgspec.Struct, frozen=True):
    """Whether a source's stream flows."""

    operator: str
    able: bool


# --- deliveries ---


class Resumed(msgspec.Struct, frozen=True):
    operator: str


class Suspended(msgspec.Struct, frozen=True):
    operator: str
