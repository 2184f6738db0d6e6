"""An engine whose data directory is in an object store goes on anywhere, with an empty disk."""

from __future__ import annotations

import tempfile
import uuid
from itertools import islice
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import compare
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, Collect, divided, push

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import LATE, side_file
from thalweg.engine.shared.state.remote import objects
from thalweg.engine.shared.state.remote.book_log import Fenced
from thalweg.engine.shared.state.remote.objects import objects_at


@settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=2),
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=5),
    st.sampled_from(WAYS),
)
def test_going_on_at_another_machine_does_not_show(
    workload: Workload, ticks: list[tuple[int, bool]], way: str
):
    script = workload.script()
    streams = {s.name: s for s in script.catalog.streams()}
    outlet, url = Collect(), f"memory:///{uuid.uuid4().hex}"

    def opened(root: str) -> SharedEngine:
        folder = Path(root) / uuid.uuid4().hex
        engine = SharedEngine(folder, outlet=outlet, objects=url, **divided(way))
        for stream in streams.values():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        return engine

    with tempfile.TemporaryDirectory() as root:
        engine = opened(root)
        for name, arrivals in workload.inputs.items():
            engine.landing.declare(streams[name], sorted({a.partition for a in arrivals}))
        waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        for size, moves in [*ticks, (1_000, True)]:
            for name, arrivals in waiting.items():
                push(engine, streams[name], list(islice(arrivals, size)))
            if moves:  # with tuples that wait for a tick; the old one is not even closed
                engine = opened(root)
            engine.run_to_end()
        for name in streams:
            engine.finish(name)
        engine.run_to_end()
        engine.close()
    for query in script.queries:
        expected = reference.evaluate(query.plan, workload.inputs)
        report = compare(query, expected, outlet.results.get(query.name, []))
        assert not report, report


SCRIPT = """
CREATE STREAM S (k BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM S [Range 10] GROUP BY k;
"""


def opened(folder: Path, url: str, outlet: Collect | None = None, **options: int) -> SharedEngine:
    script = compile_script(SCRIPT)
    engine = SharedEngine(folder, outlet=outlet or Collect(), objects=url, **options)
    engine.add_stream(*script.catalog.streams())
    engine.add_queries(script.queries)
    return engine


def rows(*stamps: int) -> pl.DataFrame:
    return pl.DataFrame({"k": [1] * len(stamps), "ts": stamps})


@pytest.fixture
def url() -> str:
    return f"memory:///{uuid.uuid4().hex}"


def test_what_was_acknowledged_is_there_and_late_tuples_are_set_aside(tmp_path, url):
    first = opened(tmp_path / "a", url)
    stream = first.streams["S"]
    assert first.landing.push(stream, rows(1, 20), batch_id="x").accepted == 2
    first.run_to_end()
    assert first.landing.push(stream, rows(2)).late == 1
    outlet = Collect()
    second = opened(tmp_path / "b", url, outlet)
    assert second.landing.push(stream, rows(1, 20), batch_id="x").repeated
    assert second.landing.push(stream, rows(3)).late == 1
    aside = (second.folder / side_file("S", LATE)).read_text().splitlines()
    assert [line.count('"ts"') for line in aside] == [1, 1]
    third = opened(tmp_path / "c", url)
    assert (third.folder / side_file("S", LATE)).read_text().splitlines() == aside


def test_an_engine_that_was_replaced_acknowledges_nothing_more(tmp_path, url):
    first = opened(tmp_path / "a", url)
    first.landing.push(first.streams["S"], rows(1))
    second = opened(tmp_path / "b", url)
    with pytest.raises(Fenced):
        first.landing.push(first.streams["S"], rows(2))
    with pytest.raises(Fenced):
        first.run_to_end()
    second.landing.push(second.streams["S"], rows(30))
    second.run_to_end()
    assert second.landing.backlog() == 0


def test_a_data_directory_on_a_disk_can_go_into_a_store(tmp_path, url):
    local = opened(tmp_path / "a", "")
    local.landing.push(local.streams["S"], rows(1, 20))
    local.run_to_end()
    local.landing.push(local.streams["S"], rows(21))
    local.close()
    opened(tmp_path / "a", url).close()
    outlet = Collect()
    there = opened(tmp_path / "b", url, outlet)
    there.landing.push(there.streams["S"], rows(25))
    there.finish("S")
    there.run_to_end()
    assert max(c.row[1] for c in outlet.results["q"]) == 3  # of 20, 21 and 25


def test_tuples_set_aside_before_there_was_a_store_go_along(tmp_path, url):
    local = opened(tmp_path / "a", "")
    local.landing.push(local.streams["S"], rows(20))
    local.run_to_end()
    assert local.landing.push(local.streams["S"], rows(2)).late == 1
    local.close()
    opened(tmp_path / "a", url).close()
    there = opened(tmp_path / "b", url)
    assert there.landing.push(there.streams["S"], rows(3)).late == 1
    aside = (there.folder / side_file("S", LATE)).read_bytes()
    assert aside.count(b"\n") == 2
    assert b"\0" not in aside
    assert (opened(tmp_path / "c", url).folder / side_file("S", LATE)).read_bytes() == aside


def test_a_stream_created_anew_has_its_own_tuples_set_aside(tmp_path, url):
    engine = opened(tmp_path / "a", url)
    for _ in range(2):
        engine.landing.push(engine.streams["S"], rows(20))
        engine.run_to_end()
        assert engine.landing.push(engine.streams["S"], rows(2)).late == 1
        engine.drop_query("q")
        engine.drop_stream("S")
        script = compile_script(SCRIPT)
        engine.add_stream(*script.catalog.streams())
        engine.add_queries(script.queries)
    engine.landing.push(engine.streams["S"], rows(20))
    engine.run_to_end()
    assert engine.landing.push(engine.streams["S"], rows(2)).late == 1
    aside = (engine.folder / side_file("S", LATE)).read_bytes()
    assert aside.count(b"\n") == 1
    assert (opened(tmp_path / "c", url).folder / side_file("S", LATE)).read_bytes() == aside


def test_files_that_nobody_lists_go_from_the_store_too(tmp_path, url, monkeypatch):
    monkeypatch.setattr(objects, "_DISCARDED_AT_ONCE", 20)
    engine = opened(tmp_path / "a", url, retained_ticks=10)
    for ts in range(0, 3_000, 20):
        engine.landing.push(engine.streams["S"], rows(ts))
        engine.run_to_end()
    engine.close()
    opened(tmp_path / "b", url).close()
    assert len(objects_at(url).keys("segments/")) < 100
    assert len(objects_at(url).keys("landed/")) < 100


def test_a_first_tick_asks_for_all_its_state_at_once(tmp_path, url, monkeypatch):
    before = opened(tmp_path / "a", url)
    for ts in range(0, 60, 20):
        before.landing.push(before.streams["S"], rows(ts, ts + 1, ts + 9))
        before.run_to_end()
    needed = {s.bundle for s in before.manifest}
    before.close()
    fetched, real = [], Folder.fetch

    def fetch(folder, names):
        real(folder, names)
        fetched.append({p.name for p in folder.here.iterdir()})

    monkeypatch.setattr(Folder, "fetch", fetch)
    after = opened(tmp_path / "b", url)
    after.landing.push(after.streams["S"], rows(70))
    after.run_to_end()
    assert len(needed) > 1
    assert needed <= fetched[0]
