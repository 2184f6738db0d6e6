"""The distribution manager: carries out moves, notices losses, and asks the balancer what to do
next.

Source: D-CAPE, Algorithms 1 and 3. One move at a time; each step is durable before it is asked
for, so that a manager that restarts asks again. It decides nothing that others could not do
without: before the sender's decision a move that nobody pursues ends where it began, after it
the union finds the receiver by itself. So it may die at any step, and even forget all: it learns
who owns what from the union's register.

A processor that has not reported for `lost_us` counts as lost. The union is then asked to go on
with another one; if the lost one was only silent, it says rows that nobody reads, until a split
tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.messages import (
    Abort,
    Aborted,
    Discard,
    Fence,
    Followed,
    Load,
    Refused,
    Register,
    Report,
)
from thalweg.adapt.moves.way import Move, Step
from thalweg.adapt.moves.ways import WAYS
from thalweg.overlay.protocol import Address, Deliver, Effect, Message, Persist, Send

MOST_RECORDS = 100


class StartMove(msgspec.Struct, frozen=True):
    """A request: move about `share` of the sender's load; or these buckets, if they are named."""

    sender: Address
    receiver: Address
    share: float
    way: str
    why: str = "asked for"
    lo: int = -1
    hi: int = -1


class Stepped(msgspec.Struct, frozen=True):
    """To the application: a move has come to this step."""

    move: Move
    step: str


class Ended(msgspec.Struct, frozen=True):
    move: Move
    outcome: str  # done, aborted: why, overtaken
    took_us: int

    def line(self) -> str:
        m = self.move
        buckets = f"buckets {m.lo} to {m.hi - 1}" if m.lo >= 0 else "no buckets"
        at = f" from instant {m.tau} on" if m.tau >= 0 else ""
        return (
            f"{m.way}: {buckets} from {m.sender} to {m.receiver}{at}, because {m.why}: "
            f"{self.outcome} after {self.took_us / 1_000_000:.2f} s"
        )


Decide = Callable[[int, Mapping[Address, tuple[Load, ...]]], StartMove | None]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Move).decode
_decode_records = msgspec.msgpack.Decoder(list[Ended]).decode


