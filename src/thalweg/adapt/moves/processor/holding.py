"""What a processor has of one bucket range: the join's state, how far it has come, what it must
say.

A holding is a function of the splits' rows: it can be made from frozen state at τ, or by reading
the inputs again from `since` minus the reach of their windows. All that a move does is choose
the way.

    kind    full: all results; old: those with a part below tau; new: those whose parts are all from
            tau on
    since   results that begin before are another's
    acked   the union has said all instants below: after a restart, work goes on from there

Invariants: state is what entered before `frontier`; ticks never cross `cap`; segments once
written never change; what was not acknowledged can be made again from what is kept.
"""

from __future__ import annotations

from heapq import heappop, heappush

from thalweg.adapt.balancing.local import LocalOptimiser
from thalweg.adapt.moves.grouping import Below, added_up
from thalweg.adapt.moves.messages.data import FULL, NEW, OLD, Read, ResultsOf, RowsOf, Want
from thalweg.adapt.moves.messages.reports import Load
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.outbox import Outbox
from thalweg.adapt.moves.processor.rates import Rates
from thalweg.adapt.moves.query import Combination, Query, Row
from thalweg.adapt.moves.ranges import Range
from thalweg.adapt.moves.state.join import RangeJoin
from thalweg.adapt.moves.state.matching import States, match, reshaped
from thalweg.adapt.moves.state.shapes import Inputs, Shape
from thalweg.adapt.moves.state.tables import Segment
from thalweg.plan.windows import FOREVER


