"""What is sent to Kafka for a tick: changes, or upserts by a key."""

import json

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.results.emission import Emission, EndMark
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.kafka_records import CHANGES, UPSERTS, check_key, mark_record, records
from thalweg.plan.catalog import QueryDef


def said(*rows: tuple[int, int, str, int]) -> Emission:
    """(ts, op, id, n)"""
    schema = {"_ts": pl.Int64, "_op": pl.Int8, "c0": pl.String, "c1": pl.Int64}
    return Emission("q", 1, ("id", "n"), 0, 9, pl.DataFrame(rows, schema, orient="row"))


def test_changes_have_a_key_where_one_is_wanted() -> None:
    found = records(said((1, 1, "a", 5)), ("ID",), CHANGES)
    assert json.loads(found["key"][0]) == {"ID": "a"}
    assert json.loads(found["value"][0]) == {
        "query": "q",
        "ts": 1,
        "op": "+",
        "row": {"id": "a", "n": 5},
    }
    assert records(said((1, 1, "a", 5)), (), CHANGES)["key"].to_list() == [None]


def test_an_upsert_is_the_row_and_a_key_that_is_gone_is_a_tombstone() -> None:
    found = records(
        said((1, -1, "a", 5), (1, 1, "a", 6), (2, -1, "a", 6), (2, 1, "b", 1)), ("id",), UPSERTS
    )
    pairs = [
        (json.loads(k)["id"], None if v is None else json.loads(v))
        for k, v in zip(found["key"], found["value"], strict=True)
    ]
    assert pairs == [("a", {"id": "a", "n": 6}), ("a", None), ("b", {"id": "b", "n": 1})]
    assert found.select("instant", "ordinal").rows() == [(1, 1), (2, 0), (2, 1)]


def test_a_key_that_does_not_tell_rows_apart_is_refused() -> None:
    with pytest.raises(SinkError, match=r'two rows of key {"id":"a"} at instant 1'):
        records(said((1, 1, "a", 5), (1, 1, "a", 6)), ("id",), UPSERTS)


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(SinkError, match="q has no column user to be the key: it has id, n"):
        records(said((1, 1, "a", 5)), ("user",), CHANGES)


def query(text: str) -> QueryDef:
    (found,) = compile_script(
        f"CREATE STREAM S (id VARCHAR, n INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS {text}"
    ).queries
    return found


def test_a_key_is_looked_at_before_anything_is_written() -> None:
    plain = query("SELECT id, n FROM S [Range 9]")
    check_key(plain, (), CHANGES)
    check_key(plain, ("ID",), CHANGES)
    with pytest.raises(SinkError, match=r"it has id, n; did you mean id\?"):
        check_key(plain, ("idd",), CHANGES)


def test_upserts_take_keys_that_never_have_two_rows() -> None:
    check_key(query("SELECT id, SUM(n) AS s FROM S [Range 9] GROUP BY id"), ("id",), UPSERTS)
    check_key(query("SELECT id, n FROM S [Partition By id Rows 1]"), ("id",), UPSERTS)
    # A stream takes nothing back: the last row of a key is what a reader has.
    check_key(query("ISTREAM SELECT id, n FROM S [Range 9]"), ("id",), UPSERTS)
    with pytest.raises(SinkError, match="not certain of id: GROUP BY id, read"):
        check_key(query("SELECT id, n FROM S [Range 9]"), ("id",), UPSERTS)


def test_the_end_of_a_version_is_a_record_behind_its_rows() -> None:
    ended = Emission("q", 1, ("id", "n"), 7, 8, said((7, -1, "a", 5)).rows, EndMark(1, 7))
    found = mark_record(ended)
    assert json.loads(found["value"][0])["op"] == "end"
    assert found.select("instant", "ordinal").rows() == [(7, 1)]
