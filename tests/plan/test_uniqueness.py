"""What a plan alone says about columns that tell rows apart."""

import pytest

from thalweg.cql import compile_script
from thalweg.plan.uniqueness import tells_rows_apart

DEFINITIONS = """
CREATE STREAM S (a INTEGER, b INTEGER) TIMESTAMP BY ts;
CREATE STREAM U (a INTEGER, c INTEGER) TIMESTAMP BY ts;
CREATE TABLE T (a INTEGER, d INTEGER, PRIMARY KEY (a));
"""
CASES = [
    ("SELECT a, SUM(b) AS s FROM S [Range 9] GROUP BY a", "a", True),
    ("SELECT a, SUM(b) AS s FROM S [Range 9] GROUP BY a", "s", False),
    ("SELECT a, b, COUNT(*) AS n FROM S [Range 9] GROUP BY a, b", "a", False),
    ("SELECT a, b, COUNT(*) AS n FROM S [Range 9] GROUP BY a, b", "a b", True),
    ("SELECT a + 1 AS a FROM (SELECT a, COUNT(*) FROM S [Range 9] GROUP BY a) x", "a", False),
    ("SELECT a, MAX(b) AS m FROM S [Range 9] GROUP BY a HAVING MAX(b) > 1", "a", True),
    ("SELECT MAX(b) AS m FROM S [Range 9]", "m", True),
    ("SELECT a, b FROM S [Partition By a Rows 1]", "a", True),
    ("SELECT a, b FROM S [Partition By a Rows 1]", "b", False),
    ("SELECT a, b FROM S [Partition By a Rows 2]", "a", False),
    ("SELECT a, b FROM S [Partition By a Rows 1] WHERE b > 0", "a", True),
    ("SELECT a, b FROM S [Partition By a Rows 1] WHERE a = b", "b", True),
    ("SELECT a, b FROM S [Range 9]", "a b", False),
    ("SELECT DISTINCT a, b FROM S [Range 9]", "a b", True),
    ("SELECT DISTINCT a, b FROM S [Range 9]", "a", False),
    ("SELECT a, d FROM T", "a", True),
    ("SELECT a, d FROM T", "d", False),
    ("SELECT S.a, d FROM S [Partition By a Rows 1], T WHERE S.a = T.a", "a", True),
    ("SELECT S.a, d FROM S [Partition By a Rows 1], T WHERE S.b = T.a", "a", True),
    ("SELECT S.a, T.d FROM S [Range 9], T WHERE S.a = T.a", "a", False),
    ("SELECT S.a, T.a AS k FROM S [Partition By a Rows 1], T", "a k", True),
    ("SELECT S.a, T.a AS k FROM S [Partition By a Rows 1], T", "a", False),
    ("SELECT S.a, d FROM S [Partition By a Rows 1] LEFT JOIN T ON S.b = T.a", "a", True),
    ("SELECT S.a, c FROM S [Partition By a Rows 1] LEFT JOIN U [Now] ON S.a = U.a", "a", False),
    ("SELECT a, b FROM S [Range 9] ORDER BY b LIMIT 1", "b", True),
    ("SELECT a, b FROM S [Range 9] ORDER BY b LIMIT 2", "a", False),
    ("SELECT a FROM S [Range 9] UNION SELECT a FROM U [Range 9]", "a", True),
    ("SELECT a FROM S [Range 9] UNION ALL SELECT a FROM U [Range 9]", "a", False),
    ("SELECT a FROM T EXCEPT ALL SELECT a FROM S [Range 9]", "a", True),
    ("SELECT a FROM S [Range 9] INTERSECT ALL SELECT a FROM T", "a", True),
    ("SELECT a, d FROM T WHERE a IN (SELECT b FROM S [Range 9])", "a", True),
]


def compiled(query: str, columns: str):
    (found,) = compile_script(DEFINITIONS + query).queries
    names = [f.name for f in found.plan.schema]
    return found.plan, frozenset(names.index(c) for c in columns.split())


@pytest.mark.parametrize(("query", "columns", "apart"), CASES)
def test_columns_that_tell_rows_apart(query: str, columns: str, apart: bool) -> None:
    assert tells_rows_apart(*compiled(query, columns)) is apart
