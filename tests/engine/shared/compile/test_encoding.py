"""Operators' identities name state on disk: those written here may never change."""

from __future__ import annotations

import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.runner import prepare

from thalweg.cql import compile_script
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import CODEC, key_id, operator_id
from thalweg.engine.shared.compile.query import compile_query
from thalweg.plan.expr import Col
from thalweg.plan.types import BIGINT

STREAMS = (
    "CREATE STREAM S (a BIGINT, b VARCHAR) TIMESTAMP BY ts BIGINT;"
    "CREATE STREAM T (a BIGINT, c DOUBLE) TIMESTAMP BY ts BIGINT;"
)


def compiled(text: str) -> ph.Output:
    (query,) = compile_script(f"{STREAMS} CREATE QUERY q AS {text};").queries
    return compile_query(query.plan)


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: c.name)
def test_the_operators_of_every_case_read_back(case) -> None:
    for query in prepare(case).queries:
        output = compile_query(query.plan)
        assert CODEC.decode(CODEC.encode(output)) == output
        assert operator_id(CODEC.decode(CODEC.encode(output))) == operator_id(output)


def test_different_operators_have_different_names() -> None:
    texts = [
        "SELECT a FROM S [Range 5]",
        "SELECT a FROM S [Range 6]",
        "SELECT b FROM S [Range 5]",
        "SELECT ISTREAM a FROM S [Range 5]",
        "SELECT S.a FROM S [Now], T [Now] WHERE S.a = T.a",
        "SELECT DISTINCT a FROM S [Range 5]",
        "SELECT a FROM S [Rows 5]",
        "SELECT a, COUNT(*) AS n FROM S [Range 5] GROUP BY a",
    ]
    ops = {op for text in texts for op in ph.walk(compiled(text))}
    assert len({operator_id(op) for op in ops}) == len(ops)


def test_names_that_stand_on_disk() -> None:
    join = "SELECT S.b, T.c FROM S [Range 60], T [Now] WHERE S.a = T.a AND T.c > 0.5"
    assert operator_id(compiled(join)) == "5894319ba9c162c574"
    grouped = "SELECT b, MAX(a) AS m FROM S [Range 60 Slide 10] GROUP BY b HAVING MAX(a) > 3"
    assert operator_id(compiled(grouped)) == "c958b6723c40e69ccd"
    assert key_id((Col(0, BIGINT),)) == "862093cb1a2b"
    assert key_id(()) == "all"
