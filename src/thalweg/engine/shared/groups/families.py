"""Families: members of a group that differ in constants and windows only, run as data.

A member's result is its profile over the representative's interval rows: filter, recompute the
interval's end for its own windows, project, net. Here that is done for all members of a family at
once, at the cost of the matches. Reading back one member's results is the same with a family of
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import holds, to_polars
from thalweg.engine.shared.frames import (
    FOREVER,
    MEMBER,
    OP,
    TS,
    E,
    T,
    W,
    dtype,
    empty_relation,
    name,
    names,
)
from thalweg.engine.shared.kernels.linear import outputs
from thalweg.engine.shared.ordering import order_of
from thalweg.plan.expr import Expr, conjunction
from thalweg.plan.nodes import StreamKind
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import window_end
from thalweg.sharing.index.constants import Coded, Constants

ENDLESS = -1  # the length of an unbounded window

Lengths = tuple[int, ...]  # of a member's windows, leaf by leaf


@dataclass(frozen=True)
class Family:
    """Its exprs are over the group's columns: attributes, then the leaves' timestamps."""

    kind: StreamKind | None
    outputs: tuple[Expr, ...]
    members: tuple[str, ...]
    slides: tuple[int, ...]  # of the leaves' windows, for all members
    lengths: np.ndarray  # leaves x members
    started: np.ndarray  # the instant from which each member's result counts
    horizons: np.ndarray | None  # leaves x members: older tuples do not count; None: all do
    constants: Constants
    residuals: tuple[Expr, ...]  # parameter i is the column behind the group's own
    parameters: pl.DataFrame  # a row for each member
    unique: int | None = None  # an output that no two rows have in common: a tuple's position

    @property
    def sort_columns(self) -> list[str]:
        """Columns of a result by which its rows are told apart, and ordered."""
        width = len(self.outputs) if self.unique is None else self.unique + 1
        return names(width)


def is_colocated(op: ph.Group, family: Family) -> bool:
    """Whether equal rows of a member are always in one task."""
    assert op.input.keys is not None
    return all(k in family.outputs for k in op.input.keys)


def ends_of(
    stamps: Sequence[np.ndarray], lengths: Sequence[int | np.ndarray], slides: Sequence[int]
) -> np.ndarray:
    """When rows end: with the first of their tuples that leaves its window."""
    end = np.full(len(stamps[0]), FOREVER)
    for stamp, length, slide in zip(stamps, lengths, slides, strict=True):
        if isinstance(length, np.ndarray):
            end = np.minimum(
                end, np.where(length == ENDLESS, FOREVER, window_end(stamp, length, slide))
            )
        elif length != ENDLESS:
            end = np.minimum(end, window_end(stamp, length, slide))
    return end


@dataclass(frozen=True)
class _Rows:
    """The representative's rows of a tick that some member may want, as a family looks at them."""

    frame: pl.DataFrame  # those that start, then those that may end
    starting: int
    projected: pl.DataFrame
    repeated: np.ndarray  # whether a row's projection stands there more than once
    codes: Coded

    @classmethod
    def of(cls, family: Family, started: pl.DataFrame, ended: pl.DataFrame) -> _Rows:
        projection = outputs(family.outputs)
        columns = names(len(family.outputs))
        started, codes = _wanted(family, started)
        # In canonical order, so that what is found row by row is in that order, too.
        shown = started.select(T, *projection)
        order = order_of(shown.select(T, *family.sort_columns))
        if order is not None:
            started, shown = started[order], shown[order]
            codes = {e: of[order] for e, of in codes.items()}
        shown = shown.drop(T)
        projected, frame = shown, started
        if family.unique is not None and family.kind is StreamKind.ISTREAM:
            ended = ended.clear()  # no equal row that it could cancel
        if ended.height:
            ended = ended.select(started.columns)
            if family.kind is StreamKind.ISTREAM:
                # An end only matters where it cancels the start of an equal row.
                gone = ended.select(T, *projection).with_row_index("_row")
                met = gone.join(shown, on=columns, how="semi", nulls_equal=True)["_row"]
                ended = ended[met.to_numpy()]
            ended, also = _wanted(family, ended)
            gone = ended.select(T, *projection).drop(T)
            projected, frame = pl.concat([shown, gone]), pl.concat([started, ended])
            codes = {e: np.concatenate([of, also[e]]) for e, of in codes.items()}
        if family.unique is None:
            repeated = projected.is_duplicated().to_numpy()
        else:
            repeated = np.zeros(projected.height, dtype=bool)
        return cls(frame, started.height, projected, repeated, codes)


