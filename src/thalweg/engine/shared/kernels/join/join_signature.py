"""By what joins are recognised that begin alike, or nearly so."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.probing import Step
from thalweg.engine.shared.kernels.join.shared_probe import FAR, Consumer, ProbeKey
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.plan.expr import Expr, columns_of, conjunction, remap, shift


@dataclass(frozen=True)
class JoinSignature:
    """One input's delta on its way through the others."""

    plan: Plan
    flow: Flow
    instants: int
    op: ph.Join
    start: int
    steps: tuple[Step, ...]

    @cached_property
    def columns(self) -> list[list[int]]:
        """That somebody wants, of each input in the order of binding."""
        wanted = self.op.wanted
        return [wanted[i] for i in (self.start, *(s.target for s in self.steps))]

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """What the first step is, the first two, and so on, as far as base streams are probed."""
        first = self.op.inputs[self.start]
        if not isinstance(first, ph.Source):
            return ()
        key: Hashable = (self.instants, self._horizon(first), self.plan.name_of(first))
        keys = []
        for step in self.steps:
            target = self.op.inputs[step.target]
            if step.kept or not isinstance(target, ph.Source):
                break
            checks = frozenset(self._placed(step.checks))
            how = (step.sees_new, step.index, self._placed(step.probe), checks)
            key = (key, self._horizon(target), self.plan.name_of(target), how)
            keys.append(key)
        return tuple(keys)

    @cached_property
    def probe(self) -> ProbeKey | None:
        """The first probe, if it is of a base stream by another."""
        step, pair = self.steps[0], self._pair
        if pair is None:
            return None
        first, second = pair
        return ProbeKey(
            self.instants,
            first.stream,
            self._horizon(first),
            second.stream,
            self._horizon(second),
            self._placed(step.probe),
            step.index,
            step.sees_new,
        )

    @cached_property
    def consumer(self) -> Consumer:
        assert self._pair is not None
        first, second = self._pair
        filters = (first.predicate, shift(second.predicate, FAR))
        return Consumer(
            (first.window.length, second.window.length),
            first.predicate,
            conjunction((*filters, *self._placed(self.steps[0].checks))),
        )

    @property
    def looked_at(self) -> tuple[set[int], set[int]]:
        """The first two inputs' columns that are wanted, or that their filters look at."""
        assert self._pair is not None
        of = zip(self.columns, self._pair, strict=False)
        first, second = ({*wanted, *columns_of(source.predicate)} for wanted, source in of)
        return first, second

    @cached_property
    def _pair(self) -> tuple[ph.Source, ph.Source] | None:
        """The first two inputs, if they are base streams under windows that do not slide."""
        inputs = self.op.inputs
        first, second = inputs[self.start], inputs[self.steps[0].target]
        is_kept = bool(self.steps[0].kept)
        if is_kept or not (isinstance(first, ph.Source) and isinstance(second, ph.Source)):
            return None
        delays = first.window.delay or second.window.delay
        return None if delays else (first, second)

    def _horizon(self, source: ph.Source) -> int:
        return self.flow.horizon(source.stream)

    def _placed(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(remap(e, self._place) for e in exprs)

    def _place(self, column: int) -> int:
        """A column by when its input is bound, not by where the query names it."""
        owner = self._owners[column]
        return self._depths[owner] * FAR + column - self.op.offsets[owner]

    @cached_property
    def _owners(self) -> list[int]:
        return [i for i, source in enumerate(self.op.inputs) for _ in source.types]

    @cached_property
    def _depths(self) -> dict[int, int]:
        return {self.start: 0, **{s.target: i for i, s in enumerate(self.steps, 1)}}
