"""A processor: runs the join for its bucket ranges, and says results to whoever follows it.

What it is asked for and does not have, it makes by reading the inputs again (NETWORK: the
successor starts at the frontier that its readers have acknowledged). So whatever a move or a
crash leaves behind, the union's next request sets it right; moved state only saves that work.

Promise: a range is given away once per epoch, and this is durable before anybody hears of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.messages.data import OLD, Given, ReadRows, Rows
from thalweg.adapt.moves.messages.reports import Goodbye, Report
from thalweg.adapt.moves.processor.arriving import Arriving
from thalweg.adapt.moves.processor.dividing import divided
from thalweg.adapt.moves.processor.durable import Disk
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.weighing import hottest, rows_by_key
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.ranges import Range, overlap, without
from thalweg.adapt.moves.state.shapes import Shape
from thalweg.overlay.protocol import Address, Effect, Persist, Send

_encode = msgspec.msgpack.Encoder().encode
_decode_decided = msgspec.msgpack.Decoder(dict[str, Given]).decode
MOST_DECIDED = 32


class Processor:
    def __init__(
        self, query: Query, shape: Shape, directory: Directory, times: Times, version: str
    ) -> None:
        self.query = query
        self.shape = shape  # of what is made here; each range may then have its own
        self.directory = directory
        self.times = times
        self.version = version
        self.address: Address = ""
        self.holdings: list[Holding] = []
        self.disk = Disk(query)
        self.arriving = Arriving()
        self.said = 0  # by the union, as far as its questions tell
        self.replayed = 0  # ranges that were made from the inputs
        self.decided: dict[str, Given] = {}  # moves, newest last
        self._life = 0
        self._made = 0

    def restore(self, seed: int, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._life = seed % 1_000_000_007
        for key, value in persisted.items():
            if key == "decided":
                self.decided = _decode_decided(value)
            self.arriving.restore(key, value)
        self.holdings, effects = self.disk.holdings(persisted)
        return effects

    # --- durable state ---

    def store(self, holding: Holding) -> Effect:
        return self.disk.meta(holding)

    def drop(self, holding: Holding) -> list[Effect]:
        self.holdings.remove(holding)
        return self.disk.nothing(holding)

    # --- inputs ---

    def reads(self) -> list[Effect]:
        effects: list[Effect] = []
        for leaf, split in enumerate(self.directory.splits):
            reads = [r for h in self.holdings if (r := h.read(leaf)) is not None]
            if reads:
                effects.append(Send(split, ReadRows(leaf, tuple(reads))))
        return effects

    def rows(self, now_us: int, message: Rows) -> list[Effect]:
        effects: list[Effect] = []
        for found in message.found:
            for holding in self.within(found.lo, found.hi, found.epoch):
                if holding.range != (found.lo, found.hi):
                    effects += self.divide(holding, (found.lo, found.hi))
            for holding in self.within(found.lo, found.hi, found.epoch):
                if found.superseded is not None:
                    effects += self._superseded(holding, found.superseded)
                if holding in self.holdings and holding.range == (found.lo, found.hi):
                    holding.take(message.leaf, found)
                    effects += self.tick(holding)
        return effects

    def tick(self, holding: Holding) -> list[Effect]:
        return self.disk.tick(holding) if holding.advance() else []

    def _superseded(self, holding: Holding, given: Given) -> list[Effect]:
        """A split has served a later epoch: that is how one learns of it who has forgotten."""
        if holding.meta.given is not None and holding.meta.given.epoch >= given.epoch:
            return []
        if given.parallel and holding.has_said_all_from(given.at):
            return self.drop(holding)  # more than its part: made again
        holding.meta.given = given
        holding.meta.pending, holding.meta.cap = None, None
        if given.parallel:
            holding.meta.kind, holding.meta.tau = OLD, given.at
        return [self.store(holding)]

    # --- making ---

    def begin(self, now_us: int, meta: Meta) -> list[Effect]:
        holding = self.make(now_us, meta)
        self.holdings.append(holding)
        return [self.store(holding)]

    def make(self, now_us: int, meta: Meta) -> Holding:
        self._made += 1
        meta.made = f"{self._life:x}.{self._made}"
        holding = Holding(self.query, meta, self.shape)
        holding.wanted_us = now_us
        return holding

    def activate(self, holding: Holding) -> list[Effect]:
        holding.meta.active = True
        return [self.store(holding)]

    # --- ranges ---

    def within(self, lo: int, hi: int, epoch: int) -> list[Holding]:
        return [h for h in self.holdings if h.meta.epoch == epoch and overlap(h.range, (lo, hi))]

    def divide(self, holding: Holding, inner: Range) -> list[Effect]:
        """Cut a range out of a holding."""
        lo, hi = max(inner[0], holding.meta.lo), min(inner[1], holding.meta.hi)
        pieces = [(lo, hi), *without(holding.range, [(lo, hi)])]
        if len(pieces) == 1:
            return []
        effects = self.drop(holding)
        for piece in divided(holding, pieces):
            if piece.range != (lo, hi):
                piece.meta.pending, piece.meta.cap = None, None
            self.holdings.append(piece)
            effects += self.disk.whole(piece)
        return effects

    def moving(self, move: str) -> Holding | None:
        for holding in self.holdings:
            if holding.meta.pending is not None and holding.meta.pending.move == move:
                return holding
        return None

    def prepared(self, move: str) -> Holding | None:
        return next((h for h in self.holdings if h.meta.prepared_for == move), None)

    def undecided(self, move: str) -> list[Effect]:
        """The move is off, as far as this node is concerned."""
        holding = self.moving(move)
        if holding is None:
            return []
        holding.meta.pending, holding.meta.cap = None, None
        return [self.store(holding)]

    def give(self, holding: Holding, given: Given) -> list[Effect]:
        """The decision: from τ on these buckets are another's. Durable before it is told."""
        pending = holding.meta.pending
        assert pending is not None
        assert holding.meta.given is None
        self.decided[pending.move] = given
        for move in list(self.decided)[:-MOST_DECIDED]:
            del self.decided[move]
        holding.meta.given, holding.meta.pending, holding.meta.cap = given, None, None
        if given.parallel:
            holding.meta.kind, holding.meta.tau = OLD, given.at
        return [self.store(holding), Persist("decided", _encode(self.decided))]

    # --- in its own time ---

    def report(self) -> list[Effect]:
        loads = tuple([h.load() for h in self.holdings if h.meta.active])
        for holding in self.holdings:
            holding.tick_work = 0
        hot = hottest(rows_by_key(self.owned()))
        return [Send(self.directory.manager, Report(loads, self.version, hot))]

    def goodbye(self) -> list[Effect]:
        return [Send(self.directory.manager, Goodbye())]

    def tidy(self, now_us: int) -> list[Effect]:
        """Moves that nobody pursues are off; what was given away and is not wanted is forgotten."""
        effects: list[Effect] = []
        for holding in list(self.holdings):
            pending = holding.meta.pending
            if pending is not None and now_us - pending.since_us > 2 * self.times.abort_us:
                effects += self.undecided(pending.move)
            holding.wanted_us = holding.wanted_us or now_us
            idle = now_us - holding.wanted_us > self.times.forget_us
            over = holding.meta.given is not None or holding.is_finished
            if idle and (over or not holding.meta.active):
                effects += self.drop(holding)
        return [*effects, *self.arriving.tidy(now_us, 3 * self.times.abort_us)]

    def owned(self) -> Iterable[Holding]:
        """Those whose next instants are this node's to say."""
        return [h for h in self.holdings if h.meta.active and h.meta.given is None]
