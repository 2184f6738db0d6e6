import json
from pathlib import Path

import pytest
from tests.engine.sinks.emissions import numbers, output

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.state.store import Store
from thalweg.engine.sinks.base import Sink, SinkOutlet, open_where_it_was
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.sinks.jsonl import JsonLinesSink


def opened(sink: Sink) -> Sink:
    sink.open(None)
    return sink


def values(path: Path) -> list[int]:
    return [json.loads(line)["row"]["n"] for line in path.read_text().splitlines()]


def test_each_query_reaches_its_own_sinks(tmp_path: Path):
    outlet = SinkOutlet()
    got: list[str] = []
    outlet.attach("q", "file", opened(JsonLinesSink(tmp_path / "q")))
    outlet.attach("r", "file", opened(JsonLinesSink(tmp_path / "r")))
    outlet.attach("q", "call", opened(CallbackSink(lambda e: got.append(f"{e.query}/{e.upto}"))))
    outlet.deliver(output(numbers(1, 1, 2), numbers(1, 3, query="r"), tick=1))
    assert (values(tmp_path / "q"), values(tmp_path / "r"), got) == ([1, 2], [3], ["q/1"])
    outlet.detach("q")
    outlet.deliver(output(numbers(2, 4), numbers(2, 5, query="r"), tick=2))
    outlet.close()
    assert (values(tmp_path / "q"), values(tmp_path / "r")) == ([1, 2], [3, 5])


def test_a_tick_that_failed_and_comes_again_is_written_once(tmp_path: Path):
    outlet = SinkOutlet()
    failures = [OSError("disk full")]

    def call(emission: Emission) -> None:
        if emission.upto == 2 and failures:
            raise failures.pop()

    outlet.attach("q", "file", opened(JsonLinesSink(tmp_path / "q")))
    outlet.attach("q", "call", opened(CallbackSink(call)))
    outlet.deliver(output(numbers(1, 1), tick=1))
    with pytest.raises(OSError, match="disk full"):
        outlet.deliver(output(numbers(2, 2), tick=2))
    assert values(tmp_path / "q") == [1, 2]
    outlet.deliver(output(numbers(2, 2), tick=2))
    outlet.deliver(output(numbers(3, 3), tick=3))
    assert values(tmp_path / "q") == [1, 2, 3]


def test_a_first_opening_is_in_the_book_before_any_tick(tmp_path: Path):
    """Else a crash in the first tick would make its output look like what was there before."""
    (tmp_path / "q.jsonl").write_text("before\n")
    store = Store(tmp_path / "data")
    sink = JsonLinesSink(tmp_path / "q.jsonl")
    open_where_it_was(store, "q", "file", sink)
    sink.write(numbers(1, 1))  # and no commit
    sink.close()
    open_where_it_was(store, "q", "file", JsonLinesSink(tmp_path / "q.jsonl"))
    assert (tmp_path / "q.jsonl").read_text() == "before\n"
    store.close()
