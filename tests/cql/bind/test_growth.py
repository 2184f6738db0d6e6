import pytest

from thalweg.cql import compile_script
from thalweg.cql.bind.growth import grows
from thalweg.plan.catalog import Catalog


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT A FROM X", True),
        ("SELECT A FROM X [Unbounded Slide 1 s]", True),
        ("SELECT A FROM X [Range 1 hour]", False),
        ("SELECT A FROM X [Rows 5]", False),
        ("SELECT DISTINCT A FROM X WHERE B > 3", True),
        ("SELECT X.A FROM X, Y", True),
        ("SELECT X.A FROM X, Y [Now]", False),
        ("SELECT X.A FROM X LEFT JOIN Y [Now] ON TRUE", True),
        ("SELECT X.A FROM X [Now] LEFT JOIN Y ON TRUE", False),
        ("SELECT COUNT(*) AS n FROM X", False),
        ("SELECT name FROM Person", False),
        ("SELECT A FROM X [Now] UNION SELECT A FROM Y", True),
        ("SELECT A FROM X EXCEPT SELECT A FROM Y [Now]", True),
        ("SELECT A FROM X INTERSECT SELECT A FROM Y [Now]", False),
        ("SELECT A FROM X WHERE A IN (SELECT A FROM Y [Now])", True),
    ],
)
def test_which_relations_keep_tuples_for_ever(query: str, expected: bool, catalog: Catalog) -> None:
    (definition,) = compile_script(query, catalog).queries
    assert grows(definition.plan) is expected