class Holding:
    def __init__(self, query: Query, meta: Meta, shape: Shape) -> None:
        self.query = query
        self.meta = meta
        self.join = RangeJoin(query, shape)
        leaves = range(len(query.streams))
        oldest = meta.tau if meta.kind == NEW else -FOREVER
        begin = max(meta.since, meta.acked)
        self.positions = [max(begin - query.reach(leaf), oldest) for leaf in leaves]
        self.frontier = min(self.positions)
        self.outbox = Outbox(begin)
        self.wanted_us = 0  # when the union last asked
        self.tick_work = 0  # since the last report
        self.optimiser = LocalOptimiser()
        self.rates = Rates(query, self.frontier)
        self.entered_from = self.frontier
        self.waiting: list[tuple[int, int, Row]] = []  # read, to enter later: a heap
        self._grouped = Below(query) if query.below is not None else None

    @property
    def range(self) -> Range:
        return self.meta.lo, self.meta.hi

    @property
    def shape(self) -> Shape:
        return self.join.shape

    def resume(self, states: States, at: int) -> int:
        """Go on at an instant with states frozen there; gives the work of recomputing."""
        found = match(self.query, self.shape, states, at, at)
        self.join = found.join
        self.frontier = self.entered_from = at
        self.fold()
        # Rows that wait for a slide are read again.
        self.positions = [at - window.delay for window in self.query.windows]
        self.outbox.since = max(self.outbox.since, at)
        return found.work

    # --- reading inputs ---

    def read(self, leaf: int) -> Read | None:
        m = self.meta
        until = FOREVER
        if m.cap is not None:
            until = m.cap
        elif m.given is not None and not m.given.parallel:
            until = m.given.at
        if not m.active or self.positions[leaf] >= until or self.is_finished:
            return None
        beside = m.given.epoch if m.given is not None and m.given.parallel else m.epoch
        new = m.kind == NEW
        return Read(m.lo, m.hi, m.epoch, beside, m.since, new, self.positions[leaf], until)

    def take(self, leaf: int, found: RowsOf) -> None:
        """What it has is trimmed; a gap is refused."""
        if not found.start <= self.positions[leaf] < found.upto:
            return
        oldest = self.meta.tau if self.meta.kind == NEW else -FOREVER
        for row in found.rows:
            if row[0] >= max(self.positions[leaf], oldest):
                start, end = self.query.windows[leaf].interval(row[0])
                if self.entered_from <= start < end:
                    heappush(self.waiting, (start, leaf, row))
        self.positions[leaf] = found.upto

    def advance(self) -> bool:
        """One tick, as far as the inputs reach."""
        limit = FOREVER if self.meta.cap is None else self.meta.cap
        upto = min(*self.positions, limit)
        if upto <= self.frontier or self.is_finished:
            return False
        entering: list[Combination] = []
        while self.waiting and self.waiting[0][0] < upto:
            _, leaf, row = heappop(self.waiting)
            entering.append(self.query.single(leaf, row))
            self.rates.count(leaf)
        before = self.join.work
        results = self.join.tick(entering, upto, self._emits)
        if self._grouped is not None:
            results = [r for r in self._grouped.apply(results, upto) if r[0] >= self.outbox.since]
        self.outbox.add(added_up(results) if self.query.above is not None else results)
        self.tick_work += self.join.work - before
        self.frontier = upto
        return True

    def fold(self) -> None:
        """Accumulators, from the rows that are there at the frontier."""
        if self._grouped is not None:
            self._grouped = Below(self.query)
            self._grouped.apply(self.join.live(self.frontier), self.frontier)

    def _emits(self, combination: Combination) -> bool:
        if self._grouped is not None:
            return True  # it needs all of them
        if combination[0] < self.outbox.since:
            return False
        if self.meta.kind != OLD:
            return True
        return any(part is not None and part[0] < self.meta.tau for part in combination[3])

    # --- what it says ---

    @property
    def is_finished(self) -> bool:
        """An old track whose old parts are all gone."""
        return self.meta.kind == OLD and self.frontier >= self.meta.tau + self.query.longest

    def has_said_all_from(self, at: int) -> bool:
        """Whether it has said results without old parts that begin at `at` or later."""
        return self.meta.kind != OLD and self.frontier > max(at, self.outbox.since)

    def acknowledge(self, said: int) -> None:
        if said > self.meta.acked:
            self.meta.acked = said
            self.outbox.acknowledge(said)

    def results(self, want: Want) -> ResultsOf | None:
        if want.start < self.outbox.since or not self.meta.active:
            return None
        m, given = self.meta, self.meta.given
        upto = self.frontier
        if given is not None and not given.parallel:
            upto = min(upto, given.at)
        rows, upto = self.outbox.between(want.start, max(upto, want.start))
        finished = self.is_finished and upto >= self.frontier
        return ResultsOf(
            m.lo, m.hi, m.epoch, want.start, upto, tuple(rows), given, finished, m.made
        )

    # --- state ---

    def states(self) -> dict[Inputs, dict[int, Segment]]:
        return {inputs: dict(table.segments) for inputs, table in self.join.tables.items()}

    def purge(self) -> dict[Inputs, list[int]]:
        """What nobody can need again: nothing from `acked` on meets it."""
        return self.join.purge(min(self.meta.acked, self.frontier) - 1)

    def reshape(self, shape: Shape) -> int:
        """Another shape from the frontier on; gives the work of recomputing."""
        before = self.join.work
        self.join = reshaped(self.join, shape, self.frontier, self.frontier).join
        self.meta.shape = shape.text(self.query.streams)
        return self.join.work - before

    def better_shape(self) -> Shape | None:
        """What local re-optimisation would change to, by the rates since the last look."""
        if not self.is_movable:
            return None
        windows = [self.join.tables[(leaf,)] for leaf in range(len(self.positions))]
        keys = set().union(*[window.keys() for window in windows])
        statistics = self.rates.since_last_look(self.frontier, max(1, len(keys)))
        if statistics is None:
            return None
        return self.optimiser.better(self.frontier, self.shape, statistics)

    @property
    def is_movable(self) -> bool:
        """Registered, decided, and no other track is needed for what was not said yet.

        What was made again can't know whether an earlier making has given the range away.
        """
        m = self.meta
        settled = m.kind == FULL or (m.kind == NEW and m.acked >= m.tau + self.query.longest)
        return m.registered and m.active and m.pending is None and m.given is None and settled

    def load(self) -> Load:
        m = self.meta
        tuples = sum(len(s) for t in self.join.tables.values() for s in t.segments.values())
        return Load(m.lo, m.hi, m.epoch, self.is_movable, self.tick_work, tuples)
