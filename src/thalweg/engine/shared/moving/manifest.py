"""What a query remembers, as one engine tells another: a manifest of immutable segments.

Tables are named by what they are in the query's plan, not by where it runs: an operator by its
place in the order `operators_of`, a stream by its place among those that the plan reads. So the
receiver's streams may have other names. The bytes of a segment are never changed on the way; what
is small and changes (frontiers, floors, horizons) stands here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import operator_id
from thalweg.engine.shared.state.hashing import HASHING
from thalweg.engine.shared.state.schema import OF_STATE
from thalweg.engine.shared.state.segments import SCHEMA_VERSION

MOVING = "1"  # of the manifest itself
STATE, STEM = "state", "stem"


class CannotMove(ValueError):
    """Why a query's state can't go, or can't be taken."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A segment: of which table (an operator's part, or a stream's index), what it spans, and where
    it lies at the sender. Its bytes have `checksum`."""

    kind: str
    of: int
    part: str
    rows: int
    low: int
    high: int
    first: int
    last: int
    bundle: str
    offset: int
    size: int
    checksum: bytes

    @property
    def key(self) -> tuple[str, int]:
        return self.bundle, self.offset


class StreamState(msgspec.Struct, frozen=True):
    """Of a stream that the query reads: its tuples before `upto` are in the pieces, as far as the
    query can still look at them; those from there on the receiver reads for itself."""

    name: str  # at the sender
    upto: int
    floor: int
    complete_from: int
    kept: dict[int, int]
    keys: tuple[bytes, ...]  # of the indexes, in order of the pieces' parts
    position: int
    has_begun: bool
    relation: tuple[int, int, int] | None = None


class StateManifest(msgspec.Struct, frozen=True):
    """All that a query remembers at `frontier`: it has said what is before, and nothing else."""

    versions: dict[str, str]
    operators: tuple[str, ...]
    frontier: int
    has_spoken: bool
    started: int | None
    horizons: dict[int, int]  # by the stream's place
    streams: tuple[StreamState, ...]
    classes: dict[int, tuple[int, int]]
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        return sum(p.size for p in self.pieces)


def versions(values: str) -> dict[str, str]:
    """What both engines must have in common; `values`: of what expressions give."""
    return {
        "manifest": MOVING,
        "book": str(OF_STATE),
        "segments": SCHEMA_VERSION,
        "hashing": HASHING,
        "values": values,
    }


def operators_of(output: ph.Ending) -> dict[str, ph.AnyOp]:
    """Each operator once, by its name, inputs first: the same order whatever streams are called."""
    return {operator_id(op): op for op in ph.walk(output)}


def kinds_of(operators: Iterable[ph.AnyOp]) -> tuple[str, ...]:
    """What operators are, without the names of streams."""
    return tuple(type(op).__name__ for op in operators)


def checksum_of(*contents: bytes) -> bytes:
    """Of bytes that follow upon each other."""
    found = hashlib.blake2b(digest_size=16)
    for content in contents:
        found.update(content)
    return found.digest()


encode_manifest = msgspec.msgpack.Encoder().encode
decode_manifest = msgspec.msgpack.Decoder(StateManifest).decode
