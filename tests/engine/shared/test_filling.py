"""The past of a stream that is fed elsewhere, handed over once more: what is here is not added
again, what came without columns gets them, and what is not here comes in."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.registering import Past

SCRIPT = """
CREATE STREAM S (k BIGINT, v VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (v VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE QUERY old AS SELECT k, COUNT(*) AS n FROM S [Range 20] GROUP BY k;
"""
LATER = "CREATE QUERY later AS SELECT S.k, S.v FROM S [Range 20], T [Range 20] WHERE S.v = T.v;"


def tuples(*rows: tuple[int, int, str | None]) -> tuple[pl.DataFrame, pl.Series]:
    ts, k, v = zip(*rows, strict=True)
    frame = pl.DataFrame({"ts": ts, "k": k, "v": pl.Series(v, dtype=pl.String)})
    return frame, frame["ts"] * 10


@pytest.mark.parametrize("ticked", [True, False])
def test_the_past_is_a_set_of_tuples(tmp_path: Path, ticked: bool) -> None:
    outlet = Collect()
    engine = SharedEngine(tmp_path, outlet=outlet, durable=False)
    script = compile_script(SCRIPT + LATER)
    stream, other = script.catalog.streams()
    for made in (stream, other):
        engine.add_stream(made)
    engine.add_queries(script.queries[:1])
    came, at = tuples((1, 1, None), (2, 2, None), (3, 1, None))
    engine.landing.push(stream, came, positions=at, resume=b"", promise=4)
    if ticked:
        engine.run_to_end()
    past = Past(4, 0, 4, again=True)
    engine.store.inputs.complete_again_from({"S": 0})
    engine.add_queries(script.queries[1:], pasts={"S": past})
    again, at = tuples((0, 5, "x"), (1, 1, "x"), (2, 2, "y"), (3, 1, "x"))
    for _ in range(2):  # after a crash it is done once more
        assert engine.adopt(stream, ["k", "v"], again, at, 0, b"there")
    assert engine.landing.resume_point(stream) == b"there"
    more, at = tuples((4, 7, "x"), (5, 8, "z"))
    engine.landing.push(stream, more, positions=at)
    engine.push("T", pl.DataFrame({"ts": [4, 6], "v": ["x", "q"]}))
    engine.run_to_end()
    engine.close()
    said = outlet.results["later"]
    assert sorted((c.ts, c.row) for c in said) == [
        (4, (1, "x")),
        (4, (1, "x")),
        (4, (5, "x")),
        (4, (7, "x")),
    ]
    first = [c.row for c in outlet.results["old"] if c.ts == 1]
    assert first == [(1, 1)]
