"""MJoin over SteMs: Δ(A ⋈ B ⋈ C) = ΔA ⋈ B' ⋈ C' ∪ A ⋈ ΔB ⋈ C' ∪ A ⋈ B ⋈ ΔC.

Each input's delta probes the other inputs one after the other (DHTJoin 2.1.2, COSMOS ch. 5); where
it pays, intermediate results are kept (`shapes`), and probed instead of their inputs. A' is A with
ΔA: which rows are old and which are new is told by their start, so a base stream needs no second
copy. The order of probing comes with the tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import (
    E,
    H,
    T,
    W,
    concat,
    empty_relation,
    name,
)
from thalweg.engine.shared.kernels.coalesce import coalesced
from thalweg.engine.shared.kernels.join.kept import Keeping
from thalweg.engine.shared.kernels.join.prefixes import Prefix, Route, routes_in
from thalweg.engine.shared.kernels.join.probe import Rows, delta_of, probe, store
from thalweg.engine.shared.kernels.join.probing import Step, count_probes, steps
from thalweg.engine.shared.kernels.join.shared_probe import FAR, probe_once
from thalweg.engine.shared.kernels.linear import outputs
from thalweg.engine.shared.kernels.source import own_source
from thalweg.engine.shared.state.hashing import hash_columns, key_hashes
from thalweg.engine.shared.tick.messages import Sample
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import shift


def join(task: Task, flow: Flow, op: ph.Join) -> pl.DataFrame:
    parts = []
    shape = task.shape(flow, op)
    keeping = None if shape is None else Keeping(task, flow, op, shape)
    for start in range(len(op.inputs)):
        store(task, flow, op, start)
        parts.append(_joined(task, flow, op, start, keeping))
    if keeping is not None:
        keeping.write()
    sample = task.spec.samples.get(task.plan.place_of(flow, op))
    if sample is not None:
        _look_beside(task, flow, op, sample)
    return concat(parts, empty_relation(op.types))


def _joined(
    task: Task, flow: Flow, op: ph.Join, start: int, keeping: Keeping | None
) -> pl.DataFrame:
    routes = task.once("routes", lambda: routes_in(task))
    route = routes[flow.name, task.plan.name_of(op), start]
    way = _Way(task, flow, op, start, route)
    counts: Counts = []
    parts: list[pl.DataFrame] = []
    compact = COMPACTED_FROM
    passing = None if keeping is None else partial(keeping.take, dict(route.kept))
    for rows in way.rows(len(route.steps), op.wanted, route.prefixes, counts, passing):
        times = [pl.Series(T, rows.start), pl.Series(E, rows.end), pl.Series(W, rows.weight)]
        # With the times beside them, outputs that are constants get their height.
        parts.append(rows.data.hstack(times).select(*outputs(op.exprs), T, E, W))
        if sum(p.height for p in parts) >= compact:
            # What the inputs take back cancels, however much of it there is.
            parts = [coalesced(pl.concat(parts), task.range_of(flow)[1])]
            compact = max(COMPACTED_FROM, 2 * parts[0].height)
            if parts[0].height > MOST_PAIRS and task.plan.name_of(op) in _counted_pairs(task):
                raise TooManyPairs
    for step, (probed, matched) in zip(route.steps, counts, strict=True):
        if probed and not step.kept:
            task.record(op, start, step.target, probed, matched)
    if len(op.inputs) > 2:
        of = task.report.probes.setdefault(task.plan.place_of(flow, op), {})
        count_probes(of, start, route.steps, counts)
    return concat(parts, empty_relation(op.types))


def _look_beside(task: Task, flow: Flow, op: ph.Join, sample: Sample) -> None:
    """Let some new rows probe in another order, to see how many they would meet."""
    planned = steps(op, sample.start, sample.order)
    way = _Way(task, flow, op, sample.start, Route(planned, ()))
    rows, counts = way.begin(op.wanted[sample.start]), []
    for step in planned:
        rows = rows.some(SAMPLED)
        if not len(rows):
            break
        of = op.wanted[step.target]
        found = list(probe(task, flow, op, sample.start, step, rows, of))
        counts.append([len(rows), sum(map(len, found))])
        if not found:
            break
        rows = found[0]
    of = task.report.sampled.setdefault(task.plan.place_of(flow, op), {})
    count_probes(of, sample.start, planned, counts)


class TooManyPairs(RuntimeError):
    """A tick whose pairs would fill the memory: its query is parked, and the others go on."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {MOST_PAIRS:,} pairs of rows match in one tick, and each is counted: "
            "add an equality to the condition, shorten the windows, or push smaller batches"
        )


def _counted_pairs(task: Task) -> frozenset[str]:
    """Joins without a key of which only some columns are looked at, without repeats: sub-queries
    that look at all pairs (`semijoins._by_pairs`). Their result is small, and all pairs count."""

    def find() -> frozenset[str]:
        found = set()
        for _, op in task.plan.operators:
            below = op.input if isinstance(op, ph.Distinct) else None
            while isinstance(below, ph.Exchange):
                below = below.input
            if isinstance(below, ph.Join) and not below.keys:
                found.add(task.plan.name_of(below))
        return frozenset(found)

    return task.once("counted pairs", find)


SAMPLED = 256  # rows, at every step
COMPACTED_FROM = 1 << 19  # rows of a join's result
MOST_PAIRS = 1 << 22  # that are counted in a tick; each takes up to 0.4 KB
SHARED_UPTO = 1 << 21  # rows that joins have in common; more are made by each of them in pieces

Counts = list[list[int]]  # rows that probed and rows that matched, step by step
Passing = Callable[[int, Rows], None]  # who looks at rows after each step


