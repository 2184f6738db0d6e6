"""The service as the commands see it."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from thalweg.cli.exits import BAD_INPUT, FAILED, UNREACHABLE, CommandFailed, Mistakes
from thalweg.cli.output import note

AT = "THALWEG_AT"  # the node of a network that answers
TOKEN = "THALWEG_TOKEN"  # of the user, where a service asks for one
CA = "THALWEG_CA"  # the file with the certificate of the network's authority
NETWORK_FOLDER = "thalweg-network"  # where `network up` starts nodes unless it is told
DEFAULT_URL = "http://127.0.0.1:7341"
Url = Annotated[
    str,
    typer.Option("--url", envvar="THALWEG_URL", help="Where the service is.", show_default=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
_BAD_INPUT = {400, 401, 403, 404, 409, 413, 415, 422}


class Unreachable(CommandFailed):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(_unreachable(url, reason), UNREACHABLE)


def _unreachable(url: str, reason: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return (
            f"{url} shows a certificate that no authority known here has signed: name the "
            f"network's own with --ca FILE or {CA} ({reason})"
        )
    if url.startswith("http://") and "disconnected without" in reason:
        return (
            f"{url} does not speak http: the address of a node with certificates begins with "
            f"https:// ({reason})"
        )
    return f"no service at {url} ({reason}): {_instead(url)}"


def _instead(url: str) -> str:
    others = [u for u in _here() if u.rstrip("/") != url.rstrip("/")]
    if others:
        return (
            f"the network in {NETWORK_FOLDER} has other nodes, of which any answers for all "
            f"(--url {others[0]}), and `thalweg network up` starts this one again"
        )
    started = "`thalweg dev` or `thalweg network up`"
    return f"start one with {started}, or say where it is with --url or THALWEG_URL"


def _here() -> list[str]:
    """Services of the nodes that `network up` has started in this folder."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads((Path(NETWORK_FOLDER) / "network.json").read_text())
        return [str(node["url"]) for node in told if Path(f"/proc/{node['pid']}").exists()]
    return []


class Service:
    """One HTTP client; every answer that is no success raises CommandFailed with its reason."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.Client(
            headers=_headers(self.url),
            verify=_authority(),
            base_url=self.url,
            timeout=httpx.Timeout(120, connect=5),
            trust_env=not _is_local(url),
        )

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.checked(self.try_request(method, path, **options))

    def try_request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Whatever the service answers; only Unreachable is raised."""
        try:
            return self._patiently(lambda: self._client.request(method, path, **options))
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(self.url, str(error) or type(error).__name__) from None

    def _patiently(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """A service of this machine may be about to start: wait a moment for it."""
        until = time.monotonic() + (patience_s() if _is_local(self.url) else 0.0)
        is_told = False
        while True:
            try:
                return ask()
            except httpx.ConnectError as error:
                if "CERTIFICATE" in str(error):
                    raise
                if time.monotonic() >= until:
                    raise
                if not is_told:
                    note(f"no service at {self.url} yet: waiting up to {patience_s():g} s for one")
                    is_told = True
                time.sleep(0.1)

    def checked(self, answer: httpx.Response) -> httpx.Response:
        check(answer)
        return answer

    def get(self, path: str, **params: Any) -> Any:
        return self.request("GET", path, params=params).json()

    @contextmanager
    def stream(
        self, path: str, *, timeout_s: float | None = 30, **options: Any
    ) -> Iterator[httpx.Response]:
        """Raises httpx.TransportError where the connection breaks. A living service says something
        every 10 s; one that has to make its answer first may take longer (None: as long as it
        likes)."""
        timeout = httpx.Timeout(timeout_s, connect=5)
        with self._client.stream("GET", path, timeout=timeout, **options) as answer:
            if answer.is_error:
                answer.read()
            check(answer)
            yield answer

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _headers(url: str) -> dict[str, str]:
    headers = {}
    if at := os.environ.get(AT):
        headers["thalweg-at"] = at
    if token := os.environ.get(TOKEN):
        if not url.startswith("https://") and not _is_local(url):
            raise CommandFailed(
                f"a token must not go over {url} in plain text: use https://", BAD_INPUT
            )
        headers["authorization"] = f"Bearer {token}"
    return headers


def _authority() -> ssl.SSLContext | bool:
    """Whose certificates count: those of the network's own authority alone, if it is named."""
    file = os.environ.get(CA)
    if not file:
        return True
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise CommandFailed(f"{CA}: {file} can't be used: {error}", BAD_INPUT) from None


def check(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        problem = answer.json()
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{answer.status_code} {answer.reason_phrase} from {answer.url}"
        raise CommandFailed(detail, _code(answer)) from None
    if "errors" in problem:
        raise Mistakes(detail)
    raise CommandFailed(detail, _code(answer))


def _code(answer: httpx.Response) -> int:
    return BAD_INPUT if answer.status_code in _BAD_INPUT else FAILED


def patience_s() -> float:
    """For how long commands wait for a service that does not listen yet."""
    try:
        return float(os.environ.get("THALWEG_WAIT_S", "5"))
    except ValueError:
        raise CommandFailed("THALWEG_WAIT_S is a number of seconds", BAD_INPUT) from None


def quoted(name: str) -> str:
    """A name as part of a path."""
    from urllib.parse import quote

    return quote(name, safe="")


def _is_local(url: str) -> bool:
    # A proxy from the environment must not come between us and our own machine.
    host = httpx.URL(url).host if "://" in url else url
    return host in ("127.0.0.1", "localhost", "::1")
