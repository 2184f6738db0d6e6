from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.names import (
    LATE,
    REJECTED,
    file_name,
    rejecting_relation,
    rejects_table,
    result_run,
    result_table,
    side_file,
    source_folder,
    state_owner,
    state_part,
    state_table,
    stem_stream,
    stem_table,
)

ODD = ['a"b', "../x", "a/b", "a", "Größe", "x" * 300, "Reading", "reading", "", ".", "..", "a\0b"]


@given(st.text(), st.text())
def test_a_name_reads_back_from_its_table_and_is_no_others(one: str, other: str) -> None:
    assert stem_stream(stem_table(one, ())) == one
    assert state_owner(state_table(one, other, "ends")) == (one, other)
    assert state_part(state_table(one, other, "ends")) == "ends"
    assert result_run(result_table(one, other)) == (one, other)
    assert rejecting_relation(rejects_table(one)) == one
    assert state_owner(stem_table(one, ())) is None
    assert (stem_table(one, ()) == stem_table(other, ())) == (one == other)


@given(st.text(), st.text())
def test_a_file_stays_in_its_folder_and_is_no_others(one: str, other: str) -> None:
    assert "/" not in file_name(one)
    assert file_name(one) not in ("", ".", "..")
    assert len(file_name(one).encode()) <= 100
    assert (file_name(one) == file_name(other)) == (one == other)


@pytest.mark.parametrize("name", ODD)
def test_every_file_of_a_stream_is_below_the_data_directory(name: str, tmp_path: Path) -> None:
    for path in (side_file(name, LATE), side_file(name, REJECTED), source_folder(name)):
        assert (tmp_path / path).resolve().is_relative_to(tmp_path)
        assert len(Path(path).parts) == 2


def test_a_plain_name_is_its_own_file() -> None:
    assert side_file("Reading_2", REJECTED) == "rejects/Reading_2.jsonl"


def test_dropping_a_stream_leaves_those_alone_whose_names_begin_like_it(tmp_path: Path) -> None:
    script = compile_script(
        'CREATE STREAM "a" (k BIGINT) TIMESTAMP BY ts BIGINT;'
        'CREATE STREAM "a/b" (k BIGINT) TIMESTAMP BY ts BIGINT;'
        'CREATE QUERY q AS SELECT x.k FROM "a/b" [Range 9] x, "a/b" [Range 9] y WHERE x.k = y.k;'
    )
    outlet = Collect()
    engine = SharedEngine(tmp_path / "data", outlet=outlet, durable=False)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    engine.push("a/b", pl.DataFrame({"ts": [1], "k": [7]}))
    engine.push("a/b", pl.DataFrame({"ts": [2], "k": [7]}))
    engine.tick()
    engine.drop_stream("a")
    engine.push("a/b", pl.DataFrame({"ts": [3], "k": [0]}))
    engine.finish("a/b")
    engine.run_to_end()
    assert sum(c.op == "+" and c.row == (7,) for c in outlet.results["q"]) == 4
    engine.close()


@pytest.mark.parametrize("name", [n for n in ODD if n and "\0" not in n])
def test_a_stream_of_any_name_takes_rejects_and_comes_back(name: str, tmp_path: Path) -> None:
    quoted = name.replace('"', '""')
    script = compile_script(
        f'CREATE STREAM "{quoted}" (k BIGINT) TIMESTAMP BY ts BIGINT;'
        f'CREATE QUERY "q {quoted}" AS SELECT k FROM "{quoted}" [Now];'
    )
    for times in (1, 2):
        engine = SharedEngine(tmp_path / "data", durable=False)
        (stream,) = script.catalog.streams()
        engine.add_stream(stream)
        engine.add_queries(script.queries)
        receipt = engine.push(name, pl.DataFrame({"ts": [str(times), "no"], "k": ["1", "2"]}))
        assert (receipt.accepted, receipt.rejected) == (1, 1)
        engine.tick()
        lines = (engine.folder / side_file(name, REJECTED)).read_text().splitlines()
        assert len(lines) == times
        engine.close()
    assert {p.name for p in tmp_path.iterdir()} == {"data"}
