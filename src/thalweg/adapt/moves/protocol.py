"""Moves: all roles of one node in a partitioned query, as one protocol.

Source: D-CAPE (seed 002). A node is a processor unless the directory gives it a role: a split,
the union, the manager. Messages are in `messages.py` and in the files of the ways.

Promise: the union says the changelog that one node would, every change once, whatever moves,
whoever stops. Every bucket has one owner at every instant; a move that is interrupted ends on
one side. Once the network is well, what was given away is forgotten, and no move stays open.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.flow.union import Union
from thalweg.adapt.moves.manager.manager import Decide, Manager
from thalweg.adapt.moves.messages.commands import (
    SHARED,
    Abort,
    Aborted,
    ComputePartitionsToMove,
    Discard,
    ReactivatePartitions,
)
from thalweg.adapt.moves.messages.data import ReadResults, ReadRows, Release, Results, Rows, Said
from thalweg.adapt.moves.messages.records import StartMove
from thalweg.adapt.moves.messages.reports import Fence, Goodbye, Register, Report
from thalweg.adapt.moves.messages.requests import Assign, Publish, Reshape
from thalweg.adapt.moves.processor.answering import answer, release
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.processor.reshaping import reoptimise, reshape
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.shapes import Shape
from thalweg.adapt.moves.ways import MSLB, WAYS, shipping
from thalweg.adapt.moves.ways.receiving import Copied, Received
from thalweg.adapt.moves.ways.way import discard
from thalweg.overlay.protocol import (
    Address,
    Call,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

_STATE = (*shipping.MESSAGES, ReactivatePartitions)  # the same in all ways that send state
_OF_WAYS = tuple(dict.fromkeys(m for way in WAYS.values() for m in way.messages))


class Moves:
    name = "moves"
    messages: ClassVar[tuple[type[Message], ...]] = tuple(
        dict.fromkeys((*SHARED, *shipping.MESSAGES, Copied, Received, *_OF_WAYS))
    )
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        query: Query,
        shape: Shape,
        directory: Directory,
        times: Times | None = None,
        *,
        version: str = "1",
        decide: Decide | None = None,
        local: bool = False,
    ) -> None:
        self.query = query
        self.directory = directory
        self.times = times or Times()
        self.splits: list[Split] = []
        self.union: Union | None = None
        self.manager: Manager | None = None
        self.processor: Processor | None = None
        self._local = local  # whether processors re-optimise
        self._make = (shape, version, decide)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._fired(now_us, str(event.key))
        if isinstance(event, Call):
            return self._called(now_us, event.request)
        if isinstance(event, Init):
            return self._init(now_us, event)
        if isinstance(event, Leave) and self.processor is not None:
            return self.processor.goodbye()
        return []

    def _init(self, now_us: int, event: Init) -> list[Effect]:
        shape, version, decide = self._make
        own, d, persisted = event.address, self.directory, dict(event.persisted)
        effects: list[Effect] = []
        self.splits = [Split(self.query, leaf, self.times.instant_us) for leaf in d.leaves_at(own)]
        for split in self.splits:
            split.restore(persisted)
        if own == d.union:
            self.union = Union(self.query)
            self.union.restore(persisted)
        if own == d.manager:
            self.manager = Manager(d, self.times, decide)
            effects += self.manager.restore(now_us, event.seed, persisted)
        if not self.splits and self.union is None and self.manager is None:
            self.processor = Processor(self.query, shape, d, self.times, version)
            self.processor.address = own
            effects += self.processor.restore(event.seed, persisted)
        phase_us = event.seed % self.times.read_us  # not all at once
        return [
            *effects,
            SetTimer("read", phase_us),
            SetTimer("report", phase_us),
            SetTimer("retry", phase_us),
        ]

    def _called(self, now_us: int, request: object) -> list[Effect]:
        if isinstance(request, Publish):
            return self.splits[[s.leaf for s in self.splits].index(request.leaf)].publish(
                now_us, request
            )
        if isinstance(request, Assign) and self.union is not None:
            return self.union.assign(request)
        if isinstance(request, StartMove) and self.manager is not None:
            return self.manager.start(now_us, request)
        if isinstance(request, Reshape) and self.processor is not None:
            return reshape(self.processor, request)
        raise TypeError(f"moves can't {request!r} here")

    def _fired(self, now_us: int, key: str) -> list[Effect]:
        effects: list[Effect] = []
        if key == "read":
            effects.append(SetTimer("read", self.times.read_us))
            if self.processor is not None:
                effects += self.processor.reads()
            if self.union is not None:
                effects += self.union.wants()
            for split in self.splits:
                effects += split.advance(now_us)
        elif key == "retry":
            effects.append(SetTimer("retry", self.times.retry_us))
            if self.manager is not None:
                effects += self.manager.again(now_us)
        else:
            effects.append(SetTimer("report", self.times.report_us))
            if self.processor is not None:
                if self._local:
                    effects += reoptimise(self.processor)
                effects += [*self.processor.report(), *self.processor.tidy(now_us)]
            if self.union is not None and self.union.started:
                effects.append(Send(self.directory.manager, self.union.register()))
                said = self.union.said_so_far()
                effects += [Send(split, said) for split in self.directory.split_nodes]
        return effects

    def _received(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        if self.processor is not None:
            return self._at_processor(self.processor, now_us, sender, message)
        effects: list[Effect] = []
        if self.splits:
            effects += self._at_splits(now_us, sender, message)
        if self.union is not None:
            if isinstance(message, Results):
                effects += self.union.receive(sender, message)
            elif isinstance(message, Fence):
                effects += self.union.fence(message)
        if self.manager is not None:
            effects += self._at_manager(self.manager, now_us, sender, message)
        return effects

    def _at_processor(
        self, processor: Processor, now_us: int, sender: Address, message: Message
    ) -> list[Effect]:
        if isinstance(message, Rows):
            return processor.rows(now_us, message)
        if isinstance(message, ReadResults):
            return answer(processor, now_us, sender, message)
        if isinstance(message, Release):
            return release(processor, message)
        if isinstance(message, Discard):
            return discard(processor, message)
        if isinstance(message, Abort):
            if message.move in processor.decided:
                return []  # its question is answered once it is asked again
            return [*processor.undecided(message.move), Send(sender, Aborted(message.move))]
        if isinstance(message, ComputePartitionsToMove):
            return WAYS[message.way].processor(processor, now_us, sender, message)
        if isinstance(message, _STATE):
            return WAYS[MSLB].processor(processor, now_us, sender, message)
        for way in WAYS.values():
            if type(message) in way.messages:
                return way.processor(processor, now_us, sender, message)
        return []

    def _at_splits(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        effects: list[Effect] = []
        if isinstance(message, ReadRows):
            for split in self.splits:
                if split.leaf == message.leaf:
                    effects += split.read(now_us, sender, message)
        elif isinstance(message, Said):
            for split in self.splits:
                effects += split.forget(message.upto)
        else:
            for way in WAYS.values():
                answers: list[Effect] = []
                for split in self.splits:
                    answers = way.split(split, sender, message)
                if answers:
                    return answers  # one for the node
        return effects

    def _at_manager(
        self, manager: Manager, now_us: int, sender: Address, message: Message
    ) -> list[Effect]:
        if isinstance(message, Report):
            manager.watch.report(now_us, sender, message)
            return []
        if isinstance(message, Goodbye):
            manager.watch.goodbye(sender)
            return []
        if isinstance(message, Register):
            return manager.followed(now_us, message)
        return manager.answered(now_us, sender, message)
