from pathlib import Path

import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.shared.results import Emission
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.site import Site

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)


def test_rows_are_counted_across_restarts(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    assert site.queries()[0].rows == 2
    site.close()
    again = open_here()
    again.push("S", rows((4, 4)))
    again.settle()
    assert again.queries()[0].rows == 3
    again.execute("DROP QUERY q; CREATE QUERY q AS SELECT a FROM S")
    assert again.queries()[0].rows == 0


def test_a_sink_that_fails_once_makes_no_other_repeat_itself(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT)
    left = [2]

    def fail_twice(_: Emission) -> None:
        if left[0]:
            left[0] -= 1
            raise ConnectionError("gone for a moment")

    site.attach("q", "a", JsonLinesSink(tmp_path / "a.jsonl"))
    site.attach("q", "b", CallbackSink(fail_twice))
    site.attach("q", "c", JsonLinesSink(tmp_path / "c.jsonl"))
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    assert left == [0]
    for name in ("a.jsonl", "c.jsonl"):
        assert (tmp_path / name).read_text().count("\n") == 2
    assert site.queries()[0].rows == 2


def test_a_sink_that_keeps_failing_is_given_up_and_the_tick_goes_through(site: Site) -> None:
    site.execute(SCRIPT)

    def fail(_: Emission) -> None:
        raise ConnectionError("gone for good")

    site.attach("q", "broken", CallbackSink(fail))
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert said(site, "q") == [(1, "+", 1)]
    assert site.health().ok
    (status,) = site.queries()
    assert [(s.name, s.error) for s in status.sinks] == [
        ("broken", "ConnectionError: gone for good")
    ]
