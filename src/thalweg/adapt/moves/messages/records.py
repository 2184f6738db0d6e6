"""Moves as people and the application see them: asked for, under way, ended."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address


class StartMove(msgspec.Struct, frozen=True):
    """A request: move about `share` of the sender's load; or these buckets, if they are named."""

    sender: Address
    receiver: Address
    share: float
    way: str
    why: str = "asked for"
    lo: int = -1
    hi: int = -1


class Move(msgspec.Struct, frozen=True):
    """What the manager knows of a move; durable at each step."""

    id: str
    way: str
    sender: Address
    receiver: Address
    share: float
    why: str
    lo: int = -1
    hi: int = -1
    epoch: int = -1  # of the sender; the receiver's is one higher
    tau: int = -1
    step: int = 0
    answered: tuple[Address, ...] = ()
    started_us: int = 0
    step_us: int = 0

    def may_meet(self, request: StartMove) -> bool:
        """Whether a request names buckets that this move has, or may still choose."""
        if request.lo < 0:
            return False  # its sender chooses among what does not move
        if self.lo < 0:
            return self.sender == request.sender
        return self.lo < request.hi and request.lo < self.hi


class Stepped(msgspec.Struct, frozen=True):
    """To the application: a move has come to this step."""

    move: Move
    step: str


class Ended(msgspec.Struct, frozen=True):
    move: Move
    outcome: str  # done, aborted: why, overtaken, refused: why
    took_us: int

    def line(self) -> str:
        m = self.move
        buckets = f"buckets {m.lo} to {m.hi - 1}" if m.lo >= 0 else "no buckets"
        at = f" from instant {m.tau} on" if m.tau >= 0 else ""
        return (
            f"{m.way}: {buckets} from {m.sender} to {m.receiver}{at}, because {m.why}: "
            f"{self.outcome} after {self.took_us / 1_000_000:.2f} s"
        )
