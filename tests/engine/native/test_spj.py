import pytest

from thalweg.cql import compile_script
from thalweg.engine.native.spj import flatten
from thalweg.engine.native.unsupported import Unsupported
from thalweg.plan.expr import conjunction
from thalweg.plan.text import expr_text

STREAMS = """
CREATE STREAM S (a BIGINT, b VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (a BIGINT, c BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM U (c BIGINT, d VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE RELATION R (a BIGINT) TIMESTAMP BY ts BIGINT;
"""


def _flatten(query: str):
    return flatten(compile_script(f"{STREAMS} CREATE QUERY q AS {query};").queries[0].plan)


def _texts(query) -> list[str]:
    schema = tuple(f for source in query.inputs for f in source.stream.fields)
    return [expr_text(e, schema) for e in query.outputs]


def test_inputs_are_the_windows_in_order():
    query = _flatten("SELECT S.b FROM S [Now], T [Range 5], U WHERE S.a = T.a AND T.c = U.c")
    assert [(i.stream.name, i.length) for i in query.inputs] == [("S", 0), ("T", 5), ("U", None)]
    assert query.offsets == (0, 2, 4)
    assert [query.input_of(c) for c in range(6)] == [0, 0, 1, 1, 2, 2]
    assert len(query.condition) == 2
    assert not query.is_stream


def test_projections_and_filters_below_a_join_are_pulled_above_it():
    query = _flatten(
        "SELECT x.y + 1 AS z, T.c FROM (SELECT a * 2 AS y FROM S [Range 3] WHERE b = 'k') x, "
        "T [Now] WHERE x.y = T.a"
    )
    assert _texts(query) == ["(a#0 * 2) + 1", "c"]
    schema = tuple(f for source in query.inputs for f in source.stream.fields)
    condition = expr_text(conjunction(list(query.condition)), schema)
    assert "b = 'k'" in condition
    assert "(a#0 * 2) = a#2" in condition
    assert query.names == ("z", "c")


def test_nested_joins_become_one():
    query = _flatten(
        "SELECT p.b, U.d FROM (SELECT S.b, T.c FROM S [Now], T [Now] WHERE S.a = T.a) p, U [Now] "
        "WHERE p.c = U.c"
    )
    assert [i.stream.name for i in query.inputs] == ["S", "T", "U"]
    assert _texts(query) == ["b", "d"]


def test_istream_on_top_is_told():
    assert _flatten("SELECT ISTREAM a FROM S [Now]").is_stream


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT DSTREAM a FROM S [Range 2]", "DSTREAM"),
        ("SELECT RSTREAM a FROM S [Range 2]", "RSTREAM"),
        ("SELECT a FROM S [Rows 2]", "a Rows window"),
        ("SELECT a FROM S [Partition By a Rows 2]", "a Rows window"),
        ("SELECT a FROM S [Range 4 Slide 2]", "Slide"),
        ("SELECT a FROM S [Tumble 4]", "a Tumble or Hop window"),
        ("SELECT a FROM S [Hop 4 EVERY 2]", "a Tumble or Hop window"),
        ("SELECT a FROM S [Session 4]", "a Session window"),
        ("SELECT a FROM S [Now] TOLERANCE a 1", "TOLERANCE"),
        ("SELECT a FROM S [Now] ORDER BY a LIMIT 1", "ORDER BY … LIMIT"),
        ("SELECT a FROM R", "relation R"),
        ("SELECT S.a FROM S [Now] LEFT JOIN T [Now] ON S.a = T.a", "LEFT JOIN"),
        ("SELECT COUNT(*) FROM S [Now]", "an aggregate"),
        ("SELECT DISTINCT a FROM S [Now]", "DISTINCT"),
        ("SELECT a FROM S [Now] UNION ALL SELECT a FROM T [Now]", "UNION"),
        ("SELECT a FROM S [Now] EXCEPT SELECT a FROM T [Now]", "EXCEPT"),
        ("SELECT a FROM S [Now] WHERE EXISTS (SELECT * FROM T [Now])", "EXISTS or IN"),
        ("SELECT a FROM (SELECT ISTREAM a FROM S [Now]) [Range 2] x", "a window over a derived"),
    ],
)
def test_operator_that_is_not_taken_is_named_with_a_way_out(query, what):
    with pytest.raises(Unsupported, match=rf"native can't run {what}.*: .*Use --engine shared"):
        _flatten(query)
