"""A task hashes each new tuple once for each key of its SteMs, and not again to join it."""

import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state import hashing
from thalweg.engine.shared.tick.executors import InProcess

STREAMS = """
CREATE STREAM S (k VARCHAR, a BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k VARCHAR, b BIGINT) TIMESTAMP BY ts BIGINT;
"""
JOIN = "SELECT ISTREAM S.a, T.b FROM S [Range 50], T [Range 50] WHERE S.k = T.k AND S.a >= {}"
TUPLES = 200


@pytest.fixture
def hashed(monkeypatch):
    """How many texts have been hashed."""
    count = [0]
    hash_column = hashing._hash_column

    def counting(column):
        count[0] += len(column) if column.dtype == pl.String else 0
        return hash_column(column)

    monkeypatch.setattr(hashing, "_hash_column", counting)
    return count


def tuples(tick: int, value: str) -> pl.DataFrame:
    rows = range(TUPLES)
    return pl.DataFrame(
        {
            "ts": [tick * 10 + i // 20 for i in rows],
            "k": [f"k{i * 7 % 100}" for i in rows],
            value: [tick * TUPLES + i for i in rows],
        }
    )


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("joins", [1, 3])
def test_a_join_hashes_no_tuple_again(tmp_path, hashed, tasks, joins):
    script = compile_script(
        STREAMS + "".join(f"CREATE QUERY q{i} AS {JOIN.format(i)};" for i in range(joins))
    )
    engine = SharedEngine(
        tmp_path, InProcess(tasks), outlet=Collect(), durable=False, rows_for_more_tasks=1
    )
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    rows_out = 0
    for tick in range(5):
        hashed[0] = 0
        engine.push("S", tuples(tick, "a"))
        engine.push("T", tuples(tick, "b"))
        rows_out += engine.tick().rows_out
        assert hashed[0] == tasks * 2 * TUPLES
    assert rows_out > 5 * TUPLES