@dataclass(frozen=True)
class _Way:
    """One input's delta on its way through the others."""

    task: Task
    flow: Flow
    op: ph.Join
    start: int
    route: Route

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.route.steps

    def rows(
        self,
        length: int,
        wanted: list[list[int]],
        prefixes: Sequence[Prefix],
        counts: Counts,
        passing: Passing | None = None,
    ) -> Iterator[Rows]:
        """After so many steps, in pieces, with the wanted columns of each input that is bound
        then. `counts` is complete when all are taken."""
        rows, so_far = self._first(wanted, prefixes)
        counts += [*so_far, *([0, 0] for _ in range(length - len(so_far)))]
        return self._onward(rows, len(so_far), length, wanted, counts, passing)

    def _first(self, wanted: list[list[int]], prefixes: Sequence[Prefix]) -> tuple[Rows, Counts]:
        """What others have found already, or the delta itself."""
        for i, longest in reversed(list(enumerate(prefixes))):
            key = ("prefix", longest.key)
            shorter = prefixes[:i]
            found = self.task.once(key, lambda p=longest, s=shorter: self._shared(p, s))
            if found is not None:
                rows, counts = found
                return self._mine(rows, longest.length, wanted), [list(c) for c in counts]
        return self._met(wanted) or (self.begin(wanted[self.start]), [])

    def _onward(
        self,
        rows: Rows,
        done: int,
        length: int,
        wanted: list[list[int]],
        counts: Counts,
        passing: Passing | None,
    ) -> Iterator[Rows]:
        """Depth first: a piece goes through all steps before the next one is made."""
        if not len(rows):
            return
        if passing is not None:
            passing(done, rows)
        if done == length:
            yield rows
            return
        step = self.steps[done]
        counts[done][0] += len(rows)
        of = wanted[step.target]
        for piece in probe(self.task, self.flow, self.op, self.start, step, rows, of):
            counts[done][1] += len(piece)
            yield from self._onward(piece, done + 1, length, wanted, counts, passing)

    def _met(self, wanted: list[list[int]]) -> tuple[Rows, Counts] | None:
        """The rows after the first step, where many joins begin with it together."""
        if self.route.shared is None:
            return None
        found = probe_once(self.task, self.flow, self.route.shared)
        if found is None:
            return None
        pairs = found.of(self.route.consumer)
        counts = [[pairs.probed, len(pairs.rows)]]
        weight = np.ones(len(pairs.rows), dtype=np.int64)
        if not len(pairs.rows):
            return Rows(pairs.data.clear(), pairs.start, pairs.end, weight), counts
        named = {name(i * FAR + c): name(o + c) for i, o, c in self._columns(1, wanted)}
        data = pairs.data[list(named)][pairs.rows]
        data.columns = list(named.values())
        return Rows(data, pairs.start, pairs.end, weight), counts

    def begin(self, wanted: list[int]) -> Rows:
        """The delta's rows whose first probe this task owns."""
        first, offset = self.op.inputs[self.start], self.op.offsets[self.start]
        probe = self.steps[0].probe
        if isinstance(first, ph.Source):
            keys = tuple(shift(e, -offset) for e in probe)
            own = own_source(self.task, self.flow, first, keys)
            if own is not None:
                return replace(self._bind(own, wanted), hashes=own[H].to_numpy())
        delta = delta_of(self.task, self.flow, first)
        rows = self._bind(delta, wanted)
        if self.task.is_alone:
            return rows
        if probe:
            hashes = key_hashes(rows.data, [to_polars(e) for e in probe])
            rows = replace(rows, hashes=hashes)
        else:
            hashes = hash_columns([delta[T]])
        return rows.where((hashes >= self.task.low) & (hashes <= self.task.high))

    def _bind(self, delta: pl.DataFrame, wanted: list[int]) -> Rows:
        data = delta[[name(c) for c in wanted]]
        data.columns = [name(self.op.offsets[self.start] + c) for c in wanted]
        return Rows(data, *(delta[c].to_numpy() for c in (T, E, W)))

    # --- rows that several joins have in common: columns are named by the order of binding

    def _shared(self, prefix: Prefix, shorter: Sequence[Prefix]) -> tuple[Rows, Counts] | None:
        """None where there are so many that they had better not be kept."""
        wanted = [list[int]() for _ in self.op.inputs]
        for position, columns in zip(self._bound(prefix.length), prefix.columns, strict=True):
            wanted[position] = list(columns)
        counts: Counts = []
        parts: list[Rows] = []
        for piece in self.rows(prefix.length, wanted, shorter, counts):
            parts.append(piece)
            if sum(map(len, parts)) > SHARED_UPTO:
                return None
        if not parts:
            nothing = np.empty(0, dtype=np.int64)
            return Rows(pl.DataFrame(), nothing, nothing, nothing), counts
        rows = Rows.joined(parts)
        named = {name(o + c): f"{i}.{c}" for i, o, c in self._columns(prefix.length, wanted)}
        return replace(rows, data=rows.data.rename(named)), counts

    def _mine(self, rows: Rows, length: int, wanted: list[list[int]]) -> Rows:
        if not len(rows):
            return rows
        named = {f"{i}.{c}": name(o + c) for i, o, c in self._columns(length, wanted)}
        return replace(rows, data=rows.data[list(named)].rename(named))

    def _bound(self, length: int) -> list[int]:
        return [self.start, *(s.target for s in self.steps[:length])]

    def _columns(self, length: int, wanted: list[list[int]]) -> Iterator[tuple[int, int, int]]:
        """(when its input is bound, where its input begins, its place there) of every column."""
        for i, position in enumerate(self._bound(length)):
            yield from ((i, self.op.offsets[position], c) for c in wanted[position])
