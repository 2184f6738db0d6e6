"""What a plan alone says about how many rows there can be."""

import pytest

from thalweg.cql import compile_script
from thalweg.plan.cardinality import has_one_row_at_most

STREAM = "CREATE STREAM S (a INTEGER, b INTEGER) TIMESTAMP BY ts;"


@pytest.mark.parametrize(
    ("query", "one"),
    [
        ("SELECT MAX(a) FROM S [Now]", True),
        ("SELECT MAX(a) FROM S [Now] HAVING COUNT(*) > 1", True),
        ("SELECT MAX(a) FROM S [Now] GROUP BY b", False),
        ("SELECT a FROM S [Rows 1]", False),  # a tie at one instant is two rows, for a while
        ("SELECT a FROM S [Now] ORDER BY a LIMIT 1", True),
        ("SELECT a FROM S [Now] ORDER BY a LIMIT 2", False),
        ("SELECT x.m FROM (SELECT MAX(a) AS m FROM S [Now]) x, S [Now]", False),
        ("SELECT x.m FROM (SELECT MAX(a) AS m FROM S [Now]) x, (SELECT MIN(a) FROM S) y", True),
        ("SELECT MAX(a) FROM S [Now] UNION ALL SELECT MIN(a) FROM S [Now]", False),
        ("SELECT MAX(a) FROM S [Now] EXCEPT SELECT a FROM S [Now]", True),
        ("SELECT a FROM S [Now] INTERSECT ALL SELECT MAX(a) FROM S [Now]", True),
        ("SELECT DISTINCT a FROM S [Now]", False),
    ],
)
def test_one_row_at_most(query: str, one: bool):
    (compiled,) = compile_script(STREAM + query).queries
    assert has_one_row_at_most(compiled.plan) is one
