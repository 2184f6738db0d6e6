"""Members of groups that say much: tasks make their rows, which are those of the reference."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import compare
from tests.drawn import examples
from tests.engine.shared.adapter import Collect, divided, feed

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.generators import make_generator
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.results import large
from thalweg.engine.shared.results.emission import TickOutput
from thalweg.engine.shared.results.large import NO_MEMBER, LargeEmission, parts_of
from thalweg.engine.shared.results.large_members import large_members, without
from thalweg.engine.shared.tick import delivery
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.csv import CsvSink
from thalweg.engine.sinks.jsonl import JsonLinesSink


class Parted(Collect):
    """Takes every large emission in its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.met: Counter[str] = Counter()

    def deliver(self, output: TickOutput) -> None:
        for emission in output.emissions:
            if isinstance(emission, LargeEmission):
                whole = emission._parted
                rows = pl.concat([p.emission().rows for p in parts_of(whole)])
                assert rows.equals(emission.rows)
                assert rows.height == emission.height
                of = "query" if whole.member == NO_MEMBER else "member"
                self.met[f"{of}, pushed" if whole.is_pushed else of] += 1
        super().deliver(output)


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(delivery, "LARGE", 1)
    monkeypatch.setattr(large, "A_PART", 3)


@settings(
    max_examples=examples(10),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(workloads(queries=4), st.sampled_from(["rows", "runs"]))
def test_parts_of_members_are_what_the_reference_says(
    everything_is_large, workload: Workload, way: str
):
    script, outlet = workload.script(), Parted()
    with tempfile.TemporaryDirectory() as folder:
        engine = SharedEngine(
            Path(folder),
            outlet=outlet,
            durable=False,
            sharing=Sharing.WHEREVER_POSSIBLE,
            **divided(way),
        )
        for stream in script.catalog.streams():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        feed(engine, script.catalog, workload.inputs, 5)
        engine.close()
    for query in script.queries:
        expected = reference.evaluate(query.plan, workload.inputs)
        report = compare(query, expected, outlet.results.get(query.name, []))
        assert not report, report


GROUPED = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT, start_price DOUBLE)
    TIMESTAMP BY timestamp TIMESTAMP;
CREATE QUERY dear AS SELECT sellerID, COUNT(*) AS n FROM OpenAuction [Range 30 Second]
    WHERE start_price > 20 GROUP BY sellerID;
CREATE QUERY cheap AS SELECT sellerID, COUNT(*) AS n FROM OpenAuction [Range 30 Second]
    WHERE start_price > 5 GROUP BY sellerID;
CREATE QUERY items AS SELECT itemID, start_price FROM OpenAuction [Range 9 Second]
    WHERE start_price > 30;
CREATE QUERY some_items AS SELECT itemID, start_price FROM OpenAuction [Range 5 Second]
    WHERE start_price > 10;
"""


def lines_of(folder: Path, way: str) -> tuple[dict[str, bytes], Counter[str]]:
    script, outlet, noted = compile_script(GROUPED), SinkOutlet(), Parted()
    engine = SharedEngine(
        folder / "data",
        outlet=outlet,
        durable=False,
        sharing=Sharing.WHEREVER_POSSIBLE,
        **divided(way),
    )
    (stream,) = script.catalog.streams()
    engine.add_stream(stream)
    engine.add_queries(script.queries)
    for query in script.queries:
        for sink in (JsonLinesSink(folder / query.name), CsvSink(folder / f"{query.name}.csv")):
            name = type(sink).__name__
            open_where_it_was(engine.store, query.name, name, sink)
            outlet.attach(query.name, name, sink)
    delivered = outlet.deliver

    def deliver(output: TickOutput) -> None:
        noted.deliver(output)
        delivered(output)

    outlet.deliver = deliver  # type: ignore[method-assign]
    options = {"rate": "100", "duration": "60", "seed": "3"}
    made = make_generator("auctions", options).batches("OpenAuction", 200, 0)
    for _, batch in zip(range(4), made, strict=False):
        engine.push(stream.name, pl.from_arrow(batch))
        engine.tick()
    engine.finish(stream.name)
    engine.run_to_end()
    outlet.close()
    engine.close()
    files = [folder / f"{q.name}{end}" for q in script.queries for end in ("", ".csv")]
    return {file.name: file.read_bytes() for file in files}, noted.met


@pytest.mark.parametrize("way", ["rows", "runs"])
def test_sinks_of_members_get_the_same_bytes(tmp_path: Path, monkeypatch, way: str):
    expected, met = lines_of(tmp_path / "whole", way)
    assert not met
    monkeypatch.setattr(delivery, "LARGE", 20)
    monkeypatch.setattr(large, "A_PART", 7)
    found, met = lines_of(tmp_path / "parts", way)
    assert found == expected
    assert met["member, pushed"]
    assert met["member"]
    assert all(len(text.splitlines()) > 20 for text in expected.values())


def test_large_members_are_found_by_their_rows():
    frames = [pl.DataFrame({"m": m}, schema={"m": pl.UInt32}) for m in ([0, 0, 2], [], [2, 2, 5])]
    assert large_members(frames, "m", 2) == {0: 2, 2: 3}
    assert large_members([], "m", 1) == {}
    left = without(frames, "m", {0, 2})
    assert np.concatenate([f["m"].to_numpy() for f in left]).tolist() == [5]
