"""What a cluster has to have, looked at from its own tasks (`thalweg doctor --master`)."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from thalweg.engine.session import SessionError, spark_session
from thalweg.engine.shared.tick.resident_jobs import slots_of

PACKAGES = ("thalweg", "polars", "pyarrow", "numpy", "msgspec", "xxhash", "rustworkx")
_LOOKS = 4  # tasks for each slot, so that all executors get some
_TASK_S = 0.2
_CONNECT_S = 5.0


class Check(NamedTuple):
    what: str
    verdict: str  # ok, warning, failed
    found: str
    advice: str = ""


class Seen(NamedTuple):
    """What a task sees where it runs."""

    host: str
    executor: str
    python: str
    packages: tuple[tuple[str, str], ...]
    folder: str  # "" or why the data directory is not the driver's
    driver: str  # "" or why the driver can't be reached


def check_cluster(master: str, folder: Path) -> list[Check]:
    """A line for each thing that matters; the first that makes all others pointless alone."""
    try:
        spark = spark_session(master)
    except SessionError as error:
        return [Check("master", "failed", str(error))]
    try:
        return _checks(spark, master, folder)
    finally:
        spark.stop()


def _checks(spark: SparkSession, master: str, folder: Path) -> list[Check]:
    context = spark.sparkContext
    context.parallelize(range(2), 2).count()  # whose executors are on their way, they come
    slots = slots_of(context)
    folder.mkdir(parents=True, exist_ok=True)
    token = folder.resolve() / f".doctor-{uuid.uuid4().hex}"
    token.write_text(token.name)
    host = context.getConf().get("spark.driver.host") or "127.0.0.1"
    with _Door(context.getConf().get("spark.driver.bindAddress") or host) as door:
        try:
            look = _looking(str(token), (host, door.port))
            count = max(1, slots) * _LOOKS
            seen = context.parallelize(range(count), count).mapPartitions(look).collect()
            written = {p.name for p in token.parent.glob(f"{token.name}-*")}
        finally:
            for left in token.parent.glob(f"{token.name}*"):
                left.unlink(missing_ok=True)
    hosts = sorted({s.host for s in seen})
    executors = sorted({s.executor for s in seen})
    where = f"{len(executors)} executors on {', '.join(hosts)}"
    return [
        Check("master", "ok", f"{master}: {where}"),
        _slots(slots),
        _python(seen),
        _packages(seen),
        _folder(seen, token.parent, {f"{token.name}-{s.executor}" for s in seen} <= written),
        _driver(seen, host),
    ]


def _slots(slots: int) -> Check:
    if slots < 2:
        advice = "a second core lets small ticks do without a Spark job each"
        return Check("slots", "warning", f"{slots} task at once", advice)
    return Check("slots", "ok", f"{slots} tasks at once, of which one is left to other jobs")


def _python(seen: list[Seen]) -> Check:
    own = _own_python()
    others = sorted({f"{s.python} on {s.host}" for s in seen if s.python != own})
    if others:
        advice = "executors need the driver's Python: set PYSPARK_PYTHON, or ship an archive"
        return Check("Python there", "failed", f"{own} here, {', '.join(others)}", advice)
    return Check("Python there", "ok", f"{own} everywhere")


def _packages(seen: list[Seen]) -> Check:
    own = dict(_own_packages())
    wrong = sorted(
        {
            f"{name} {found or 'missing'} on {s.host} ({own[name]} here)"
            for s in seen
            for name, found in s.packages
            if found != own[name]
        }
    )
    if wrong:
        advice = "install the same wheel and its locked dependencies there, or ship them"
        return Check("packages there", "failed", ", ".join(wrong), advice)
    return Check("packages there", "ok", f"the same {len(own)} versions everywhere")


def _folder(seen: list[Seen], folder: Path, came_back: bool) -> Check:
    wrong = sorted({f"{s.host}: {s.folder}" for s in seen if s.folder})
    if wrong or not came_back:
        found = ", ".join(wrong) or f"{folder}: what executors write is not seen here"
        advice = "state is shared by files: put --data-dir on a file system that all machines mount"
        return Check("shared dir", "failed", found, advice)
    return Check("shared dir", "ok", f"{folder} is the same folder everywhere")


def _driver(seen: list[Seen], host: str) -> Check:
    wrong = sorted({f"{s.host}: {s.driver}" for s in seen if s.driver})
    if wrong:
        advice = (
            "small ticks then run as jobs: let executors connect to the driver, and "
            "set spark.driver.host to a name that they know"
        )
        return Check("way back", "warning", ", ".join(wrong), advice)
    return Check("way back", "ok", f"executors reach the driver at {host}")


def _own_python() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def _own_packages() -> tuple[tuple[str, str], ...]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, ""))
    return tuple(found)


def _looking(token: str, address: tuple[str, int]):  # type: ignore[no-untyped-def]
    def look(rows: Iterator[int]) -> Iterator[Seen]:
        list(rows)
        time.sleep(_TASK_S)
        host = socket.gethostname()
        executor = f"{host}-{os.getppid()}"  # its daemon of workers
        path = Path(token)
        folder = ""
        try:
            if path.read_text() != path.name:
                folder = f"{path.parent} is another folder there"
            Path(f"{token}-{executor}").write_text("")
        except OSError as error:
            folder = f"{path.parent}: {error.strerror}"
        driver = ""
        try:
            socket.create_connection(address, _CONNECT_S).close()
        except OSError as error:
            driver = f"{address[0]}:{address[1]}: {error.strerror or error}"
        yield Seen(host, executor, _own_python(), _own_packages(), folder, driver)

    return look


class _Door:
    """A port of the driver's that takes connections and says nothing."""

    def __init__(self, host: str) -> None:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self._listener = socket.create_server(address[:2], family=family)
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> _Door:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()
