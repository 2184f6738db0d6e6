"""What an object store has to be able to do, tried with a few small objects (`thalweg doctor`).

No clock is looked at: who owns a data directory is decided by who creates a log entry first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from statistics import median
from typing import NamedTuple

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.remote.book_log import LOG
from thalweg.engine.shared.state.remote.objects import Objects, Taken

TRIES = ".doctor"  # where they are put, and removed
_TIMES = 10
_SIZE = 64 << 10
_RIVALS = 4
_SLOW_S = 0.1  # a push and a tick wait for a few requests one after the other

_FORMS = "write s3://bucket/folder, gs://bucket/folder, az://container/folder or file:///folder"
_REACH = "look at the URL, AWS_ENDPOINT (for other servers than AWS) and the network"
# What servers say, and what to do then. A bare number would also be found in how long it took.
_REASONS = {
    "NoSuchBucket": "there is no such bucket: make it, or look at the URL",
    "InvalidAccessKeyId": "the key is not known there: look at AWS_ACCESS_KEY_ID",
    "UserNotFound": "the key is not known there: look at AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "look at AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "RequestTimeTooSkewed": "signatures expire: set this machine's clock",
    "AccessDenied": "the key needs GetObject, PutObject, DeleteObject and ListBucket there",
    "status code: 403": "the key needs GetObject, PutObject, DeleteObject and ListBucket there",
    "status code: 404": "there is no such bucket: make it, or look at the URL",
    "169.254.169.254": "there is no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}


class Check(NamedTuple):
    what: str
    verdict: str  # ok, warning, failed
    found: str
    advice: str = ""


def check_store(url: str) -> list[Check]:
    """A line for each thing that matters; the first that makes all others pointless alone."""
    try:
        objects = Objects(url, patient=False)
    except ValueError as error:
        return [Check("store", "failed", f"{url}: {error}", _FORMS)]
    tried = f"{TRIES}/{uuid.uuid4().hex}"
    try:
        return _checks(objects, tried)
    except Unavailable as error:
        return [Check("store", "failed", str(error), _advice(str(error)))]
    finally:
        with suppress(Unavailable):  # said already
            objects.delete(objects.keys(f"{tried}/"))


def _checks(objects: Objects, tried: str) -> list[Check]:
    found = [_reached(objects)]
    found.append(_conditional(objects, f"{tried}/owner"))
    found.append(_kept(objects, f"{tried}/kept"))
    return found


def _reached(objects: Objects) -> Check:
    entries = len(objects.keys(LOG))
    if entries:
        there = f"holds a data directory ({entries} entries since its last snapshot)"
        advice = "who starts with it takes it over, and another process that has it ends"
        return Check("store", "ok", f"{objects.url} {there}", advice)
    return Check("store", "ok", f"{objects.url} answers, and holds no data directory yet")


def _conditional(objects: Objects, key: str) -> Check:
    """Of several who create an object, one after the other or at once, exactly one may succeed."""
    advice = "two processes could own one data directory: use a store that honours If-None-Match: *"
    objects.create(key, b"first")
    if _creates(objects, key, b"second"):
        found = "an object that was there has been replaced"
        return Check("conditional put", "failed", found, advice)
    with ThreadPoolExecutor(_RIVALS) as rivals:
        for turn in range(_TIMES):
            names = [f"{turn} {i}".encode() for i in range(_RIVALS)]
            won = list(rivals.map(lambda n, t=turn: _creates(objects, f"{key}-{t}", n), names))
            if sum(won) != 1:
                found = f"{sum(won)} of {_RIVALS} who created one object at once were told so"
                return Check("conditional put", "failed", found, advice)
    return Check("conditional put", "ok", f"one of {_RIVALS} at once is first, each time")


def _creates(objects: Objects, key: str, content: bytes) -> bool:
    try:
        objects.create(key, content)
    except Taken:
        return False
    return True


def _kept(objects: Objects, key: str) -> Check:
    content = uuid.uuid4().bytes * (_SIZE // 16)
    keys = [f"{key}-{i}" for i in range(_TIMES)]
    puts = [_timed(lambda k=k: objects.put(k, content)) for k in keys]  # type: ignore[misc]
    listed = objects.keys(key.rpartition("/")[0] + "/")
    if missing := [k for k in keys if k not in listed]:
        found = f"{len(missing)} of {_TIMES} objects that were put are not listed"
        return Check("put and get", "failed", found, "lists must show what was put before")
    got: list[bytes] = []
    gets = [_timed(lambda k=k: got.append(objects.get(k))) for k in keys]  # type: ignore[misc]
    if any(g != content for g in got):
        return Check("put and get", "failed", "what was put comes back changed", "do not use it")
    found = f"{_SIZE >> 10} KiB: put {_told(puts)}, get {_told(gets)}"
    if median(puts) > _SLOW_S:
        advice = "each push waits for two puts, each tick for three: use a store that is nearer"
        return Check("put and get", "warning", found, advice)
    return Check("put and get", "ok", found)


def _timed(request: Callable[[], object]) -> float:
    start = time.perf_counter()
    request()
    return time.perf_counter() - start


def _told(seconds: list[float]) -> str:
    return f"{median(seconds) * 1000:.1f} ms (longest {max(seconds) * 1000:.1f})"


def _advice(reason: str) -> str:
    return next((advice for word, advice in _REASONS.items() if word in reason), _REACH)
