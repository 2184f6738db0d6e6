"""Streams that are long against their windows, over many batches: state comes and goes."""

import random

import pytest

from thalweg.cql import compile_script
from thalweg.engine import native, reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import difference
from thalweg.engine.native import inputs as native_inputs

STREAMS = """
CREATE STREAM S (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT LATENESS 4 MILLISECOND;
CREATE STREAM T (k BIGINT, w BIGINT) TIMESTAMP BY ts BIGINT LATENESS 2 MILLISECOND;
CREATE STREAM U (w BIGINT, x VARCHAR) TIMESTAMP BY ts BIGINT LATENESS 4 MILLISECOND;
"""
QUERIES = """
CREATE QUERY range_now AS
    SELECT ISTREAM S.v, T.w FROM S [Range 12 Millisecond], T [Now] WHERE S.k = T.k;
CREATE QUERY two_ranges AS
    SELECT S.v, T.w FROM S [Range 5 Millisecond], T [Range 9 Millisecond] WHERE S.k = T.k;
CREATE QUERY three_keys AS
    SELECT S.v, U.x FROM S [Range 20 Millisecond], T [Range 6 Millisecond], U [Range 3 Millisecond]
    WHERE S.k = T.k AND T.w = U.w;
CREATE QUERY unbounded_first AS
    SELECT S.v, U.x FROM S, T [Range 6 Millisecond], U [Range 9 Millisecond]
    WHERE S.k = T.k AND T.w = U.w;
CREATE QUERY all_but_one_unbounded AS
    SELECT S.v, U.x FROM S, T, U [Now] WHERE S.k = T.k AND T.w = U.w;
CREATE QUERY never_forgets AS
    SELECT S.k, T.w FROM S, T WHERE S.k = T.k AND S.v < T.w;
CREATE QUERY three_that_never_forget AS
    SELECT a.v, b.w, c.x FROM (SELECT v, k FROM S WHERE k = 1) a,
        (SELECT w, k FROM T WHERE w < 3) b, (SELECT w, x FROM U WHERE x = 'z') c
    WHERE a.k = b.k AND b.w = c.w;
CREATE QUERY self_join AS
    SELECT a.v, b.v AS other FROM S [Range 7 Millisecond] a, S [Range 7 Millisecond] b
    WHERE a.k = b.k AND a.v < b.v;
CREATE QUERY no_equality AS
    SELECT S.v, T.w FROM S [Now], T [Range 2 Millisecond] WHERE S.k < T.k AND T.w > 1;
CREATE QUERY equal_rows_that_cancel AS SELECT k FROM S [Range 3 Millisecond] WHERE v > 0;
"""


def _stream(seed: int, tuples: int, columns, partitions: int = 1) -> list[Arrival]:
    """Time goes on slowly, with disorder that is sometimes too much: some tuples are late."""
    random_ = random.Random(seed)
    now = -30
    arrivals = []
    for position in range(tuples):
        now += random_.choice([0, 0, 1, 1, 2])
        stamp = now - random_.choice([0, 0, 0, 1, 3, 6])
        row = tuple(column(random_) for column in columns)
        arrivals.append(Arrival(random_.randrange(partitions), stamp, position, row))
    return arrivals


def _key(random_: random.Random) -> int | None:
    return random_.choice([0, 1, 2, 3, 4, 5, None])


@pytest.fixture(scope="module")
def inputs() -> dict[str, list[Arrival]]:
    return {
        "S": _stream(1, 90, (_key, lambda r: r.randrange(3))),
        "T": _stream(2, 90, (_key, _key), partitions=2),
        "U": _stream(3, 90, (_key, lambda r: r.choice("xyz"))),
    }


@pytest.fixture(scope="module")
def queries():
    return compile_script(STREAMS + QUERIES).queries


@pytest.mark.timeout(300)
def test_changelog_is_the_references_while_state_is_dropped(spark, tmp_path, queries, inputs):
    settings = native.Settings(rows_per_file=30, queries_per_job=len(queries), partitions=1)
    results = native.run(spark, queries, inputs, tmp_path, settings)
    for query in queries:
        expected = reference.evaluate(query.plan, inputs)
        assert len(expected) > 20, query.name
        assert difference(expected, results[query.name]) == [], query.name


def test_query_alone_over_two_state_partitions_in_one_batch(spark, tmp_path, queries, inputs):
    (query,) = [q for q in queries if q.name == "three_keys"]
    settings = native.Settings(files_per_trigger=1000, partitions=2)
    results = native.run(spark, [query], inputs, tmp_path, settings)
    assert difference(reference.evaluate(query.plan, inputs), results["three_keys"]) == []


def test_rows_that_spark_drops_as_late_are_an_error(spark, tmp_path, queries, monkeypatch):
    """The guard under the guarantee: with the watermark too close, Spark loses rows."""
    stage = native_inputs.stage

    def overconfident(*args):
        staged = stage(*args)
        staged.disorder = 0
        return staged

    monkeypatch.setattr(native_inputs, "stage", overconfident)
    (query,) = [q for q in queries if q.name == "range_now"]
    # Spark judges by the watermark of the batch before: the third batch sees that of the first.
    disordered = [Arrival(0, ts, i, (1, 1)) for i, ts in enumerate([100, 101, 99])]
    with pytest.raises(RuntimeError, match=r"Spark dropped 2 rows as late"):
        native.run(
            spark,
            [query],
            {"S": disordered, "T": disordered},
            tmp_path,
            native.Settings(rows_per_file=1, partitions=1),
        )


def test_input_without_a_source_is_named(spark, tmp_path, queries, inputs):
    (query,) = [q for q in queries if q.name == "range_now"]
    with pytest.raises(ValueError, match="no recorded source is given for T"):
        native.run(spark, [query], {"S": inputs["S"]}, tmp_path)


def test_refusal_comes_before_anything_is_written(spark, tmp_path, inputs):
    script = "CREATE QUERY n AS SELECT COUNT(*) FROM S [Now];"
    queries = compile_script(STREAMS + QUERIES + script).queries
    with pytest.raises(native.Unsupported, match="an aggregate"):
        native.run(spark, queries, inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_instants_beyond_sparks_timestamps_are_refused(spark, tmp_path):
    script = compile_script(STREAMS + "CREATE QUERY q AS SELECT k FROM S [Now];")
    arrivals = [Arrival(0, 0, 0, (1, 1)), Arrival(0, 2**60, 1, (1, 1))]
    with pytest.raises(native.Unsupported, match="streams over so long a time"):
        native.run(spark, script.queries, {"S": arrivals}, tmp_path)
