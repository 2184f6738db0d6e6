"""The same text means the same to SQLite, over tables that hold what the streams have had so far.

All tuples arrive at one instant into unbounded streams, so the result then is plain SQL's. This
checks names, precedence, sub-queries, grouping and joins against a judge from outside.
"""

import sqlite3
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import evaluate

CATALOG = compile_script(
    "CREATE STREAM X (a INT, b INT, s TEXT) TIMESTAMP BY ts;"
    "CREATE STREAM Y (a INT, b INT, s TEXT) TIMESTAMP BY ts;"
    "CREATE STREAM Z (a INT, c INT) TIMESTAMP BY ts;"
).catalog

QUERIES = [
    "SELECT a + b * 2 - 1, -a, NOT a = b OR a > 1 AND b < 2 FROM X",
    "SELECT a, b FROM X WHERE a = 1 OR b = 2 AND s = 'p'",
    "SELECT a FROM X WHERE NOT (a = 1 OR b = 2)",
    "SELECT a FROM X WHERE NOT a = 1 AND b IS NOT NULL",
    "SELECT a FROM X WHERE a BETWEEN 0 AND 1 OR b NOT BETWEEN a AND 2",
    "SELECT a FROM X WHERE a IN (0, b, 2) AND s NOT IN ('p', 'q')",
    "SELECT CASE a WHEN 1 THEN 'one' WHEN b THEN 'b' END, CASE WHEN a < b THEN a ELSE b END FROM X",
    "SELECT COALESCE(a, b, -1), NULLIF(a, b), a % 2, a / 2, s || 'x', ABS(a - b) FROM X",
    "SELECT SUBSTR(s, 1, 1), LENGTH(s), REPLACE(s, 'p', 'q'), UPPER(s) FROM X",
    "SELECT X.a, Y.b FROM X, Y WHERE X.a = Y.a",
    "SELECT * FROM X JOIN Y ON X.a = Y.a AND X.b < Y.b JOIN Z ON Z.c = Y.b",
    "SELECT * FROM X LEFT JOIN Y ON X.a = Y.a AND Y.b > 0 LEFT JOIN Z ON Z.a = Y.b",
    "SELECT * FROM X LEFT JOIN (Y JOIN Z ON Y.b = Z.c) ON X.a = Y.a WHERE X.b = 1",
    "SELECT p.a, q.b FROM X p, X q WHERE p.b = q.a",
    "SELECT DISTINCT a, s FROM X",
    "SELECT a, COUNT(*), SUM(b), MIN(s), MAX(b), COUNT(DISTINCT b), COUNT(b) FROM X GROUP BY a",
    "SELECT a % 2, SUM(b) + COUNT(*) FROM X GROUP BY a % 2",
    "SELECT a + 1 AS k, COUNT(*) AS n FROM X GROUP BY k HAVING n > 1",
    "SELECT COUNT(*), SUM(a), MAX(b) FROM X",
    "SELECT s FROM X GROUP BY s HAVING MAX(a) > 1 AND COUNT(*) < 4",
    "SELECT X.s, SUM(Y.b) FROM X, Y WHERE X.a = Y.a GROUP BY X.s, Y.s",
    "SELECT a FROM X WHERE EXISTS (SELECT 1 FROM Y WHERE Y.a = X.a AND Y.b > X.b)",
    "SELECT a FROM X WHERE NOT EXISTS (SELECT * FROM Y WHERE Y.a = X.a) OR b = 1",
    "SELECT a FROM X WHERE a IN (SELECT b FROM Y)",
    "SELECT a FROM X WHERE a NOT IN (SELECT b FROM Y WHERE Y.s = X.s)",
    "SELECT a FROM X WHERE NOT (a IN (SELECT b FROM Y) AND b IN (SELECT c FROM Z WHERE Z.a < X.a))",
    "SELECT a FROM X WHERE (a, b) IN (SELECT a, b FROM Y)",
    "SELECT a FROM X WHERE (a, b) NOT IN (SELECT a, c FROM Z)",
    "SELECT a FROM X WHERE EXISTS (SELECT * FROM Y WHERE Y.a = X.a AND "
    "EXISTS (SELECT * FROM Z WHERE Z.c = Y.b))",
    "SELECT a FROM X WHERE EXISTS (SELECT * FROM Y WHERE Y.a = X.a OR Y.b IN (SELECT c FROM Z))",
    "SELECT a FROM X WHERE b IN (SELECT MAX(b) FROM Y WHERE Y.a = X.a GROUP BY s)",
    "SELECT a FROM X WHERE b NOT IN "
    "(SELECT COUNT(*) FROM Y WHERE Y.a = X.a AND Y.s = X.s GROUP BY b)",
    "SELECT a FROM X WHERE EXISTS (SELECT 1 FROM Y WHERE X.a = Y.a GROUP BY a HAVING COUNT(*) > 1)",
    "SELECT a FROM X WHERE a IN (SELECT a FROM Y UNION SELECT c FROM Z)",
    "SELECT a FROM X WHERE (b = 1) IN (SELECT a = 2 FROM Y)",
    "SELECT a FROM X UNION SELECT b FROM Y",
    "SELECT a FROM X UNION ALL SELECT b FROM Y EXCEPT SELECT c FROM Z",
    "SELECT a, b FROM X INTERSECT SELECT a, b FROM Y",
    "SELECT u.a, v.n FROM (SELECT a FROM X WHERE b > 0) u, "
    "(SELECT b, COUNT(*) AS n FROM Y GROUP BY b) v WHERE u.a = v.b",
    "WITH u AS (SELECT a, b FROM X WHERE a > 0), v (k) AS (SELECT b FROM u) SELECT k FROM v, u",
]

numbers = st.one_of(st.none(), st.integers(0, 3))
words = st.one_of(st.none(), st.sampled_from(["p", "q", "pq"]))
wide = st.lists(st.tuples(numbers, numbers, words), min_size=1, max_size=6)
narrow = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4)


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=12)
@given(x=wide, y=wide, z=narrow)
def test_sqlite_agrees(query: str, x: list, y: list, z: list) -> None:
    tables = {"X": x, "Y": y, "Z": z}
    (definition,) = compile_script(query, CATALOG).queries
    inputs = {
        name: [Arrival(0, 0, i, row) for i, row in enumerate(rows)] for name, rows in tables.items()
    }
    ours = Counter(change.row for change in evaluate(definition.plan, inputs))
    database = sqlite3.connect(":memory:")
    for name, rows in tables.items():
        columns = "a INT, c INT" if name == "Z" else "a INT, b INT, s TEXT"
        database.execute(f"CREATE TABLE {name} ({columns})")
        places = ", ".join("?" for _ in rows[0])
        database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    assert ours == Counter(database.execute(query).fetchall())
    database.close()
