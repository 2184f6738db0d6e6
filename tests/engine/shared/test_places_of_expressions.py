"""Expressions in every place that evaluates them, over no, one and many (also equal) rows.

`tests/engine/shared/expressions` holds each expression to the reference by itself; here it is where
it stands that differs: what a join repeats, what a view makes constant, what nothing has reached.
"""

from functools import partial

import pytest
from tests.conformance.runner import check_against_reference
from tests.drawn import some
from tests.engine.shared.adapter import shared_engine

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.tick.executors import InProcess

STREAMS = """
CREATE STREAM S (k INTEGER, v BIGINT, d DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k INTEGER, w BIGINT, d DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE VIEW C AS SELECT k, 2 AS v, 2e0 AS d FROM S [Range 9];
"""
# {c} is a condition, {x} a number, both over S.v and S.d; both may be constant.
PLACES = {
    "a filter": "SELECT S.k FROM S [Range 9] WHERE {c}",
    "a projection": "SELECT S.k, {c} AS b, {x} AS x FROM S [Range 9]",
    "CASE": "SELECT CASE WHEN {c} THEN {x} ELSE S.v END AS x FROM S [Range 9]",
    "what a join shows": "SELECT S.k, {c} AS b, {x} AS x FROM S [Range 9], T [Range 9]"
    " WHERE S.k = T.k",
    "CASE over a join": "SELECT CASE WHEN {c} THEN {x} ELSE T.w END AS x"
    " FROM S [Range 9], T [Range 9] WHERE S.k = T.k",
    "what a join asks": "SELECT S.v, T.w FROM S [Range 9], T [Range 9]"
    " WHERE S.k = T.k AND {c} AND {x} <> T.w",
    "a join's key": "SELECT S.v, T.w FROM S [Range 9], T [Range 9] WHERE {x} = T.w",
    "a join without a key": "SELECT S.v, T.w FROM S [Range 9], T [Range 9] WHERE {c} AND {x} < T.w",
    "a left join": "SELECT S.v, T.w FROM S [Range 9] LEFT JOIN T [Range 9]"
    " ON S.k = T.k AND {c} AND {x} < T.w",
    "EXISTS": "SELECT S.v FROM S [Range 9]"
    " WHERE EXISTS (SELECT 1 FROM T [Range 9] WHERE T.k = S.k AND {c} AND {x} < T.w)",
    "NOT EXISTS": "SELECT S.v FROM S [Range 9]"
    " WHERE NOT EXISTS (SELECT 1 FROM T [Range 9] WHERE {x} < T.w)",
    "IN": "SELECT S.v FROM S [Range 9] WHERE {x} IN (SELECT T.w FROM T [Range 9])",
    "NOT IN": "SELECT S.v FROM S [Range 9] WHERE {x} NOT IN (SELECT T.w FROM T [Range 9])",
    "an argument": "SELECT S.k, SUM({x}) AS s, MAX({x}) AS m, COUNT(DISTINCT {x}) AS n"
    " FROM S [Range 9] GROUP BY S.k",
    "an argument over a join": "SELECT SUM({x}) AS s FROM S [Range 9], T [Range 9]"
    " WHERE S.k = T.k AND {c}",
    "a group": "SELECT {x} AS g, COUNT(*) AS n FROM S [Range 9] GROUP BY {x}",
    "HAVING": "SELECT S.k FROM S [Range 9] GROUP BY S.k HAVING {h}",
    "panes": "SELECT SUM({x}) AS s FROM S [Range 8 Slide 2] WHERE {c}",
    "a Rows window": "SELECT {x} AS x FROM S [Rows 2] WHERE {c}",
    "DISTINCT": "SELECT DISTINCT {x} AS x FROM S [Range 9] WHERE {c}",
    "EXCEPT": "SELECT {x} AS x FROM S [Range 9] EXCEPT SELECT T.w FROM T [Range 9]",
    "a stream": "ISTREAM (SELECT {x} AS x FROM S [Range 9] WHERE {c})",
    "RSTREAM": "RSTREAM (SELECT {x} AS x FROM S [Range 3] WHERE {c})",
}
# The same over a view whose columns are constants.
PLACES |= {
    f"{place}, of a view": text.replace("S [Range 9]", "C AS S")
    for place, text in PLACES.items()
    if "S [Range 9]" in text
}
CONDITIONS = (
    *(f"{a} {op} {b}" for op in ("<", "=", "<>", ">=") for a, b in (("2", "S.v"), ("S.v", "2"))),
    *("2 IN (S.v, 3)", "S.v BETWEEN 1 AND 3", "NULLIF(2, S.v) IS NULL", "1 < 2", "NULL = 1"),
    *("2.5e0 > S.d", "7 / S.v > 1", "NOT (2 = S.v) OR S.v IS NULL"),
)
NUMBERS = (
    *("S.v", "1 + 2", "7 / S.v", "S.v / 7", "7 % S.v"),
    *("GREATEST(2, S.v)", "2 - S.v", "COALESCE(NULL, S.v)"),
)
AGGREGATES = ("2 < COUNT(*)", "COUNT(*) > 1", "2 = SUM(S.v)", "1 < 2", "3e0 >= AVG(S.d)")
ROWS = {
    "no rows": [],
    "one row": [(1, 2, 2.5)],
    "equal rows": [(1, 2, 2.5)] * 3,
    "many rows": [
        *[(1, 2, 2.5), (1, 2, 0.5), (2, 3, None)],
        *[(2, None, 1.0), (None, 0, 7.0), (1, 3, 0.0)],
    ],
}


def queries() -> list[tuple[str, str]]:
    """Each place with each condition, and with each number, in turn."""
    found = []
    for place, text in PLACES.items():
        uses = max(
            len(CONDITIONS) if "{c}" in text else 1,
            len(NUMBERS) if "{x}" in text else 1,
            len(AGGREGATES) if "{h}" in text else 1,
        )
        for i in range(0, uses, 3 if place.endswith("view") else 1):
            filled = text.replace("{c}", CONDITIONS[i % len(CONDITIONS)])
            filled = filled.replace("{x}", NUMBERS[i % len(NUMBERS)])
            found.append((place, filled.replace("{h}", AGGREGATES[i % len(AGGREGATES)])))
    return found


def arrivals(rows: list[tuple]) -> list[Arrival]:
    """Two to an instant."""
    return [Arrival(0, 1 + i // 2, i, row, "+") for i, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("left", "right"),
    [("no rows", "many rows"), ("many rows", "no rows"), ("one row", "one row")]
    + [("one row", "equal rows"), ("equal rows", "one row"), ("many rows", "equal rows")],
)
def test_together_they_give_what_the_reference_gives(left, right):
    together = [f"CREATE QUERY q{i} AS {text};" for i, (_, text) in enumerate(queries())]
    script = compile_script("\n".join([STREAMS, *together]))
    inputs = {"S": arrivals(ROWS[left]), "T": arrivals(ROWS[right])}
    check_against_reference(shared_engine, script.catalog, script.queries, inputs)


@pytest.mark.parametrize("place", PLACES)
def test_alone_they_give_what_the_reference_gives(place):
    """Without others there is nothing to share, and joins take another way."""
    for i, text in some(enumerate(text for of, text in queries() if of == place), 3):
        script = compile_script(f"{STREAMS} CREATE QUERY q AS {text};")
        left, right = (list(ROWS.values())[n] for n in (1 + i % 3, 1 + i // 3 % 3))
        inputs = {"S": arrivals(left), "T": arrivals(right)}
        engine = partial(shared_engine, executor=InProcess(1 + i % 2))
        check_against_reference(engine, script.catalog, script.queries, inputs)
