"""Select, project, join as a chain of Spark's stream-stream joins.

Each input row is valid over [start, end); a joined row over the intersection. That intervals meet
is said twice: on instants, which is exact, and on event times, from which Spark works out when it
may drop a row from its state (a bound such as `left.event <= right.event + INTERVAL …`).

Of a joined row's event times only one is carried on, because Spark allows just one: that of the
input with the shortest window, as it bounds the state best. A row whose windows are all unbounded
carries none: Spark takes the watermark of a join's output from the bounds alone, so it would drop
such a row as late when its event time is old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native.expressions import compile_expr
from thalweg.engine.native.spj import SelectProjectJoin
from thalweg.plan.expr import Call, Expr, columns_of
from thalweg.plan.windows import FOREVER

START, END, EVENT = "start", "end", "event"


@dataclass(frozen=True, slots=True)
class _Joined:
    frame: DataFrame
    members: frozenset[int]
    length: int | None  # of the window whose event time is carried
    has_event: bool = True


def input_column(number: int, column: int) -> str:
    """What a frame given to `interval_rows` calls its columns."""
    return f"i{number}_{column}"


def interval_rows(query: SelectProjectJoin, frames: Sequence[DataFrame]) -> DataFrame:
    """The result's rows with their intervals: `start`, `end`, then the outputs `o0`, `o1`, …

    Frame n holds input n: its columns, `start` (the instant) and `event` with a watermark.
    """
    columns = [
        F.col(input_column(number, column))
        for number, source in enumerate(query.inputs)
        for column in range(len(source.stream.fields))
    ]
    pending = list(query.condition)
    first, *rest = _order(query)
    done = _Joined(*_prepared(query, frames, first, pending, columns))
    for number in rest:
        done = _join(query, done, frames, number, pending, columns)
    assert not pending, "every conjunct has been applied"
    outputs = [
        compile_expr(output, columns).alias(f"o{position}")
        for position, output in enumerate(query.outputs)
    ]
    return done.frame.select(START, END, *outputs)


def _prepared(
    query: SelectProjectJoin,
    frames: Sequence[DataFrame],
    number: int,
    pending: list[Expr],
    columns: Sequence[Column],
) -> tuple[DataFrame, frozenset[int], int | None]:
    """An input with its end and its own conditions applied."""
    length = query.inputs[number].length
    end = F.lit(FOREVER) if length is None else F.col(START) + F.lit(length + 1)
    frame = frames[number].withColumn(END, end)
    for condition in _take(query, pending, frozenset([number])):
        frame = frame.filter(compile_expr(condition, columns))
    return frame, frozenset([number]), length


def _join(
    query: SelectProjectJoin,
    left: _Joined,
    frames: Sequence[DataFrame],
    number: int,
    pending: list[Expr],
    columns: Sequence[Column],
) -> _Joined:
    frame, alone, length = _prepared(query, frames, number, pending, columns)
    right = _renamed(frame)
    members = left.members | alone
    conditions = _take(query, pending, members)
    on = [compile_expr(c, columns) for c in conditions]
    on += [F.col(START) < F.col(f"right_{END}"), F.col(f"right_{START}") < F.col(END)]
    on += _event_bounds(left, length)
    joined_frame = left.frame
    if not any(_is_equality_between(query, c, left.members, alone) for c in conditions):
        # Spark wants an equality. This one always holds, and no optimizer can see that it does.
        joined_frame = joined_frame.withColumn("left_one", F.pmod(F.hash(START), F.lit(1)))
        right = right.withColumn("right_one", F.pmod(F.hash(f"right_{START}"), F.lit(1)))
        on.append(F.col("left_one") == F.col("right_one"))
    joined = joined_frame.join(right, reduce(lambda a, b: a & b, on), "inner")
    return _merged(joined, left, members, length)


def _renamed(frame: DataFrame) -> DataFrame:
    return frame.withColumnsRenamed({name: f"right_{name}" for name in (START, END, EVENT)})


def _event_bounds(left: _Joined, length: int | None) -> list[Column]:
    if not left.has_event:
        return []
    bounds = []
    if length is not None:
        bounds.append(F.col(EVENT) <= F.col(f"right_{EVENT}") + _interval(length))
    if left.length is not None:
        bounds.append(F.col(f"right_{EVENT}") <= F.col(EVENT) + _interval(left.length))
    return bounds


def _interval(length: int) -> Column:
    """An instant is a millisecond of event time."""
    return F.expr(f"INTERVAL '{length // 1000}.{length % 1000:03d}' SECOND")


def _merged(
    joined: DataFrame, left: _Joined, members: frozenset[int], length: int | None
) -> _Joined:
    """One interval and at most one event time again."""
    meeting = {
        START: F.greatest(START, f"right_{START}"),
        END: F.least(END, f"right_{END}"),
    }
    kept = [
        name
        for name in joined.columns
        if name not in (START, END, EVENT, "left_one") and not name.startswith("right_")
    ]
    ours = left.length if left.has_event else None
    if ours is None and length is None:
        event, shortest = None, None
    elif length is None or (ours is not None and ours <= length):
        event, shortest = F.col(EVENT), ours
    else:
        event, shortest = F.col(f"right_{EVENT}").alias(EVENT), length
    columns = [F.col(name) for name in kept] + [c.alias(n) for n, c in meeting.items()]
    frame = joined.select(*columns, *([event] if event is not None else []))
    return _Joined(frame, members, shortest, event is not None)


def _order(query: SelectProjectJoin) -> list[int]:
    """Shortest window first, then along equalities: a cross join only where there is no other."""

    def length(number: int) -> int:
        found = query.inputs[number].length
        return FOREVER if found is None else found

    left = set(range(len(query.inputs)))
    order = [min(left, key=length)]
    left.discard(order[0])
    while left:
        members = frozenset(order)
        linked = {
            n
            for n in left
            if any(_is_equality_between(query, c, members, frozenset([n])) for c in query.condition)
        }
        order.append(min(linked or left, key=length))
        left.discard(order[-1])
    return order


def _is_equality_between(
    query: SelectProjectJoin, condition: Expr, left: frozenset[int], right: frozenset[int]
) -> bool:
    if not (isinstance(condition, Call) and condition.function == "="):
        return False
    one, other = (_inputs_of(query, arg) for arg in condition.args)
    if not one or not other:
        return False
    return (one <= left and other <= right) or (one <= right and other <= left)


def _take(query: SelectProjectJoin, pending: list[Expr], members: frozenset[int]) -> list[Expr]:
    """The conjuncts that only need these inputs; they are no longer pending."""
    ready = [c for c in pending if _inputs_of(query, c) <= members]
    pending[:] = [c for c in pending if c not in ready]
    return ready


def _inputs_of(query: SelectProjectJoin, expr: Expr) -> frozenset[int]:
    return frozenset(query.input_of(column) for column in columns_of(expr))
