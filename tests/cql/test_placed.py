"""Statements that hold a plan."""

from __future__ import annotations

import pytest

from thalweg.cql import CqlError, compile_placed, compile_script
from thalweg.cql.bind.dependencies import dependents, names_read
from thalweg.plan.catalog import Catalog
from thalweg.plan.nodes import Node
from thalweg.plan.travelling import plan_text, without_plan
from thalweg.runtime.network.fragments.placed_text import placed_text, select_of

STREAM = 'CREATE STREAM "A ""b""" (k BIGINT) TIMESTAMP BY ts BIGINT'
QUERY = 'CREATE QUERY q AS SELECT k + 1 AS next FROM "A ""b""" [Range 5]'


def _known() -> tuple[Catalog, Node]:
    catalog = compile_script(STREAM).catalog
    return catalog, compile_script(QUERY, catalog).queries[0].plan


def test_the_plan_counts_and_the_text_is_kept() -> None:
    catalog, plan = _known()
    text = placed_text("q", plan, select_of(QUERY))
    for _ in range(3):  # also once its outline is known
        (query,) = compile_placed(text, catalog).queries
        assert (query.plan, query.text) == (plan, text)
    assert without_plan(text) == 'CREATE QUERY "q" AS SELECT k + 1 AS next FROM "A ""b""" [Range 5]'
    assert names_read(text) == {'a "b"'}
    (stream,) = catalog.streams()
    after = compile_placed(text, catalog).catalog
    assert dependents(stream, after) == [after.find("q")]


def test_it_is_for_nodes_only() -> None:
    catalog, plan = _known()
    with pytest.raises(CqlError, match="only the nodes of a network write PLACED"):
        compile_script(placed_text("q", plan), catalog)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE QUERY q PLACED 'no' OVER (A)", "no plan"),
        ("CREATE QUERY q PLACED OVER (A)", "a plan in single quotes"),
        ("CREATE QUERY q PLACED 'x'", "OVER"),
    ],
)
def test_what_is_no_plan_is_told(text: str, message: str) -> None:
    with pytest.raises(CqlError, match=message):
        compile_placed(text)


def test_a_plan_over_streams_that_are_not_there_is_told() -> None:
    _, plan = _known()
    with pytest.raises(CqlError, match="there is no such stream"):
        compile_placed(placed_text("q", plan))
    catalog, plan = _known()
    with pytest.raises(CqlError, match="other streams than OVER"):
        compile_placed(f"CREATE QUERY q PLACED '{plan_text(plan)}' OVER (B)", catalog)
