"""Objects in a bucket, or in a folder or memory that stands for one.

Objects never change once they are put, so a `get` can't return half of an old and half of a new
one, and a repeated `put` does no harm. `create` is the one operation that tells who was first.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from thalweg.engine.failures import Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

# The client tries again by itself when a server is busy, and not when an answer ends too early.
_AGAIN_AFTER_S = (0.05, 0.2, 0.8)
_RETRIES: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=30)}
_OPTIONS: Any = {"allow_http": True, "timeout": timedelta(seconds=60)}
_RETRIES_OF_THE_IMPATIENT: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=5)}
_OPTIONS_OF_THE_IMPATIENT: Any = {"allow_http": True, "timeout": timedelta(seconds=10)}

_DISCARDED_AT_ONCE = 200
_CODE = re.compile(r"<Code>(\w+)</Code>")


class Taken(Exception):
    """Somebody else was first to create an object."""


class Objects:
    """`url` as in s3://bucket/folder; keys and endpoint come from the usual AWS_ variables."""

    def __init__(self, url: str, *, patient: bool = True) -> None:
        """Who is not patient is told of a store that does not answer within seconds."""
        self.url = url
        self._again_after_s = _AGAIN_AFTER_S if patient else ()
        options: dict[str, Any] = {"client_options": _OPTIONS, "retry_config": _RETRIES}
        if not patient:
            options["client_options"] = _OPTIONS_OF_THE_IMPATIENT
            options["retry_config"] = _RETRIES_OF_THE_IMPATIENT
        if url.startswith("memory:"):
            options = {}
        elif url.startswith("file:"):
            options = {"mkdir": True}
        try:
            self._store = from_url(url, **options)
        except BaseError as error:
            raise ValueError(_first_line(error)) from None
        self._begin()

    def _begin(self) -> None:
        self._discarding = threading.Lock()
        self._discarded: list[str] = []
        self._counting = threading.Lock()
        self.requests = 0  # since the process began, for whoever measures
        self.bytes_put = 0

    def put(self, key: str, content: bytes | Path) -> None:
        """Raises Unavailable."""
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        self._done(lambda: obstore.put(self._store, key, content), size)

    def create(self, key: str, content: bytes) -> None:
        """Put an object that nobody has put before. Raises Taken, Unavailable.

        The answer to an attempt may get lost, and the next one then finds what the first has put:
        contents tell whose it is, so they must differ between those who compete.
        """
        try:
            self._done(lambda: obstore.put(self._store, key, content, mode="create"), len(content))
        except AlreadyExistsError:
            if self.get(key) != content:
                raise Taken(f"{key} of {self.url} was put by somebody else") from None

    def get(self, key: str) -> bytes:
        """Raises FileNotFoundError, Unavailable."""
        return self._done(lambda: bytes(obstore.get(self._store, key).bytes()))

    def keys(self, prefix: str) -> list[str]:
        """Those that begin with a folder's name, in order."""

        def listed() -> list[str]:
            found = obstore.list(self._store, prefix)
            return sorted(str(meta["path"]) for batch in found for meta in batch)

        return self._done(listed)

    def discard(self, keys: Iterable[str]) -> None:
        """Delete objects some time, many in one request. What a crash leaves is nobody's."""
        with self._discarding:
            self._discarded += keys
            if len(self._discarded) < _DISCARDED_AT_ONCE:
                return
            now, self._discarded = self._discarded, []
        self.delete(now)

    def delete(self, keys: Iterable[str]) -> None:
        """What is not there is no mistake, and what can't be deleted now stays."""
        gone = list(keys)
        for first in range(0, len(gone), _DISCARDED_AT_ONCE):
            self._delete(gone[first : first + _DISCARDED_AT_ONCE])

    def _delete(self, keys: list[str]) -> None:
        try:
            self._done(lambda: obstore.delete(self._store, keys))
        except FileNotFoundError:
            # Some stores stop there.
            if len(keys) > 1:
                for key in keys:
                    self._delete([key])
        except Unavailable as error:
            log.debug("not deleted: %s", error)

    def _done(self, request: Callable[[], T], size: int = 0) -> T:
        """All requests may be repeated: `create` knows its own content again."""
        for wait_s in (*self._again_after_s, None):
            with self._counting:
                self.requests += 1
                self.bytes_put += size
            try:
                return request()
            except (AlreadyExistsError, FileNotFoundError):
                raise
            except (BaseError, OSError) as error:
                if wait_s is None:
                    raise Unavailable(f"{self.url}: {_first_line(error)}") from error
                log.debug("once more: %s", error)
                time.sleep(wait_s)
        raise AssertionError("unreachable")


def _first_line(error: BaseException) -> str:
    """What a person needs of it; S3 servers give their reason in XML, behind the first line."""
    text = str(error).strip()
    if not text:
        return repr(error)
    reason = _CODE.search(text)
    first = text.splitlines()[0].partition("<?xml")[0].rstrip(" :")[:300]
    return f"{first}: {reason[1]}" if reason else first


@lru_cache(maxsize=64)
def objects_at(url: str) -> Objects:
    """One client of a store in a process, with its connections."""
    if url.startswith("node://"):
        from thalweg.engine.shared.state.remote.node_objects import NodeObjects

        return NodeObjects(url)
    return Objects(url)
