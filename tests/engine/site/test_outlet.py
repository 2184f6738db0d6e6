import json
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.base import SinkError
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


def test_a_sink_goes_on_after_a_restart_and_after_a_crash(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    assert site.write_to("q", "out.jsonl") == "sink-1"
    assert site.write_to("q", "parquet:rows", tmp_path / "elsewhere") == "sink-2"
    for i in range(3):
        site.push("S", rows((i, i)))
        site.settle()
    site.close()
    # A crash between sink and commit leaves more in the file than the book knows of.
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write("half a line")
    again = open_here()
    for i in range(3, 6):
        again.push("S", rows((i, i)))
        again.settle()
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["row"]["a"] for line in lines] == [0, 1, 2, 3, 4]
    again.detach("q", "sink-1")
    again.push("S", rows((6, 6)))
    again.settle()
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 5
    assert [s.name for s in again.queries()[0].sinks] == ["sink-2"]
    again.close()
    found = pl.read_parquet(tmp_path / "elsewhere" / "rows" / "*.parquet")
    assert sorted(found["a"].to_list()) == [0, 1, 2, 3, 4, 5]


def test_a_sink_that_is_none_is_refused(site: Site) -> None:
    site.execute(SCRIPT)
    for target in ("out", "xml:out", "jsonl:"):
        with pytest.raises(SinkError, match="there is no sink"):
            site.write_to("q", target)
    assert site.queries()[0].sinks == []
