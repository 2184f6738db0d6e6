"""What EXPLAIN shows of a plan reads like the query that it came from."""

import pytest

from thalweg.cql import compile_script
from thalweg.plan.as_cql import as_cql

STREAMS = """
CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM Sold (item BIGINT, buyer BIGINT) TIMESTAMP BY ts BIGINT;
CREATE RELATION Names (item BIGINT, name VARCHAR) TIMESTAMP BY ts BIGINT;
"""


def shown(select: str) -> str:
    (query,) = compile_script(f"{STREAMS} CREATE QUERY q AS {select};").queries
    return as_cql(query.plan)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT ISTREAM Bids.item, price FROM Bids [Range 100], Sold [Now]"
        " WHERE Bids.item = Sold.item",
        "SELECT price * 2.0 FROM Bids [Rows 5] WHERE price > 1.0 AND item < 7",
        "SELECT name, COUNT(*), MAX(price) FROM Bids [Range 10], Names"
        " WHERE Bids.item = Names.item GROUP BY name HAVING COUNT(*) > 2",
        "SELECT COUNT(*) FROM Bids [Now]",
        "SELECT DISTINCT item FROM Bids [Unbounded]",
        "SELECT item FROM Bids [Now] UNION ALL SELECT item FROM Sold [Now]",
        "SELECT Bids.item FROM Bids [Now], Bids [Range 5] Bids2 WHERE Bids.price < Bids2.price",
    ],
)
def test_a_plan_reads_like_its_query(select: str) -> None:
    assert shown(select) == select


def test_what_has_no_words_is_shown_as_its_operator() -> None:
    text = shown("SELECT B.item, name FROM Bids [Now] B LEFT JOIN Names N ON B.item = N.item")
    assert "Left join on" in text
    assert "Bids [Now]" in text


def test_a_query_inside_of_another_stands_in_brackets() -> None:
    text = shown(
        "SELECT n FROM (SELECT item, COUNT(*) AS n FROM Bids [Range 9] GROUP BY item) V WHERE n > 1"
    )
    assert text == "SELECT COUNT(*) FROM Bids [Range 9] GROUP BY item HAVING COUNT(*) > 1"
