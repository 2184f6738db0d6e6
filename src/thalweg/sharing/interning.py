"""Normal forms that share their equal parts.

Ten thousand queries of one shape differ in a few constants. All else they have in common is kept
once, and what is the same object is also quickly found to be equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from thalweg.plan.catalog import StreamDef
from thalweg.sharing.core import Core, NormalQuery, Residual

MOST_PARTS = 100_000  # then all are forgotten, and gathered anew: queries come and go for years

T = TypeVar("T")


class Pool:
    def __init__(self) -> None:
        self._parts: dict[object, object] = {}
        self._streams: dict[tuple[int, ...], tuple[StreamDef, ...]] = {}

    def one(self, part: T) -> T:
        """The object that stands for all that are equal to this one."""
        if len(self._parts) >= MOST_PARTS:
            self._parts.clear()
        return self._parts.setdefault(part, part)  # type: ignore[return-value]

    def normal(self, query: NormalQuery) -> NormalQuery:
        """An equal one, of shared parts."""
        return NormalQuery(
            self._core(query.core),
            self.one(query.above) if query.above else (),
            query.kind,
            self.one(query.names),
        )

    def _core(self, core: Core) -> Core:
        return Core(
            self._same_streams(core.streams),
            self.one(core.windows),
            self.one(core.joins),
            tuple([(self.one(e), values) for e, values in core.ranges]),
            tuple([self._residual(r) for r in core.residuals]),
            self.one(core.outputs),
        )

    def _residual(self, residual: Residual) -> Residual:
        return replace(
            residual, template=self.one(residual.template), types=self.one(residual.types)
        )

    def _same_streams(self, streams: tuple[StreamDef, ...]) -> tuple[StreamDef, ...]:
        # By identity: streams are a catalog's own, and have much to be hashed. They stay alive
        # here, so nothing else can have their ids.
        return self._streams.setdefault(tuple(map(id, streams)), streams)
