"""Which rows of a stream a query can need."""

import pytest

from thalweg.cql import compile_script
from thalweg.plan.text import expr_text
from thalweg.plan.wanted_rows import wanted_rows

STREAMS = """
CREATE STREAM S (k BIGINT, v BIGINT, t VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM U (k BIGINT, w BIGINT) TIMESTAMP BY ts BIGINT;
CREATE VIEW V AS SELECT k, v + 1 AS more FROM S [Range 9] WHERE v > 0;
"""
ALL = None
CASES = {
    "SELECT * FROM S [Now]": ALL,
    "SELECT * FROM S [Now] WHERE k = 1 AND v > 2": {"(k = 1) AND (v > 2)"},
    "SELECT * FROM S [Range 5] WHERE k = 1 OR v > 2": {"(k = 1) OR (v > 2)"},
    "SELECT S.v FROM S [Range 5], U [Range 5] WHERE S.k = U.k AND v > 2 AND w < 3": {"v > 2"},
    "SELECT A.v FROM S [Now] A, S [Range 5] B WHERE A.k = 1 AND B.k = 2": {"k = 1", "k = 2"},
    "SELECT A.v FROM S [Now] A, S [Range 5] B WHERE A.k = 1": ALL,
    "SELECT * FROM V WHERE more < 5": {"((v + 1) < 5) AND (v > 0)"},
    "SELECT k, COUNT(*) FROM S [Now] WHERE v > 1 GROUP BY k HAVING COUNT(*) > 2": {"v > 1"},
    "SELECT COUNT(*) FROM S [Now] WHERE v > 1": {"v > 1"},
    "SELECT * FROM S [Rows 3] WHERE k = 1": ALL,  # the window counts the others too
    "SELECT * FROM S [Partition By k Rows 3] WHERE v = 1": ALL,
    "SELECT * FROM S [Partition By k Rows 3] WHERE v = 1 AND k = 2": {"k = 2"},
    "RSTREAM (SELECT * FROM S [Range 5] WHERE k = 1)": ALL,  # it speaks at every tuple
    "ISTREAM (SELECT * FROM S [Range 5] WHERE k = 1)": {"k = 1"},
    "SELECT * FROM (ISTREAM (SELECT k FROM S [Range 5])) [Range 2] WHERE k = 1": ALL,
    "SELECT * FROM S [Now] LEFT JOIN U [Now] ON S.k = U.k AND S.v > 3": ALL,
    "SELECT * FROM U [Now] LEFT JOIN S [Now] ON S.k = U.k AND S.v > 3": {"v > 3"},
    "SELECT * FROM U [Now] LEFT JOIN S [Now] ON S.k = U.k WHERE S.v > 3": ALL,
    "SELECT * FROM U [Now] WHERE k IN (SELECT k FROM S [Now] WHERE v = 4)": {"v = 4"},
    "SELECT * FROM U [Now] WHERE NOT EXISTS (SELECT k FROM S [Now] WHERE v = 4)": {"v = 4"},
    "SELECT k FROM S [Now] WHERE k = 1 UNION SELECT k FROM S [Range 4] WHERE v = 2": {
        "k = 1",
        "v = 2",
    },
    "SELECT k, v FROM S [Now] WHERE k > 1 ORDER BY v LIMIT 2": {"k > 1"},
    "SELECT DISTINCT k FROM S [Now] WHERE k > 1": {"k > 1"},
}


@pytest.mark.parametrize("text", CASES)
def test_a_query_wants(text: str) -> None:
    script = compile_script(f"{STREAMS} CREATE QUERY q AS {text}")
    stream = next(s for s in script.catalog.streams() if s.name == "S")
    found = wanted_rows(script.queries[0].plan, "S")
    texts = None if found is None else {expr_text(e, stream.fields) for e in found}
    assert texts == CASES[text]
