"""What a tick computes: all runs as flows of shared operators, and the SteMs that they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import operator_id
from thalweg.engine.shared.frames import Types
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True)
class Flow:
    """Queries over the same base streams that started together: they share a frontier."""

    name: str
    streams: tuple[str, ...]
    outputs: tuple[tuple[str, ph.Ending], ...]  # of queries, and of groups
    horizons: tuple[tuple[str, int], ...] = ()  # tuples before these instants do not count

    @cached_property
    def operators(self) -> tuple[ph.AnyOp, ...]:
        """All that its outputs are made of, each once, inputs first."""
        found = {id(op): op for _, output in self.outputs for op in ph.walk(output)}
        return tuple(found.values())

    def horizon(self, stream: str) -> int:
        return dict(self.horizons).get(stream, BEGINNING)


@dataclass(frozen=True)
class Plan:
    """All flows, and the keys by which each stream's SteMs are indexed.

    Base relations are there whether somebody reads them or not, and so are streams that retain
    history.
    """

    flows: tuple[Flow, ...]
    stems: dict[str, tuple[tuple[Expr, ...], ...]]
    types: dict[str, Types]
    kept: dict[str, frozenset[int]]  # of each stream's columns, those that its SteMs have
    signed: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()  # of these, those that never end and are never waited for
    names: dict[int, str] = field(default_factory=dict, compare=False)
    levels: dict[int, int] = field(default_factory=dict, compare=False)
    memo: dict[str, Any] = field(default_factory=dict, compare=False)  # what ticks worked out

    def __getstate__(self) -> dict[str, Any]:
        # Names and levels are kept by object identity, which another process does not share.
        return {**self.__dict__, "names": {}, "levels": {}, "memo": {}}

    @property
    def outputs(self) -> Iterator[tuple[str, ph.Ending]]:
        return ((run, output) for flow in self.flows for run, output in flow.outputs)

    @property
    def operators(self) -> Iterator[tuple[Flow, ph.AnyOp]]:
        return ((flow, op) for flow in self.flows for op in flow.operators)

    @property
    def read_relations(self) -> frozenset[str]:
        """The base relations that somebody reads."""
        return self.signed.intersection(s for f in self.flows for s in f.streams)

    @property
    def depth(self) -> int:
        """How many levels a tick has: rows change hands between them."""
        return 1 + max((self.level_of(output) for _, output in self.outputs), default=0)

    def name_of(self, op: ph.AnyOp) -> str:
        """Its identity, computed once per operator object."""
        found = self.names.get(id(op))
        if found is None:
            found = self.names[id(op)] = operator_id(op, self.name_of)
        return found

    def place_of(self, flow: Flow, op: ph.AnyOp) -> str:
        """An operator of a flow, in one word."""
        return f"{flow.name}/{self.name_of(op)}"

    def level_of(self, op: ph.AnyOp) -> int:
        found = self.levels.get(id(op))
        if found is None:
            found = self.levels[id(op)] = ph.level(op)
        return found
