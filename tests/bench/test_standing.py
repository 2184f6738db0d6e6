from collections import Counter

import pytest

from bench.auctions import PRICES, SCHEMA
from bench.standing import Standing, distinct_joins, draw, equalities, script
from thalweg.cql import compile_script
from thalweg.sharing.core import Signature
from thalweg.sharing.normal import normalise

WINDOWS = (1, 2, 4)


def signatures(queries: list[Standing]) -> Counter[Signature]:
    compiled = compile_script(SCHEMA + script(queries)).queries
    return Counter(normalise(q.plan).core.signature for q in compiled)  # type: ignore[union-attr]


@pytest.mark.parametrize(("overlap", "common"), [(1.0, 60), (0.5, 30), (0.25, 15), (0.0, 0)])
def test_overlap_is_the_part_of_queries_of_a_few_shapes(overlap: float, common: int):
    found = sorted(signatures(draw(60, overlap, 0.01, WINDOWS, 7)).values())
    shared = [n for n in found if n > 1]
    assert sum(shared) == common
    assert len(shared) == (2 if common else 0)  # filters of O, and joins
    assert found.count(1) == 60 - common


def test_all_three_kinds_are_among_the_common_ones():
    (join, between, equal) = draw(3, 1.0, 0.02, WINDOWS, 7)
    assert join.window_s in WINDOWS
    assert "O.itemID = C.itemID" in join.cql
    assert between.window_s is equal.window_s is None
    assert "sellerID = " in equal.cql


def test_a_query_wants_its_share_of_the_prices():
    for query in draw(30, 1.0, 0.02, WINDOWS, 7):
        if "sellerID" not in query.cql:
            low, high = (float(c.rsplit(" ", 1)[1]) for c in query.conditions)
            assert 0 <= low < high <= PRICES
            assert high - low == pytest.approx(0.02 * PRICES, abs=1e-5)


def test_distinct_joins_are_as_many_as_said():
    assert sorted(signatures(distinct_joins(1_000, 400, 0.01, WINDOWS, 7)).values()) == [
        *[2] * 200,
        *[3] * 200,
    ]


def test_shapes_do_not_run_out():
    # Beyond 9 ** 3 of them, conditions get longer.
    assert set(signatures(draw(900, 0.0, 0.01, WINDOWS, 7)).values()) == {1}


def test_equalities_are_of_one_shape():
    assert list(signatures(equalities(20, 7)).values()) == [20]


def test_flink_looks_back_as_far_as_the_window():
    (join,) = draw(1, 1.0, 0.02, (4,), 7)
    assert "O [Range 4 Second], C [Now]" in join.cql
    assert "O.rt BETWEEN C.rt - INTERVAL '4' SECOND AND C.rt" in join.flink
    assert list(join.columns) == ["itemID", "price", "buyerID"]
