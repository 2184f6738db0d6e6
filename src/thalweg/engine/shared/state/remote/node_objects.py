"""An object store that another node is: `node://KEEPER@HOST:PORT/OWNER/FOLDER`.

The address is that of the keeper's streams. With `?trust=FOLDER` the connection is TLS with the
certificates of both sides, the owner's from that folder. The keeper lets an owner at what is its
own only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec
from pyarrow import flight

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.remote.objects import Objects, Taken

SCHEME = "node://"
OBJECTS = "thalweg-objects"  # the action
_ANSWER_WITHIN_S = 60.0
_HOST_SUFFIX = ".thalweg.internal"  # as certificates have it


class Asked(msgspec.Struct, frozen=True):
    """`what` is put, create, get, keys or delete."""

    owner: str
    what: str
    keys: tuple[str, ...]
    content: bytes = b""


class Answered(msgspec.Struct, frozen=True):
    """`error` is taken, missing, or a sentence."""

    content: bytes = b""
    keys: tuple[str, ...] = ()
    error: str = ""


def url_of(keeper: str, address: str, owner: str, folder: str, trust: Path | None = None) -> str:
    behind = "" if trust is None else f"?trust={quote(str(trust.resolve()))}"
    return f"{SCHEME}{quote(keeper)}@{address}/{quote(owner)}/{folder}{behind}"


class NodeObjects(Objects):
    def __init__(self, url: str) -> None:
        self.url = url
        self._begin()
        parts = urlsplit(url)
        _, owner, self._folder = unquote(parts.path).split("/", 2)
        self._owner, self._address = owner, f"{parts.hostname}:{parts.port}"
        trust = parse_qs(parts.query).get("trust")
        options: dict[str, Any] = {}
        if trust:
            folder = Path(trust[0])
            options = {
                "override_hostname": f"{unquote(parts.username or '').lower()}{_HOST_SUFFIX}",
                "tls_root_certs": (folder / "authority.crt").read_bytes(),
                "cert_chain": (folder / f"{owner}.crt").read_bytes(),
                "private_key": (folder / f"{owner}.key").read_bytes(),
            }
        scheme = "grpc+tls" if options else "grpc"
        self._client = flight.FlightClient(f"{scheme}://{self._address}", **options)

    def put(self, key: str, content: bytes | Path) -> None:
        whole = content.read_bytes() if isinstance(content, Path) else content
        self._ask("put", [key], whole)

    def create(self, key: str, content: bytes) -> None:
        self._ask("create", [key], content)

    def get(self, key: str) -> bytes:
        return self._ask("get", [key]).content

    def keys(self, prefix: str) -> list[str]:
        skipped = len(self._folder) + 1
        return [k[skipped:] for k in self._ask("keys", [prefix]).keys]

    def delete(self, keys: Iterable[str]) -> None:
        with suppress(Unavailable):  # what can't be deleted now stays
            self._ask("delete", list(keys))

    def _ask(self, what: str, keys: list[str], content: bytes = b"") -> Answered:
        asked = Asked(self._owner, what, tuple(f"{self._folder}/{k}" for k in keys), content)
        self.requests += 1
        self.bytes_put += len(content)
        options = flight.FlightCallOptions(timeout=_ANSWER_WITHIN_S)
        try:
            (found,) = self._client.do_action((OBJECTS, msgspec.msgpack.encode(asked)), options)
        except flight.FlightError as error:
            line = (str(error).splitlines() or [""])[0][:200]
            raise Unavailable(f"{self.url}: {line}") from error
        answer = msgspec.msgpack.decode(found.body.to_pybytes(), type=Answered)
        if answer.error == "taken":
            raise Taken(f"{keys[0]} of {self.url} was put by somebody else")
        if answer.error == "missing":
            raise FileNotFoundError(keys[0])
        if answer.error:
            raise Unavailable(f"{self.url}: {answer.error}")
        return answer
