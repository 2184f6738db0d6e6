import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from thalweg.engine import session
from thalweg.engine.session import SessionError, default_settings, spark_session


def _run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: a session can't be had twice in one."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, **environment},
    )


def test_second_session_in_one_process_is_refused(spark):
    with pytest.raises(SessionError, match=r"on local\[2\] is running .* starting one on local\[1"):
        spark_session("local[1]")


def test_shuffles_have_as_many_partitions_as_there_are_cores(spark):
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_time_zone_is_utc_on_both_sides(spark):
    row = spark.sql("SELECT hour(timestamp '2020-06-01 12:00:00 UTC') AS h").first()
    assert row["h"] == 12
    zone = spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID()
    assert zone == "UTC"


def test_python_workers_are_this_python_with_one_thread_per_library(spark):
    def look(batches):
        import pyarrow as pa

        list(batches)
        threads = os.environ["POLARS_MAX_THREADS"]
        yield pa.RecordBatch.from_pydict(
            {"python": [sys.executable], "threads": [f"{threads} {pa.cpu_count()}"]}
        )

    row = spark.range(1).mapInArrow(look, "python string, threads string").first()
    assert (row["python"], row["threads"]) == (sys.executable, "1 1")


def test_python_workers_of_this_machine_are_reached_by_unix_sockets(spark):
    folder = spark.conf.get("spark.python.unix.domain.socket.dir")
    assert spark.sparkContext.parallelize([1, 2]).map(lambda x: x + 1).collect() == [2, 3]
    assert list(Path(folder).glob("*.sock"))


@pytest.mark.parametrize(
    ("master", "temporary"),
    [("local[2]", "x" * 80), ("local-cluster[2,1,1024]", "t"), ("spark://elsewhere:7077", "t")],
)
def test_workers_that_unix_sockets_do_not_reach_are_reached_by_tcp(
    master, temporary, tmp_path, monkeypatch
):
    folder = tmp_path / temporary
    folder.mkdir()
    monkeypatch.setattr(session.tempfile, "tempdir", str(folder))
    assert session._sockets(master) == {}


def test_missing_java_is_one_line(monkeypatch):
    monkeypatch.setattr(session, "_refuse_second_session", lambda master: None)
    monkeypatch.setattr(session, "java_problem", lambda: "No Java found: install it.")
    with pytest.raises(SessionError, match=r"^No Java found: install it\.$"):
        spark_session("local[1]")


@pytest.mark.parametrize("master", ["nonsense", "local[]", "local-cluster[2]", "localhost:7077"])
def test_unknown_master_is_refused_with_the_known_ones(master):
    with pytest.raises(SessionError, match=r"no Spark master .*local\[\*\].*spark://host:7077"):
        spark_session(master)


def test_console_stays_clean_when_a_job_fails():
    run = _run(
        """
        from thalweg.engine.session import spark_session
        with spark_session("local[1]", **{"spark.sql.shuffle.partitions": 7}) as spark:
            print(spark.conf.get("spark.sql.shuffle.partitions"))
            try:
                spark.range(9).selectExpr("1 / id").collect()
            except Exception as error:
                print(type(error).__name__)
        """
    )
    assert run.stdout.splitlines() == ["7", "ArithmeticException"]
    assert run.stderr == ""


@pytest.mark.cluster
def test_local_cluster_runs_on_two_executors_and_leaves_the_installation_alone():
    run = _run(
        """
        import os
        from pathlib import Path
        import pyspark
        from thalweg.engine.session import spark_session

        def look(batches):
            import pyarrow as pa
            import thalweg.plan.types
            for batch in batches:
                yield pa.RecordBatch.from_pydict({"jvm": [os.getppid()]})

        before = set(Path(pyspark.__file__).parent.iterdir())
        with spark_session("local-cluster[2,1,1024]") as spark:
            assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
            rows = spark.range(0, 2, 1, 2).mapInArrow(look, "jvm long").collect()
            print(len(rows))
        print(set(Path(pyspark.__file__).parent.iterdir()) - before)
        """
    )
    assert run.stdout.splitlines() == ["2", "set()"], run.stdout + run.stderr


def test_the_driver_of_a_cluster_does_without_the_optimising_compiler():
    """Its JVM only schedules; where tasks run in it, it reads and sends as well."""
    option = "-XX:TieredStopAtLevel=1"
    for master in ("local-cluster[2,1,1024]", "spark://host:7077"):
        assert option in default_settings(master)["spark.driver.extraJavaOptions"]
        assert option not in default_settings(master)["spark.executor.extraJavaOptions"]
    for master in ("local", "local[2]", "local[*]"):
        assert option not in default_settings(master)["spark.driver.extraJavaOptions"]