def _wanted(family: Family, frame: pl.DataFrame) -> tuple[pl.DataFrame, Coded]:
    """The rows that some member may want, which are often few, and their codes."""
    constants = family.constants
    values = {e: frame.select(to_polars(e).alias("_")).to_series() for e in constants.expressions}
    codes = constants.coded(values)
    rows = constants.candidates(codes, frame.height)
    if len(rows) == frame.height:
        return frame, codes
    return frame[rows], {e: of[rows] for e, of in codes.items()}


@dataclass(frozen=True)
class _Events:
    """What happens to members' results: (row, member, instant, weight)."""

    row: np.ndarray
    member: np.ndarray
    instant: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def where(self, kept: np.ndarray) -> _Events:
        return _Events(self.row[kept], self.member[kept], self.instant[kept], self.weight[kept])

    @staticmethod
    def joined(parts: Sequence[_Events]) -> _Events:
        fields = ("row", "member", "instant", "weight")
        return _Events(*(np.concatenate([getattr(p, f) for p in parts]) for f in fields))


def changes(
    family: Family, started: pl.DataFrame, ended: pl.DataFrame, low: int, high: int
) -> pl.DataFrame:
    """`_m`, `_ts`, `_op`, `c…`: what each member says at the instants [low, high), member by
    member, each in canonical order."""
    rows = _Rows.of(family, started, ended)
    found = list(_events(family, rows, low, high))
    if not found:
        return _empty(family)
    events = _Events.joined(found)
    again = rows.repeated[events.row]
    if again.any():
        netted = _netted(family, rows, events.where(again))
        events = _Events.joined([events.where(~again), netted])
    if family.kind is not None:
        sign = 1 if family.kind is StreamKind.ISTREAM else -1
        events = events.where(events.weight == sign)
        events = replace(events, weight=np.abs(events.weight))  # a stream's tuples are all +
    return _ordered(family, rows, events)


def member_events(
    family: Family, started: pl.DataFrame, ended: pl.DataFrame, low: int, high: int
) -> pl.DataFrame:
    """`c0`, the member's place, `c1`, … and the times of a relation: what comes and goes, for
    operators above; nothing is netted."""
    rows = _Rows.of(family, started, ended)
    found = list(_events(family, rows, low, high))
    types = tuple(e.type for e in family.outputs)
    if not found:
        return empty_relation((BIGINT, *types))
    events = _Events.joined(found)
    data = rows.projected[events.row]
    data.columns = [name(i + 1) for i in range(len(types))]
    times = [
        pl.Series(T, events.instant),
        pl.Series(E, np.full(len(events), FOREVER)),
        pl.Series(W, events.weight),
    ]
    return pl.DataFrame([pl.Series(name(0), events.member)]).hstack([*data, *times])


def by_member(member_aggregates: pl.DataFrame) -> pl.DataFrame:
    """The result of operators that ran for all members (`lifting`), as `changes` gives it."""
    width = member_aggregates.width - 2
    data = {name(i): name(i - 1) for i in range(1, width)}
    rows = member_aggregates.select(pl.col(name(0)).cast(pl.UInt32).alias(MEMBER), TS, OP, *data)
    return rows.rename(data).sort(MEMBER, maintain_order=True)


def of_member(member_aggregates: pl.DataFrame, place: int) -> pl.DataFrame:
    return by_member(member_aggregates.filter(pl.col(name(0)) == place)).drop(MEMBER)


def _events(family: Family, rows: _Rows, low: int, high: int) -> Iterator[_Events]:
    frame = rows.frame
    width = frame.width - 1  # without the start
    stamps = [frame[name(c)].to_numpy() for c in range(width - len(family.lengths), width)]
    begins = frame[T].to_numpy()
    lengths, since = _common(family.lengths), _common(family.started[np.newaxis])
    # What is the same for all members is computed for rows, not for every pair.
    row_ends = None if lengths is None else ends_of(stamps, lengths, family.slides)
    for row, member in family.constants.match(rows.codes, frame.height):
        if row_ends is not None:
            end = row_ends[row]
        else:
            own = [of[member] for of in family.lengths]
            end = ends_of([s[row] for s in stamps], own, family.slides)
        start = family.started[member] if since is None else since[0]
        begin = begins[row]
        live = (begin < end) & (start < end)
        for place, stamp in enumerate(stamps if family.horizons is not None else ()):
            live &= stamp[row] >= family.horizons[place][member]  # type: ignore[index]
        if family.residuals:
            live &= _passing(family, frame, row, member)
        fresh = live & (row < rows.starting)
        over = live & (end < high) & (fresh | (end >= low))
        if family.kind is StreamKind.ISTREAM:
            over &= rows.repeated[row]
        elif family.kind is StreamKind.DSTREAM:
            fresh &= rows.repeated[row]
        plus = _Events(row, member, np.maximum(begin, start), np.ones(len(row), np.int64))
        yield plus if fresh.all() else plus.where(fresh)
        if over.any():
            yield _Events(row, member, end, np.full(len(row), -1, np.int64)).where(over)


