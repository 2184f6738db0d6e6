"""State on its way: a list of segments, from which the receiver fetches what it lacks.

Segments never change once written, so a list can be sent before the last one is written (pre-
copy), and a crash of either side costs only what was not fetched yet. Each carries a checksum
over its encoding; other formats or value versions are refused (NETWORK: values).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from thalweg.adapt.moves.query import Parts
from thalweg.adapt.moves.state.shapes import Inputs
from thalweg.adapt.moves.state.tables import Segment
from thalweg.overlay.protocol import Address, Message

FORMAT = 1
AT_ONCE = 12  # segments that are fetched together

Key = tuple[Inputs, int]  # which state, which segment

encode_segment = msgspec.msgpack.Encoder().encode
decode_segment = msgspec.msgpack.Decoder(tuple[tuple[int, int, int, Parts], ...]).decode


def checksum(segment: Segment) -> int:
    return int.from_bytes(hashlib.blake2b(encode_segment(segment), digest_size=7).digest(), "big")


def stored_as(move: str, inputs: Inputs, number: int) -> str:
    return f"fetched/{move}/{'.'.join(map(str, inputs))}/{number}"


class Listed(msgspec.Struct, frozen=True, array_like=True):
    inputs: Inputs
    number: int
    checksum: int


class Manifest(Message, frozen=True):
    """ReceivePartitions: what there is; `final` at τ, else what is there so far."""

    move: str
    lo: int
    hi: int
    epoch: int  # of the receiver, once it is decided
    tau: int
    final: bool
    states: tuple[Inputs, ...]
    listed: tuple[Listed, ...]
    format: int
    version: str


class Fetch(Message, frozen=True):
    move: str
    keys: tuple[Key, ...]


class Shipped(Message, frozen=True):
    move: str
    inputs: Inputs
    number: int
    rows: tuple[tuple[int, int, int, Parts], ...]


MESSAGES = (Manifest, Fetch, Shipped)


class Incoming:
    """The receiver's side of one move."""

    def __init__(self, sender: Address, manifest: Manifest, since_us: int) -> None:
        self.sender = sender
        self.manifest = manifest
        self.since_us = since_us
        self.got: dict[Key, Segment] = {}
        self.sums: dict[
            Key, int
        ] = {}  # of what it got: a state that was recomputed may reuse a number
        self.asked: list[Key] = []

    def update(self, manifest: Manifest) -> None:
        """Listed again: what was asked for and did not come is asked for again."""
        self.asked = []
        if manifest.final or not self.manifest.final:
            self.manifest = manifest

    def missing(self) -> list[Key]:
        return [
            (entry.inputs, entry.number)
            for entry in self.manifest.listed
            if self.sums.get((entry.inputs, entry.number)) != entry.checksum
        ]

    def take(self, shipped: Shipped) -> bool:
        """Whether it is new and whole."""
        key = (shipped.inputs, shipped.number)
        wanted = {(e.inputs, e.number): e.checksum for e in self.manifest.listed}
        found = checksum(shipped.rows)
        if self.sums.get(key) == found or wanted.get(key) != found:
            return False
        self.got[key], self.sums[key] = shipped.rows, found
        self.asked = [k for k in self.asked if k != key]
        return True

    def restore(self, persisted: Iterable[tuple[str, bytes]]) -> None:
        """What was fetched before a restart."""
        for text, value in persisted:
            *_, inputs, number = text.split("/")
            key = (tuple([int(i) for i in inputs.split(".")]), int(number))
            self.got[key] = decode_segment(value)
            self.sums[key] = checksum(self.got[key])

    def states(self) -> dict[Inputs, dict[int, Segment]]:
        found: dict[Inputs, dict[int, Segment]] = {i: {} for i in self.manifest.states}
        for entry in self.manifest.listed:
            found[entry.inputs][entry.number] = self.got[entry.inputs, entry.number]
        return found