class Manager:
    def __init__(self, directory: Directory, times: Times, decide: Decide | None = None) -> None:
        self.directory = directory
        self.times = times
        self.move: Move | None = None
        self.records: list[Ended] = []  # what was done and why, newest last
        self.loads: dict[Address, tuple[Load, ...]] = {}
        self.register: tuple[Followed, ...] = ()
        self.fenced = 0
        self._decide = decide
        self._heard_us: dict[Address, int] = {}
        self._quiet_until_us = 0
        self._numbers = 0
        self._life = 0

    def restore(self, now_us: int, seed: int, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._life = seed % 1_000_000_007
        if "move" in persisted:
            self.move = _decode(persisted["move"])
        if "records" in persisted:
            self.records = _decode_records(persisted["records"])
        self._quiet_until_us = now_us + self.times.lost_us
        return self._ask(now_us) if self.move is not None else []

    # --- what it hears ---

    def report(self, now_us: int, sender: Address, message: Report) -> list[Effect]:
        self._heard_us[sender] = now_us
        self.loads[sender] = message.loads
        return []

    def goodbye(self, sender: Address) -> list[Effect]:
        self._heard_us.pop(sender, None)
        self.loads.pop(sender, None)
        return []

    def followed(self, now_us: int, message: Register) -> list[Effect]:
        """Whom the union follows: overtaken moves end here, lost owners are replaced."""
        self.register = message.parts
        effects: list[Effect] = []
        move = self.move
        if move is not None and move.epoch >= 0:
            ours = [p for p in message.parts if p.lo < move.hi and move.lo < p.hi]
            if any(p.epoch > move.epoch + 1 for p in ours):
                effects += self._end(now_us, "overtaken: the range is another's by now")
            elif self._step(move).waits and all(
                p.epoch == move.epoch + 1 and move.sender not in p.owners for p in ours
            ):  # the union needs the sender no longer, whether it says so or is gone
                self._move_on(now_us, move)
                effects += self._ask(now_us)
        if now_us < self._quiet_until_us:
            return effects  # just started: nobody has had the time to report
        up = self.processors(now_us)
        for part in message.parts:
            if up and any(owner not in up for owner in part.owners):
                least = min(up, key=lambda a: (self._rate(a), a))
                self.fenced += 1
                fence = Fence(part.lo, part.hi, part.epoch, least)
                effects.append(Send(self.directory.union, fence))
        return effects

    def processors(self, now_us: int) -> list[Address]:
        """Those that count as alive."""
        for address, heard_us in list(self._heard_us.items()):
            if now_us - heard_us > self.times.lost_us:
                del self._heard_us[address]
                self.loads.pop(address, None)
        return sorted(self._heard_us)

    def _rate(self, address: Address) -> int:
        return sum(load.rate for load in self.loads.get(address, ()))

    # --- moves ---

    def start(self, now_us: int, request: StartMove) -> list[Effect]:
        if request.way not in WAYS:
            raise ValueError(f"there is no way {request.way!r} to move: {', '.join(WAYS)}")
        if self.move is not None or request.sender == request.receiver:
            return []
        self._numbers += 1
        r = request
        self.move = Move(
            f"{self._life:x}.{self._numbers}",
            r.way,
            r.sender,
            r.receiver,
            r.share,
            r.why,
            r.lo,
            r.hi,
            started_us=now_us,
            step_us=now_us,
        )
        return self._ask(now_us)

    def answered(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        """An answer to the present step, or none of its business."""
        move = self.move
        if move is None or getattr(message, "move", None) != move.id:
            return []
        if isinstance(message, Refused | Aborted):
            if self._is_decided(move):
                return []
            why = message.why if isinstance(message, Refused) else "the sender gave it up"
            return self._off(now_us, why)
        step = self._step(move)
        asked = step.by(move, self.directory)
        if type(message) is not step.answer or sender not in asked or sender in move.answered:
            return []
        if step.learn is not None:
            move = step.learn(move, message)
        self.move = move = msgspec.structs.replace(move, answered=(*move.answered, sender))
        if set(asked) - set(move.answered):
            return [Persist("move", _encode(move))]
        if move.step + 1 == len(WAYS[move.way].steps):
            return self._end(now_us, "done")
        self._move_on(now_us, move)
        return self._ask(now_us)

    def _move_on(self, now_us: int, move: Move) -> None:
        self.move = msgspec.structs.replace(move, step=move.step + 1, answered=(), step_us=now_us)

    def again(self, now_us: int) -> list[Effect]:
        """In time: ask again, give up, or find something to do."""
        if self.move is None:
            if self._decide is None or now_us < self._quiet_until_us:
                return []
            self.processors(now_us)
            request = self._decide(now_us, self.loads)
            return [] if request is None else self.start(now_us, request)
        waited_us = now_us - self.move.step_us
        step = self._step(self.move)
        late = waited_us > self.times.abort_us
        if late and not self._is_decided(self.move):
            effects: list[Effect] = [Send(self.move.sender, Abort(self.move.id))]
            if waited_us > 2 * self.times.abort_us:  # nobody answers: the sender will give up too
                effects += self._off(now_us, f"nobody answered to {step.name}")
            elif step.decides:
                effects += self._questions()  # it may be decided: only the sender knows
            return effects
        if late and not step.waits and waited_us > 4 * self.times.abort_us:
            return self._end(now_us, f"done but for {step.name}: not all have answered")
        return self._questions()

    def _questions(self) -> list[Effect]:
        assert self.move is not None
        asked = self._step(self.move).ask(self.move, self.directory)
        return [Send(to, message) for to, message in asked if to not in self.move.answered]

    def _ask(self, now_us: int) -> list[Effect]:
        assert self.move is not None
        stepped = Deliver(Stepped(self.move, self._step(self.move).name))
        return [Persist("move", _encode(self.move)), *self._questions(), stepped]

    def _off(self, now_us: int, why: str) -> list[Effect]:
        assert self.move is not None
        receiver, discard = self.move.receiver, Discard(self.move.id)
        return [Send(receiver, discard), *self._end(now_us, f"aborted: {why}")]

    def _end(self, now_us: int, outcome: str) -> list[Effect]:
        assert self.move is not None
        ended = Ended(self.move, outcome, now_us - self.move.started_us)
        self.records = [*self.records, ended][-MOST_RECORDS:]
        self.move = None
        self._quiet_until_us = max(self._quiet_until_us, now_us + self.times.pause_us)
        return [
            Persist("move", None),
            Persist("records", _encode(self.records)),
            Deliver(ended),
        ]

    def _step(self, move: Move) -> Step:
        return WAYS[move.way].steps[move.step]

    def _is_decided(self, move: Move) -> bool:
        return any(step.decides for step in WAYS[move.way].steps[: move.step])