def _common(columns: np.ndarray) -> tuple[int, ...] | None:
    """The values that all members have, if they all have the same."""
    first = columns[:, :1]
    return tuple(int(v) for v in first[:, 0]) if (columns == first).all() else None


def _passing(
    family: Family, frame: pl.DataFrame, row: np.ndarray, member: np.ndarray
) -> np.ndarray:
    """Which pairs fulfil all that no index can look up."""
    pairs = frame[row]
    if family.parameters.width:  # conditions may do without constants of the members' own
        pairs = pairs.hstack(family.parameters[member])
    return holds(pairs, conjunction(family.residuals)).to_numpy()


def _netted(family: Family, rows: _Rows, events: _Events) -> _Events:
    """Equal rows of one member at one instant add up."""
    columns = names(len(family.outputs))
    first = (
        rows.projected.with_row_index("_row")
        .select(pl.col("_row").first().over(columns))
        .to_series()
        .to_numpy()
    )
    keyed = pl.DataFrame(
        {"r": first[events.row], "m": events.member, "t": events.instant, W: events.weight}
    )
    summed = keyed.group_by("r", "m", "t", maintain_order=True).agg(pl.col(W).sum())
    summed = summed.filter(pl.col(W) != 0)
    weight = summed[W].to_numpy()
    times = np.abs(weight)
    return _Events(
        np.repeat(summed["r"].to_numpy().astype(np.int64), times),
        np.repeat(summed["m"].to_numpy(), times),
        np.repeat(summed["t"].to_numpy(), times),
        np.repeat(np.sign(weight), times),
    )


def _ordered(family: Family, rows: _Rows, events: _Events) -> pl.DataFrame:
    order = _canonical_order(family, rows, events)
    place = events.row[order]
    is_all = np.array_equal(place, np.arange(rows.projected.height))
    of = {
        MEMBER: pl.Series(events.member[order].astype(np.uint32)),
        TS: pl.Series(events.instant[order]),
        OP: pl.Series(events.weight[order].astype(np.int8)),
    }
    return pl.DataFrame(of).hstack(rows.projected if is_all else rows.projected[place])


def _canonical_order(family: Family, rows: _Rows, events: _Events) -> np.ndarray:
    """By member, instant, op and row."""
    if family.kind is StreamKind.ISTREAM and _rises(events.row):
        begins = rows.frame[T].to_numpy()
        if (begins[events.row] == events.instant).all():
            # Found row by row, and rows are in order already: only members are to be told apart.
            return _stable_order(events.member)
    keys = rows.projected.select(family.sort_columns)
    sorted_ = keys.with_row_index("_row").sort(*keys.columns, nulls_last=False)["_row"]
    rank = np.empty(len(sorted_), dtype=np.int64)
    rank[sorted_.to_numpy()] = np.arange(len(sorted_))
    by = pl.DataFrame(
        {
            MEMBER: events.member,
            TS: events.instant,
            OP: events.weight,
            "_rank": rank[events.row],
        }
    )
    return by.select(pl.arg_sort_by(*by.columns)).to_series().to_numpy()


def _rises(places: np.ndarray) -> bool:
    return bool((np.diff(places) >= 0).all())


def _stable_order(members: np.ndarray) -> np.ndarray:
    """A radix sort, 16 bits at a time, for which numpy is quick."""
    order = np.argsort(members.astype(np.uint16), kind="stable")
    if members.max(initial=0) >= 1 << 16:
        order = order[np.argsort((members[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def _empty(family: Family) -> pl.DataFrame:
    own = {MEMBER: pl.UInt32, TS: pl.Int64, OP: pl.Int8}
    of = {name(i): dtype(e.type) for i, e in enumerate(family.outputs)}
    return pl.DataFrame(schema={**own, **of})
