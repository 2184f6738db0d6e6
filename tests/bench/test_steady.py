"""The two benches of one engine, small and without Spark."""

from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest

from bench import equality, many_shapes, steady
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.experiments.report import Report


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(steady, "OnSpark", lambda _: InProcess())

    def report_of(bench: ModuleType, **parameters: object) -> Report:
        context = SimpleNamespace(sparkContext=None)
        monkeypatch.setattr(bench, "spark_session", lambda master: context)
        monkeypatch.setattr(bench, "warmed", nullcontext)
        return bench.run(bench.Parameters(**parameters), lambda text, fraction=None: None)

    return report_of


def test_every_join_of_many_is_one_of_its_own(run):
    report = run(
        many_shapes, queries=12, shapes=5, events=400, windows_s=(1, 2), share=0.3, ticks=3
    )
    (row,) = report.rows
    # The first two shapes have three queries, the others two.
    assert (row["queries"], row["groups"]) == (12, 5)
    assert abs(row["events a tick"] - 400) < 80
    assert row["rows out a tick"] > 0
    assert row["median s"] <= row["p95 s"]
    assert [g.name for g in report.goals] == ["median tick, 12 queries of 5 joins, 400 new events"]


def test_equality_filters_are_one_group_over_one_stream(run):
    report = run(equality, queries=400, events=1_000, ticks=3)
    (row,) = report.rows
    assert (row["queries"], row["groups"], row["events a tick"]) == (400, 1, 1_000)
    # 400 of 100,000 sellers are asked for.
    assert 0 <= row["rows out a tick"] < 40
    assert row["events/s"] == pytest.approx(1_000 / row["median s"])
