import time

import pytest

from thalweg.cql import CqlError, compile_script
from thalweg.plan.nodes import walk
from thalweg.plan.size import WIDEST_JOIN, size_of

STREAM = "CREATE STREAM S (k INTEGER, v INTEGER) TIMESTAMP BY ts;"


def chain(count: int, view: str) -> str:
    """Views that are each made of the one before it."""
    views = [f"CREATE VIEW v{i} AS {view.format(f'v{i - 1}')};" for i in range(1, count + 1)]
    return f"{STREAM} CREATE VIEW v0 AS SELECT k, v FROM S [Range 9]; {' '.join(views)}"


JOINED = "SELECT a.k, a.v FROM {0} a, {0} b WHERE a.k = b.k"
COUNTED = "SELECT a.k, COUNT(*) AS v FROM {0} a, {0} b WHERE a.k = b.k GROUP BY a.k"
ADDED = "SELECT k + k AS k, v FROM {0}"


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (JOINED, "64 streams joined at once: at most 32"),
        (COUNTED, "operators with all views written out: at most 2,000"),
        (ADDED, "terms in its expressions with all views written out: at most 500,000"),
    ],
)
def test_views_that_double_are_refused_when_they_are_defined(view: str, what: str) -> None:
    began = time.process_time()
    with pytest.raises(CqlError, match="this is too large to run") as refused:
        compile_script(chain(60, view))
    assert what in str(refused.value)
    assert time.process_time() - began < 5  # not exponential: seconds would be hours


def test_the_widest_join_that_is_allowed_is() -> None:
    inputs = ", ".join(f"S [Range 5] s{i}" for i in range(WIDEST_JOIN))
    compile_script(f"{STREAM} SELECT s0.k FROM {inputs}")
    with pytest.raises(CqlError, match="33 streams joined at once"):
        compile_script(f"{STREAM} SELECT s0.k FROM {inputs}, S [Range 5] last")


def test_a_size_is_what_walking_finds() -> None:
    (query,) = compile_script(chain(3, COUNTED) + "SELECT k FROM v3").queries
    assert size_of(query.plan).operators == len(list(walk(query.plan)))
    assert size_of(query.plan).widest_join == 2
