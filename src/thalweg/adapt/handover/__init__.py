"""A whole fragment goes from node to node with its state (`protocol.py`)."""

from thalweg.adapt.handover.messages import (
    WAYS,
    Adopted,
    CannotGive,
    CannotTake,
    Discard,
    Ended,
    Fetch,
    Fetched,
    Freeze,
    Frozen,
    Give,
    Giving,
    Gone,
    GoneOver,
    Taking,
)
from thalweg.adapt.handover.protocol import Handover, Settings

__all__ = [
    "WAYS",
    "Adopted",
    "CannotGive",
    "CannotTake",
    "Discard",
    "Ended",
    "Fetch",
    "Fetched",
    "Freeze",
    "Frozen",
    "Give",
    "Giving",
    "Gone",
    "GoneOver",
    "Handover",
    "Settings",
    "Taking",
]
