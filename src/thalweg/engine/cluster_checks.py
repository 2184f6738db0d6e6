"""What a cluster has to have, looked at from its own tasks (`thalweg doctor --master`)."""

from __future__ import annotations

import os
import shutil
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

from thalweg.engine.failures import Unavailable
from thalweg.engine.session import SessionError, spark_session
from thalweg.engine.shared.state.remote.objects import Objects
from thalweg.engine.shared.tick.resident_jobs import slots_of
from thalweg.engine.store_checks import TRIES, Check

PACKAGES = ("thalweg", "polars", "pyarrow", "numpy", "msgspec", "xxhash", "rustworkx")
_LOOKS = 4  # tasks for each slot, so that all executors get some
_TASK_S = 0.2
_CONNECT_S = 5.0


class Seen(NamedTuple):
    """What a task sees where it runs."""

    host: str
    executor: str
    python: str
    packages: tuple[tuple[str, str], ...]
    folder: str  # "" or why the data directory, or the store, is not the driver's
    driver: str  # "" or why the driver can't be reached


def check_cluster(master: str, folder: Path, store: str = "") -> list[Check]:
    """A line for each thing that matters; the first that makes all others pointless alone. With an
    object store executors need that, and no common folder."""
    try:
        spark = spark_session(master)
    except SessionError as error:
        return [Check("master", "failed", str(error))]
    try:
        return _checks(spark, master, folder, store)
    finally:
        spark.stop()


def _checks(spark: SparkSession, master: str, folder: Path, store: str) -> list[Check]:
    context = spark.sparkContext
    context.parallelize(range(2), 2).count()  # whose executors are on their way, they come
    slots = slots_of(context)
    place = store or _made(folder).as_uri()
    token = f"{TRIES}/{uuid.uuid4().hex}/"
    objects = Objects(place, patient=False)
    objects.put(f"{token}driver", token.encode())
    host = context.getConf().get("spark.driver.host") or "127.0.0.1"
    with _Door(context.getConf().get("spark.driver.bindAddress") or host) as door:
        try:
            look = _looking(place, token, (host, door.port))
            count = max(1, slots) * _LOOKS
            seen = context.parallelize(range(count), count).mapPartitions(look).collect()
            written = set(objects.keys(token))
        finally:
            objects.delete(objects.keys(token))
            shutil.rmtree(folder / TRIES, ignore_errors=True)
    hosts = sorted({s.host for s in seen})
    executors = sorted({s.executor for s in seen})
    where = f"{len(executors)} executors on {', '.join(hosts)}"
    return [
        Check("master", "ok", f"{master}: {where}"),
        _slots(slots),
        _python(seen),
        _packages(seen),
        _folder(seen, store or str(folder), {f"{token}{s.executor}" for s in seen} <= written),
        _driver(seen, host),
    ]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


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


def _folder(seen: list[Seen], place: str, came_back: bool) -> Check:
    what, advice = (
        ("store there", "state is in the store: give executors its address and keys, as AWS_…")
        if "://" in place
        else (
            "shared dir",
            "state is shared by files: put --data-dir on a file system that all machines mount, "
            "or use --store",
        )
    )
    wrong = sorted({f"{s.host}: {s.folder}" for s in seen if s.folder})
    if wrong or not came_back:
        found = ", ".join(wrong) or f"{place}: what executors write is not seen here"
        return Check(what, "failed", found, advice)
    return Check(what, "ok", f"{place} is the same everywhere")


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


def _looking(place: str, token: str, address: tuple[str, int]):  # type: ignore[no-untyped-def]
    def look(rows: Iterator[int]) -> Iterator[Seen]:
        list(rows)
        time.sleep(_TASK_S)
        host = socket.gethostname()
        executor = f"{host}-{os.getppid()}"  # its daemon of workers
        folder = ""
        try:
            objects = Objects(place, patient=False)
            if objects.get(f"{token}driver") != token.encode():
                folder = f"{place} is another one there"
            objects.put(f"{token}{executor}", b"")
        except FileNotFoundError:
            folder = f"{place} does not have there what the driver has put"
        except (OSError, ValueError, Unavailable) as error:
            folder = str(error)
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
