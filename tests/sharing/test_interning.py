import pytest
from tests.sharing.decidable import normal as normal_of
from tests.sharing.test_estimate import CATALOG

from thalweg.cql import compile_script
from thalweg.sharing import interning
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.interning import Pool

TEXT = "SELECT k AS x FROM S [Range 10] WHERE v > {} AND v + k <> {}"


def normal(text: str) -> NormalQuery:
    return normal_of(compile_script(text, CATALOG).queries[0].plan)


def test_queries_that_differ_in_constants_share_all_else() -> None:
    pool = Pool()
    first, second = (pool.normal(normal(TEXT.format(i, i))) for i in (1, 2))
    for part in ("streams", "windows", "joins", "outputs"):
        assert getattr(first.core, part) is getattr(second.core, part)
    assert first.core.ranges[0][0] is second.core.ranges[0][0]
    assert first.core.ranges[0][1] != second.core.ranges[0][1]
    assert first.core.residuals[0].template is second.core.residuals[0].template
    assert first.core.residuals[0].constants == (1,)
    assert first.names is second.names


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format(1, 2),
        "SELECT ISTREAM S.k, U.k FROM S [Now], U WHERE S.k = U.k",
        "SELECT k, COUNT(*) AS n FROM S [Range 3] GROUP BY k HAVING COUNT(*) > 1",
    ],
)
def test_an_interned_query_is_equal_to_itself(text: str) -> None:
    pool = Pool()
    assert pool.normal(normal(text)) == pool.normal(normal(text)) == normal(text)


def test_a_pool_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning, "MOST_PARTS", 10)
    pool = Pool()
    kept = [pool.one((i,)) for i in range(100)]
    assert kept == [(i,) for i in range(100)]
    assert len(pool._parts) <= 10
