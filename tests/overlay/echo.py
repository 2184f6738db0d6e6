"""A small protocol for tests of the ground: pings that are answered and counted."""

from __future__ import annotations

from thalweg.overlay.protocol import (
    Call,
    CancelTimer,
    Deliver,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)


class Ping(Message, frozen=True):
    number: int


class Pong(Message, frozen=True):
    number: int


class Echo:
    """Call(address) pings it; each Pong is delivered, counted, and the count persisted."""

    name = "echo"
    messages = (Ping, Pong)
    listens_to = ()

    def __init__(self) -> None:
        self.pongs = 0
        self.heard_at_us: list[int] = []

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Init(_, _, persisted):
                self.pongs = int(persisted.get("pongs", b"0"))
            case Call(("timer", key, after_us)):
                return [SetTimer(key, after_us)]
            case Call(("cancel", key)):
                return [CancelTimer(key)]
            case Call(str(peer)):
                return [Send(peer, Ping(self.pongs))]
            case Receive(sender, Ping(number)):
                self.heard_at_us.append(now_us)
                return [Send(sender, Pong(number))]
            case Receive(_, Pong(number)):
                self.pongs += 1
                return [Persist("pongs", b"%d" % self.pongs), Deliver(("pong", number))]
            case TimerFired(key):
                return [Deliver(("timer", key, now_us))]
            case Leave():
                return [Deliver("bye")]
        return []
