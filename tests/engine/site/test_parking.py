from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.kernels.registry import KERNELS
from thalweg.engine.site import Site
from thalweg.engine.site.parking import culprits, is_environment_error, last_line

SCRIPT = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY good AS SELECT a FROM S [Range 2];
CREATE QUERY poisoned AS SELECT DISTINCT a FROM S [Range 2];
CREATE QUERY counted AS SELECT COUNT(*) AS n FROM S [Range 2];
"""


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """DISTINCT fails."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("no distinct today")

    monkeypatch.setitem(KERNELS, ph.Distinct, fail)  # type: ignore[arg-type]
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    return monkeypatch


@given(st.sets(st.integers(0, 40)), st.integers(0, 41))
def test_exactly_the_queries_that_fail_are_found(bad: set[int], count: int) -> None:
    names = [str(i) for i in range(count)]
    rehearsals = 0

    def fails(some: Sequence[str]) -> bool:
        nonlocal rehearsals
        rehearsals += 1
        return any(int(n) in bad for n in some)

    there = sorted((n for n in names if int(n) in bad), key=int)
    assert culprits(names, fails) == there
    assert rehearsals <= 1 + 2 * len(there) * 6


def test_a_poisoned_query_is_parked_and_the_others_go_on(
    open_here: OpenSite, poison: pytest.MonkeyPatch
) -> None:
    site, twin = open_here(), open_here("without")
    site.execute(SCRIPT)
    twin.execute(SCRIPT.replace("DISTINCT ", ""))
    for part in (rows((1, 1), (2, 2)), rows((5, 3), (6, 3)), rows((20, 9))):
        for each in (site, twin):
            each.push("S", part)
            each.settle()
    assert {q.name: q.state for q in site.queries()} == {
        "good": "running",
        "poisoned": "parked",
        "counted": "running",
    }
    (parked,) = [q for q in site.queries() if q.state == "parked"]
    assert parked.error == "tick 1: ZeroDivisionError: no distinct today"
    for name in ("good", "counted"):
        assert said(site, name) == said(twin, name) != []
    assert said(site, "poisoned") == []
    assert site.health().ok


def test_a_parked_query_stays_parked_until_it_is_made_again(
    open_here: OpenSite, poison: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    site.close()
    again = open_here()
    assert [q.name for q in again.queries() if q.state == "parked"] == ["poisoned"]
    poison.undo()
    again.execute(
        "DROP QUERY poisoned; CREATE QUERY poisoned AS SELECT DISTINCT a FROM S [Range 2]"
    )
    again.push("S", rows((5, 3), (6, 4)))
    again.settle()
    assert said(again, "poisoned")
    assert all(q.state == "running" for q in again.queries())


def test_a_query_that_is_parked_late_keeps_what_it_said(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    before = said(site, "poisoned")
    assert before
    monkeypatch.setitem(KERNELS, ph.Distinct, lambda *_: 1 / 0)  # type: ignore[arg-type]
    site.push("S", rows((7, 7)))
    site.settle()
    assert [q.state for q in site.queries()] == ["running", "parked", "running"]
    assert said(site, "poisoned") == before
    assert (7, "+", 7) not in said(site, "good")  # 7 is not final yet
    assert (5, "-", 2) in said(site, "good")


def test_a_query_that_can_not_be_planned_is_parked_too(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)

    def planned(queries: Iterable[Run], *rest: Any) -> Any:
        chosen = list(queries)
        if any(q.name == "poisoned" for q in chosen):
            raise KeyError("no plan for this")
        return make_plan(chosen, *rest)

    monkeypatch.setattr("thalweg.engine.shared.tick.ticks.make_plan", planned)
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert [q.name for q in site.queries() if q.state == "parked"] == ["poisoned"]
    assert said(site, "good") == [(1, "+", 1)]


def test_a_full_disk_parks_nobody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.execute(SCRIPT)
    site.settle()
    run, left = site.engine.executor.run, [5]

    def full(*args: object) -> list[bytes]:
        if left[0]:
            left[0] -= 1
            raise OSError(28, "No space left on device")
        return run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr(site.engine.executor, "run", full)
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert left == [0]
    assert all(q.state == "running" for q in site.queries())
    assert said(site, "good") == [(1, "+", 1)]


def test_errors_out_of_spark_workers_are_read() -> None:
    text = (
        "Job aborted: Traceback (most recent call last):\n"
        '  File "x.py", line 3, in f\n    1 / 0\n'
        "ZeroDivisionError: division by zero\n\n\tat org.apache.spark.Something(Some.scala:1)"
    )
    assert last_line(RuntimeError(text)) == "ZeroDivisionError: division by zero"
    assert not is_environment_error(RuntimeError(text))
    assert is_environment_error(RuntimeError(text.replace("ZeroDivisionError", "MemoryError")))
    assert last_line(ValueError("a\nb")) == "ValueError: a"
    assert last_line(ConnectionRefusedError(111, "no")).startswith("Spark is gone")
    assert is_environment_error(ConnectionRefusedError(111, "no"))


def test_a_parked_member_keeps_what_it_said_and_can_be_replaced(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are made of its group's, which is parked with it."""
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    site = open_here()
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts RETAIN 1000")
    for n in range(3):
        site.execute(f"CREATE QUERY q{n} AS SELECT a FROM S [Range 100] WHERE a > {n}")
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    before = [said(site, f"q{n}") for n in range(3)]
    assert all(q.group for q in site.queries())
    run = site.engine.executor.run

    def fail(*args: object) -> list[bytes]:
        if not site.book.parked():
            raise ZeroDivisionError
        return run(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as poisoned:
        poisoned.setattr(site.engine.executor, "run", fail)
        site.push("S", rows((7, 7)))
        site.settle()
    assert {q.state for q in site.queries()} == {"parked"}
    assert [said(site, f"q{n}") for n in range(3)] == before
    site.close()
    site = open_here()
    assert [said(site, f"q{n}") for n in range(3)] == before
    site.execute("CREATE OR REPLACE QUERY q1 AS SELECT a FROM S [Range 100] WHERE a > 1")
    site.push("S", rows((9, 9), (10, 10)))
    site.settle()
    # Row 2 was said before, and the tuples that came since are new.
    assert [r for r in said(site, "q1") if r[1] == "+"][:1] == before[1]
    assert sorted(r[2] for r in said(site, "q1") if r[1] == "+") == [2, 3, 7, 9]


def test_a_sub_query_with_too_many_pairs_in_a_tick_is_parked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of filling the memory, with all that runs beside it."""
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr("thalweg.engine.shared.kernels.join.join.COMPACTED_FROM", 100)
    monkeypatch.setattr("thalweg.engine.shared.kernels.join.join.MOST_PAIRS", 1_000)
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY pairs AS SELECT a FROM S [Range 999]"
        " WHERE EXISTS (SELECT 1 FROM T [Range 999] WHERE T.a > S.a AND T.a + S.a > 0);"
        "CREATE QUERY crossed AS SELECT S.a FROM S [Range 999], T [Range 999] WHERE T.a > S.a;"
    )
    few, many = range(10), range(100, 200)
    for stamps in (few, many):
        for stream in ("S", "T"):
            site.push(stream, rows(*((ts, ts % 50) for ts in stamps)))
        site.settle()
    states = {q.name: (q.state, q.error) for q in site.queries()}
    assert states["crossed"] == ("running", None)  # as many rows as it says
    assert states["pairs"][0] == "parked"
    assert "pairs of rows match in one tick" in str(states["pairs"][1])
    assert said(site, "pairs")  # what came before
