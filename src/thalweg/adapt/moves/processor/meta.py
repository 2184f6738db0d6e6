"""What is known of a range beside its state."""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.messages.data import FULL, Given
from thalweg.overlay.protocol import Address


class Pending(msgspec.Struct, frozen=True):
    """A move of this holding that is not decided."""

    move: str
    way: str
    receiver: Address
    since_us: int
    stage: str = "chosen"


class Meta(msgspec.Struct):
    """What survives a restart beside the windows' segments."""

    lo: int
    hi: int
    epoch: int
    kind: str = FULL
    tau: int = 0
    since: int = 0
    acked: int = 0
    shape: str = ""
    cap: int | None = None
    pending: Pending | None = None
    given: Given | None = None
    active: bool = True
    prepared_for: str = ""  # the move that brought the state
    made: str = ""  # names this making of the range: what is made again has another name
    registered: bool = False  # the union knows this making as the range's first in its epoch
