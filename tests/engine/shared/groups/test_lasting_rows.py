"""What may stand on a row that outlives its tuples if the query is to move."""

import pytest
from tests.engine.shared.sharing_workloads import STREAMS

from thalweg.cql.compile import compile_script
from thalweg.engine.shared.groups.lasting_rows import can_copy_markers
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise

COUNTED = "SELECT COUNT(*) AS n FROM S [Range 3] AS s"


@pytest.mark.parametrize(
    ("query", "can_move"),
    [
        (COUNTED, True),
        (f"{COUNTED} HAVING COUNT(*) > 1", True),
        ("SELECT k, COUNT(*) AS n FROM S [Range 3] AS s GROUP BY k", True),
        ("SELECT DISTINCT k, COUNT(*) AS n FROM S [Range 3] AS s GROUP BY k", True),
        (f"SELECT DISTINCT n FROM ({COUNTED}) c", False),
        (f"SELECT MAX(n) AS most FROM ({COUNTED}) c", False),
    ],
    ids=["a count", "its HAVING", "of groups", "DISTINCT of groups", "DISTINCT", "its maximum"],
)
def test_nothing_with_state_of_its_own(query: str, can_move: bool) -> None:
    (found,) = compile_script(f"{STREAMS} CREATE QUERY q AS {query};").queries
    normal = normalise(found.plan)
    assert isinstance(normal, NormalQuery)
    assert can_copy_markers(normal.above) is can_move
