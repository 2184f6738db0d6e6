"""All columns are kept; wide ones while somebody looks at them, and from then on."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.compile.columns import needed_columns, valued_columns
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups.cost_model import Sharing

STREAMS = """
CREATE STREAM S (k INTEGER, a INTEGER, b INTEGER, c VARCHAR) TIMESTAMP BY at;
CREATE STREAM R (k INTEGER, d INTEGER) TIMESTAMP BY at;
"""


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("SELECT a FROM S [Now] WHERE b > 1", {"S": {1, 2}}),
        ("SELECT COUNT(*) AS n FROM S [Range 5]", {"S": {0}}),
        ("SELECT k, MAX(b) AS m FROM S [Range 5] GROUP BY k", {"S": {0, 2}}),
        ("SELECT S.c FROM S [Range 5], R [Now] WHERE S.k = R.k", {"S": {0, 3}, "R": {0}}),
        ("SELECT DISTINCT a FROM S [Range 5]", {"S": {1}}),
        ("SELECT a FROM S [Rows 3]", {"S": {0, 1, 2, 3}}),  # ties are told by the whole tuple
        ("SELECT * FROM S [Now]", {"S": {0, 1, 2, 3}}),
    ],
)
def test_columns_that_a_query_looks_at(query: str, needed: dict[str, set[int]]) -> None:
    (made,) = compile_script(STREAMS + f"CREATE QUERY q AS {query};").queries
    assert needed_columns([compile_query(made.plan)]) == needed


@pytest.mark.parametrize(
    ("query", "valued"),
    [
        ("SELECT a FROM S [Now] WHERE b > 1", {"S": {1, 2}}),
        (
            "SELECT S.a, COUNT(*) AS n FROM S [Range 5], R [Now] WHERE S.k = R.k GROUP BY S.a",
            {"S": {0, 1}, "R": {0}},
        ),
        ("SELECT a FROM S [Now] WHERE b IN (SELECT d FROM R [Range 5])", {"S": {1, 2}, "R": {1}}),
        ("SELECT a FROM S [Rows 3]", {"S": {0, 1, 2, 3}}),
        ("SELECT DISTINCT * FROM S [Range 5]", {"S": {0, 1, 2, 3}}),
        ("SELECT y FROM T", {"T": {1}}),
        ("SELECT RSTREAM y FROM T", {"T": {0, 1, 2}}),  # it speaks at each of its changes
        (
            "SELECT S.a, T.z FROM S [Range 5] LEFT JOIN T ON S.k = T.x",
            {"S": {0, 1}, "T": {0, 2}},
        ),
    ],
)
def test_columns_whose_values_make_a_difference(query: str, valued: dict[str, set[int]]) -> None:
    relation = "CREATE RELATION T (x INTEGER, y INTEGER, z INTEGER) TIMESTAMP BY at;"
    (made,) = compile_script(STREAMS + relation + f"CREATE QUERY q AS {query};").queries
    assert valued_columns([compile_query(made.plan)]) == valued


def stored_columns(engine: SharedEngine) -> set[str]:
    from thalweg.engine.shared.state.segments import SegmentReader

    reader = SegmentReader()
    return {
        column
        for s in engine.manifest
        if s.table.startswith("stem/S/")
        for column in reader.read(engine.manifest.folder, s).frame.columns
        if column.startswith("c")
    }


def rows(*stamps: int) -> pl.DataFrame:
    one = [1] * len(stamps)
    return pl.DataFrame(
        {"at": list(stamps), "k": one, "a": one, "b": one, "c": ["x"] * len(stamps)}
    )


def test_all_columns_are_kept(tmp_path: Path) -> None:
    script = compile_script(STREAMS + "CREATE QUERY few AS SELECT a FROM S [Range 100];")
    engine = SharedEngine(tmp_path, durable=False)
    engine.add_queries(script.queries)
    engine.push("S", rows(1, 2, 3))
    engine.tick()
    assert stored_columns(engine) == {"c0", "c1", "c2", "c3"}
    engine.close()


WIDE = """
CREATE STREAM S (k INTEGER WIDE, a INTEGER WIDE, b INTEGER WIDE, c VARCHAR WIDE) TIMESTAMP BY at;
"""


def test_a_query_that_wants_more_sees_the_stream_from_its_next_tuple_on(tmp_path: Path) -> None:
    script = compile_script(
        WIDE
        + "CREATE QUERY few AS SELECT a FROM S [Range 100];"
        + "CREATE QUERY more AS SELECT a, b FROM S [Range 100];"
        + "CREATE QUERY same AS SELECT a + 1 AS n FROM S [Range 100];"
    )
    few, more, same = script.queries
    engine = SharedEngine(tmp_path, durable=False, sharing=Sharing.NEVER)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries([few])
    engine.push("S", rows(1, 2, 3))
    engine.tick()
    assert stored_columns(engine) == {"c1"}
    engine.add_queries([more, same])
    engine.push("S", rows(4, 5))
    engine.tick()
    assert dict(engine.roster.queries["more"].horizons) == {"S": 4}
    assert engine.roster.queries["same"].horizons == ()  # of what it reads, all is there
    said = [e.rows.select("_ts", "_op").rows() for e in engine.emissions("more")]
    assert said == [[(4, 1)]]
    engine.drop_query("more")
    engine.push("S", rows(6, 7))
    engine.tick()
    engine.push("S", rows(8, 9))
    engine.tick()
    again = compile_script(
        "CREATE QUERY more_again AS SELECT b FROM S [Range 100];", script.catalog
    ).queries
    engine.add_queries(again)
    assert dict(engine.roster.queries["more_again"].horizons) == {"S": 10}
    engine.close()
