"""Who computes a fragment when its node is gone."""

from thalweg.overlay.succession.messages import (
    Follow,
    Following,
    Gone,
    Held,
    Hold,
    Need,
    Reached,
    TakeOver,
    Unfollow,
)
from thalweg.overlay.succession.protocol import Settings, Succession

__all__ = [
    "Follow",
    "Following",
    "Gone",
    "Held",
    "Hold",
    "Need",
    "Reached",
    "Settings",
    "Succession",
    "TakeOver",
    "Unfollow",
]
