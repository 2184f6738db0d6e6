"""A broken engine does not get past the hand-written cases."""

from collections.abc import Callable
from functools import partial

import polars as pl
import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.runner import check
from tests.engine.shared.adapter import shared_engine

from thalweg.engine.shared import frames
from thalweg.engine.shared.frames import E, W
from thalweg.engine.shared.kernels import expiry as endings
from thalweg.engine.shared.kernels import extremes, rows, running, source, streams
from thalweg.engine.shared.kernels.join import join, probe
from thalweg.engine.shared.state import stems, tables
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.shared.tick.task import Task

CASES = all_cases()


def _late_by_one(window, stamps):
    start, end = _intervals(window, stamps)
    return start, end + 1


_intervals = source.intervals


def _not_netted(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return frame.select(*by, W)


def _new_rows_forgotten(task, stream, keys, since, before, *, own):
    return task.stored_between(stems.stem_table(stream, keys), since, before)


def _starts_only(frame: pl.DataFrame, upto: int) -> pl.DataFrame:
    return frame.drop(E)


def _all_rows_forgotten(*_, **__) -> None:
    return None


def _first_in_line(timed: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    return _entered(timed.with_columns(pl.lit(frames.FOREVER, dtype=pl.Int64).alias(E)), columns)


_entered = rows._intervals


def _every_task_owns_all(self: Task, frame: pl.DataFrame, keys: list[pl.Expr]) -> pl.DataFrame:
    return frame


MUTANTS: dict[str, tuple[object, str, Callable]] = {
    "a joined row stays an instant too long": (probe, "intervals", _late_by_one),
    "changes at one instant are not netted": (streams, "net", _not_netted),
    "joins do not see the tick's own tuples": (probe, "stem_segments", _new_rows_forgotten),
    "ends within the tick are forgotten": (frames, "events", _starts_only),
    "ends beyond the tick are forgotten": (endings, "_remember", _all_rows_forgotten),
    "a Rows window never lets go": (rows, "_intervals", _first_in_line),
    "sums start from nothing at each tick": (running, "stored_sums", _all_rows_forgotten),
    "MIN and MAX forget what they had": (extremes, "_stored", _all_rows_forgotten),
    "derived join inputs are not stored": (join, "store", _all_rows_forgotten),
    "rows that several tasks have are counted by each": (Task, "owned", _every_task_owns_all),
    "what a table holds is not found": (tables, "find", _all_rows_forgotten),
}


# Small topics that between them catch all of these come first: the first failure ends a test.
SOON = ("sources", "decimals", "filters", "views", "submission", "relations_to_streams")
IN_ORDER = sorted(CASES, key=lambda case: SOON.index(case.topic) if case.topic in SOON else 99)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_cases_catch(mutant: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(*MUTANTS[mutant])
    tasks = 2 if MUTANTS[mutant][0] is Task else 1
    engine = partial(shared_engine, executor=InProcess(tasks))
    # Some only show where tuples that meet come in one tick, some where they do not.
    ways = [partial(engine, tuples_per_tick=n) for n in (1_000, 1)]
    assert any(_fails(way, case) for case in IN_ORDER for way in ways)


def _fails(engine, case) -> bool:
    try:
        check(engine, case)
    except AssertionError:
        return True
    return False
