"""How long the old parts of a parallel move last, by which stamps: measured on the real join."""

from __future__ import annotations

from functools import lru_cache

from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.join import RangeJoin
from thalweg.adapt.moves.state.shapes import left_deep
from thalweg.experiments.dcape.arrivals import Arrivals
from thalweg.plan.windows import TimeWindow

TICKS_PER_S = 10


@lru_cache
def old_gone_after_s(window_s: float, stamps: str, rate: float = 10.0, keys: int = 400) -> float:
    """From τ = 2 W on, until no state of ((A B) C) holds a row with an old part; without load."""
    window = int(window_s * TICKS_PER_S)
    query = Query(("A", "B", "C"), (TimeWindow(window),) * 3, stamps=stamps)
    join = RangeJoin(query, left_deep((0, 1, 2)))
    tau, last = 2 * window, 2 * window
    rows = Arrivals((rate,) * 3).rows(1, int(6 * window_s), keys, TICKS_PER_S)
    for number, (_, leaf, row) in enumerate(rows):
        join.tick([query.single(leaf, row)], number, lambda c: False)
    for table in join.tables.values():
        for start, end, _, parts in table.rows():
            if start < 6 * window and any(p is not None and p[0] < tau for p in parts):
                last = max(last, end)
    return (last - tau) / TICKS_PER_S
