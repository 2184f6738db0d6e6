"""What queries say that are the same, and not of a group."""

from __future__ import annotations

import pytest
from tests.engine.shared.adapter import WAYS
from tests.engine.shared.kernels.join.test_prefixes import STREAMS, agree

from thalweg.engine.arrivals import Arrival

JOINED = "FROM A [Range 5], B [Range 3] WHERE A.k = B.k"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "query",
    [
        f"RSTREAM SELECT A.v, B.v {JOINED}",
        f"SELECT A.v {JOINED} UNION ALL SELECT B.v {JOINED}",
        f"DSTREAM (SELECT A.v {JOINED} UNION ALL SELECT B.v {JOINED})",
        "SELECT A.v, B.v FROM A [Range 5] LEFT JOIN B [Range 3] ON A.k = B.k",
        "SELECT A.v FROM A [Range 5] WHERE A.k IN (SELECT B.k FROM B [Range 3])",
        "SELECT A.v, B.v FROM A [Rows 2], B [Range 3] WHERE A.k = B.k",
    ],
)
def test_equal_queries_say_the_same_and_keep_one_state(query: str, way: str) -> None:
    text = STREAMS + "".join(f"CREATE QUERY q{i} AS {query};" for i in range(3))
    inputs = {s: [Arrival(0, at // 2, at, (at % 2, at), "+") for at in range(9)] for s in "ABC"}
    agree(text, inputs, tuples_per_tick=1, way=way)
