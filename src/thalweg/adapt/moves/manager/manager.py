"""The distribution manager: carries out moves, notices losses, and asks the balancer what to do
next.

Source: D-CAPE, Algorithms 1 and 3. Several moves run at once, of different ranges; one that names
buckets that are on the move waits for its turn. Each step is durable before it is asked for, so
that a manager that restarts asks again. It decides nothing that others could not do without:
before the sender's decision a move that nobody pursues ends where it began, after it the union
finds the receiver by itself. So it may die at any step, and even forget all: it learns who owns
what from the union's register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.manager.watch import Watch
from thalweg.adapt.moves.messages.commands import Abort, Aborted, Discard, Refused
from thalweg.adapt.moves.messages.records import Ended, Move, StartMove, Stepped
from thalweg.adapt.moves.messages.reports import Load, Register
from thalweg.adapt.moves.ways import WAYS
from thalweg.adapt.moves.ways.way import Step
from thalweg.overlay.protocol import Address, Deliver, Effect, Message, Persist, Send

MOST_RECORDS = 100
MOST_AT_ONCE = 4
MOST_WAITING = 32

Loads = Mapping[Address, tuple[Load, ...]]
Decide = Callable[[int, Loads, frozenset[Address]], Sequence[StartMove]]  # with who is busy

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Move).decode
_decode_waiting = msgspec.msgpack.Decoder(list[StartMove]).decode
_decode_records = msgspec.msgpack.Decoder(list[Ended]).decode


class Manager:
    def __init__(self, directory: Directory, times: Times, decide: Decide | None = None) -> None:
        self.directory = directory
        self.times = times
        self.watch = Watch(times)
        self.moves: dict[str, Move] = {}  # that are under way
        self.waiting: list[StartMove] = []
        self.records: list[Ended] = []  # what was done and why, newest last
        self._decide = decide
        self._quiet_until_us = 0
        self._numbers = 0
        self._life = 0

    def restore(self, now_us: int, seed: int, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._life = seed % 1_000_000_007
        found = [_decode(value) for key, value in persisted.items() if key.startswith("move/")]
        self.moves = {m.id: m for m in sorted(found, key=lambda m: (m.started_us, m.id))}
        if "waiting" in persisted:
            self.waiting = _decode_waiting(persisted["waiting"])
        if "records" in persisted:
            self.records = _decode_records(persisted["records"])
        self._quiet_until_us = now_us + self.times.lost_us
        return [e for move in self.moves.values() for e in self._ask(move)]

    # --- requests ---

    def start(self, now_us: int, request: StartMove) -> list[Effect]:
        r = request
        if r.way not in WAYS:
            raise ValueError(f"there is no way {r.way!r} to move: {', '.join(WAYS)}")
        if r.lo >= 0 and r.lo >= r.hi:
            raise ValueError(f"buckets {r.lo} to {r.hi - 1} are none: name the first and the last")
        if r.sender == r.receiver:
            return []
        if not self._must_wait(r, self.waiting):
            return self._open(now_us, r)
        if len(self.waiting) >= MOST_WAITING:
            why = f"refused: {MOST_WAITING} moves are waiting"
            return self._ended(now_us, self._new(now_us, r), why)
        self.waiting.append(r)
        return [Persist("waiting", _encode(self.waiting))]

    def _must_wait(self, request: StartMove, before: Sequence[StartMove]) -> bool:
        return (
            len(self.moves) >= MOST_AT_ONCE
            or any(move.may_meet(request) for move in self.moves.values())
            or any(_overlap(request, other) for other in before)
        )

    def _go_on(self, now_us: int) -> list[Effect]:
        """Those that may begin now; what names the same buckets keeps its order."""
        effects: list[Effect] = []
        still: list[StartMove] = []
        for request in self.waiting:
            if self._must_wait(request, still):
                still.append(request)
            else:
                effects += self._open(now_us, request)
        if len(still) < len(self.waiting):
            self.waiting = still
            effects.append(Persist("waiting", _encode(still)))
        return effects

    def _open(self, now_us: int, request: StartMove) -> list[Effect]:
        move = self._new(now_us, request)
        self.moves[move.id] = move
        return self._ask(move)

    def _new(self, now_us: int, r: StartMove) -> Move:
        self._numbers += 1
        return Move(
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

    # --- what it hears ---

    def followed(self, now_us: int, message: Register) -> list[Effect]:
        """Whom the union follows: overtaken moves end here, lost owners are replaced."""
        self.watch.register = message.parts
        effects: list[Effect] = []
        for move in [m for m in self.moves.values() if m.epoch >= 0]:
            ours = [p for p in message.parts if p.lo < move.hi and move.lo < p.hi]
            if any(p.epoch > move.epoch + 1 for p in ours):
                effects += self._end(now_us, move, "overtaken: the range is another's by now")
            elif _step(move).waits and all(
                p.epoch == move.epoch + 1 and move.sender not in p.owners for p in ours
            ):  # the union needs the sender no longer, whether it says so or is gone
                effects += self._ask(self._moved_on(now_us, move))
        if now_us < self._quiet_until_us:
            return effects  # just started: nobody has had the time to report
        return [*effects, *[Send(self.directory.union, f) for f in self.watch.fences(now_us)]]

    def answered(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        """An answer to the present step of a move, or none of its business."""
        move = self.moves.get(getattr(message, "move", ""))
        if move is None:
            return []
        if isinstance(message, Refused | Aborted):
            if _is_decided(move):
                return []
            why = message.why if isinstance(message, Refused) else "the sender gave it up"
            return self._off(now_us, move, why)
        step = _step(move)
        asked = step.by(move, self.directory)
        if type(message) is not step.answer or sender not in asked or sender in move.answered:
            return []
        if step.learn is not None:
            move = step.learn(move, message)
        move = msgspec.structs.replace(move, answered=(*move.answered, sender))
        self.moves[move.id] = move
        if set(asked) - set(move.answered):
            return [Persist(f"move/{move.id}", _encode(move))]
        if move.step + 1 == len(WAYS[move.way].steps):
            return self._end(now_us, move, "done")
        return self._ask(self._moved_on(now_us, move))

    def again(self, now_us: int) -> list[Effect]:
        """In time: ask again, give up, or find something to do."""
        effects: list[Effect] = []
        for move in list(self.moves.values()):
            effects += self._pursue(now_us, move)
        if self._decide is not None and now_us >= self._quiet_until_us:
            self.watch.processors(now_us)
            busy = frozenset(a for m in self.moves.values() for a in (m.sender, m.receiver))
            for request in self._decide(now_us, self.watch.loads, busy):
                effects += self.start(now_us, request)
        return effects

    # --- steps ---

    def _pursue(self, now_us: int, move: Move) -> list[Effect]:
        waited_us = now_us - move.step_us
        step = _step(move)
        late = waited_us > self.times.abort_us
        if late and not _is_decided(move):
            effects: list[Effect] = [Send(move.sender, Abort(move.id))]
            if waited_us > 2 * self.times.abort_us:  # nobody answers: the sender will give up too
                effects += self._off(now_us, move, f"nobody answered to {step.name}")
            elif step.decides:
                effects += self._questions(move)  # it may be decided: only the sender knows
            return effects
        if late and not step.waits and waited_us > 4 * self.times.abort_us:
            return self._end(now_us, move, f"done but for {step.name}: not all have answered")
        return self._questions(move)

    def _moved_on(self, now_us: int, move: Move) -> Move:
        move = msgspec.structs.replace(move, step=move.step + 1, answered=(), step_us=now_us)
        self.moves[move.id] = move
        return move

    def _questions(self, move: Move) -> list[Effect]:
        asked = _step(move).ask(move, self.directory)
        return [Send(to, message) for to, message in asked if to not in move.answered]

    def _ask(self, move: Move) -> list[Effect]:
        stepped = Deliver(Stepped(move, _step(move).name))
        return [Persist(f"move/{move.id}", _encode(move)), *self._questions(move), stepped]

    def _off(self, now_us: int, move: Move, why: str) -> list[Effect]:
        discard = Send(move.receiver, Discard(move.id))
        return [discard, *self._end(now_us, move, f"aborted: {why}")]

    def _end(self, now_us: int, move: Move, outcome: str) -> list[Effect]:
        del self.moves[move.id]
        self._quiet_until_us = max(self._quiet_until_us, now_us + self.times.pause_us)
        return [
            Persist(f"move/{move.id}", None),
            *self._ended(now_us, move, outcome),
            *self._go_on(now_us),
        ]

    def _ended(self, now_us: int, move: Move, outcome: str) -> list[Effect]:
        ended = Ended(move, outcome, now_us - move.started_us)
        self.records = [*self.records, ended][-MOST_RECORDS:]
        return [Persist("records", _encode(self.records)), Deliver(ended)]


def _overlap(a: StartMove, b: StartMove) -> bool:
    return a.lo >= 0 and b.lo >= 0 and a.lo < b.hi and b.lo < a.hi


def _step(move: Move) -> Step:
    return WAYS[move.way].steps[move.step]


def _is_decided(move: Move) -> bool:
    return any(step.decides for step in WAYS[move.way].steps[: move.step])
