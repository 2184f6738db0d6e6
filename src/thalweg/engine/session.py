"""The Spark session: its settings and its lifetime, in one place.

    with spark_session("local[4]") as spark:
        ...

One process has one session at a time. The JVM is started with the first one and lives as long as
the process (it dies with it, even by kill -9, because its stdin closes); what the JVM is started
with, such as the driver's memory, can therefore not be changed by a second session.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from thalweg.engine.accumulators import end_quietly
from thalweg.engine.jars import connector_jars
from thalweg.engine.java import java_problem

LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

_CLUSTER = re.compile(r"local-cluster\[(\d+),(\d+),\d+\]")
# The last two are untested.
_MASTER = re.compile(rf"local|local\[(\d+|\*)\]|{_CLUSTER.pattern}|spark://.+|yarn|k8s://.+")

# The JVM prints these by itself, before any log configuration is read.
_NOISE = (b"Using incubator modules: jdk.incubator.vector",)

# A Spark task owns one core, so libraries inside a Python worker get one thread each.
_ONE_THREAD = (
    "POLARS_MAX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ARROW_IO_THREADS",
)

_CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

_LONGEST_SOCKET_FOLDER = 60  # a socket's name may have 104 characters, and 42 are Spark's

_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class SessionError(RuntimeError):
    """Why there is no Spark session, and what to do about it."""


def spark_session(master: str = "local[*]", **settings: object) -> SparkSession:
    """A session on `local[*]`, `local-cluster[executors,cores,MiB]` or `spark://host:port`; `yarn`
    and `k8s://…` are taken, and untested (docs/scaling.md).

    Settings are Spark's own, by their dotted names, and win over the defaults:
    `spark_session("local[2]", **{"spark.driver.memory": "2g"})`. Use it as a context manager, or
    call `.stop()`.
    """
    if master.startswith("sc://"):
        raise SessionError(
            f"{master} is Spark Connect, whose clients have no RDDs, and ticks are tasks of RDDs: "
            "give the cluster's own master, such as spark://host:7077."
        )
    if not _MASTER.fullmatch(master):
        raise SessionError(
            f"there is no Spark master {master!r}: "
            "write local[*], local[4], local-cluster[2,1,1024] or spark://host:7077."
        )
    _refuse_second_session(master)
    problem = java_problem()
    if problem:
        raise SessionError(problem)
    _prepare_environment(master)
    conf = SparkConf(loadDefaults=False)
    for name, value in {**default_settings(master), **_sockets(master), **settings}.items():
        conf.set(name, str(value))
    gateway = SparkContext._gateway or _start_jvm(conf)
    try:
        end_quietly(SparkContext(conf=conf, gateway=gateway))
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).splitlines()[0]
        raise SessionError(f"Spark does not start on {master}: {reason}") from None
    spark = SparkSession.builder.getOrCreate()
    if "spark.sql.shuffle.partitions" not in settings:
        spark.conf.set("spark.sql.shuffle.partitions", cores_of(master, spark))
    return spark


def default_settings(master: str) -> dict[str, str]:
    """What Thalweg asks of Spark on this master."""
    settings = {
        "spark.master": master,
        "spark.app.name": "thalweg",
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": _java_options(),
        "spark.executor.extraJavaOptions": _java_options(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.session.timeZone": "UTC",
        # An overflow or a bad cast that our expressions do not foresee is an error, never a guess.
        "spark.sql.ansi.enabled": "true",
        # DECIMAL is exact: a result keeps its scale, and what does not fit is no result.
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default, INT96, is a legacy that other readers of our Parquet files do not share.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "thalweg-warehouse"),
    }
    settings |= {f"spark.executorEnv.{name}": "1" for name in _ONE_THREAD}
    # Only a process's first session can add classes to its JVM: so they come if they are there.
    if jars := connector_jars():
        settings["spark.jars"] = ",".join(map(str, jars))
    if not re.fullmatch(r"local(\[.*\])?", master):
        # The driver's JVM then only schedules: an optimising compiler would cost it more than it
        # will ever save, and half of what a tick costs the driver.
        settings["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1"
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # The default starts a process (`readlink`) several times for each file of a checkpoint.
            "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        }
    return settings


def _sockets(master: str) -> dict[str, str]:
    """Unix sockets between Spark and its Python workers: a small job takes half of the time, since
    the short messages of its protocol do not wait for each other as they do over TCP.

    Only where tasks run in the driver's process: executors elsewhere do not have the folder.
    """
    if not re.fullmatch(r"local(\[.*\])?", master) or not hasattr(socket, "AF_UNIX"):
        return {}
    folder = _temporary("thalweg-sockets-")
    if len(folder) > _LONGEST_SOCKET_FOLDER:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
        "spark.python.daemon.module": "thalweg.engine.worker_daemon",
    }


def cores_of(master: str, spark: SparkSession) -> int:
    """How many tasks run at once."""
    # A local cluster's executors may still be on their way when the session is there.
    cluster = _CLUSTER.fullmatch(master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    return spark.sparkContext.defaultParallelism


def _refuse_second_session(master: str) -> None:
    running = SparkContext._active_spark_context
    if running is not None:
        raise SessionError(
            f"a Spark session on {running.master} is running in this process: "
            f"use it, or stop it before starting one on {master}."
        )


def _prepare_environment(master: str) -> None:
    """What Spark's launcher and its worker daemons read from the environment."""
    # Another Spark on this machine must not be picked up instead of the one that is installed.
    installed = Path(pyspark.__file__).parent
    clustered = master.startswith("local-cluster")
    os.environ["SPARK_HOME"] = (
        _home_with_own_work_folder(installed) if clustered else str(installed)
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Errors reach the caller as exceptions; PySpark would print them once more, as JSON.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _home_with_own_work_folder(installed: Path) -> str:
    """A Spark home outside the Python environment, where a local cluster's executors may write."""
    home = _temporary("thalweg-spark-home-")
    for part in ("bin", "jars", "python"):
        Path(home, part).symlink_to(installed / part)
    return home


def _temporary(prefix: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    _folders.append(folder)
    return folder.name


def _java_options() -> str:
    return f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -Duser.timezone=UTC"


def _start_jvm(conf: SparkConf) -> object:
    read_end, write_end = os.pipe()
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stderr": write_end})
    except Exception as error:
        raise SessionError(f"Spark's JVM did not start: {error}") from error
    finally:
        os.close(write_end)
        pump = threading.Thread(
            target=_forward, args=(os.fdopen(read_end, "rb"),), name="jvm-stderr", daemon=True
        )
        pump.start()
    return gateway


def _forward(jvm_stderr: IO[bytes]) -> None:
    for line in jvm_stderr:
        if not any(noise in line for noise in _NOISE):
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
