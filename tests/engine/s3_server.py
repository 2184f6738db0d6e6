"""A real S3 server on loopback, started by tests and stopped by its process id; and a proxy in
front of it that has bad days."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY, SECRET, BUCKET = "tests", "tests-only", "bucket"
VERSITYGW = Path(sys.executable).parent / "versitygw"  # `make s3` puts it there


class S3Server:
    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        (folder / BUCKET).mkdir(parents=True)
        self._said = folder.with_name("s3-said.txt")
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [VERSITYGW, "--port", f"127.0.0.1:{self.port}", "posix", folder],
                env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def wait(self, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the S3 server did not start: {self._said.read_text()[-2000:]}")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def credentials(port: int) -> dict[str, str]:
    """What a client takes from its environment."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


# Of the how-manieth request: what goes wrong with it, or nothing.
Mishap = Callable[[int], str]


@contextmanager
def proxy(port: int, mishap: Mishap) -> Iterator[int]:
    """A port at which requests are passed on, or not: `503`, `slow`, `torn` (half of the answer),
    `lost` (done, but not answered)."""
    count = iter(range(1 << 30))
    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            with counting:
                what = mishap(next(count))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if what == "503":
                self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
                return
            if what == "slow":
                time.sleep(0.3)
            to = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                # The signature covers the host as the client has written it.
                to.request(self.command, self.path, body, dict(self.headers.items()))
                answer = to.getresponse()
                content = answer.read()
                headers = dict(answer.getheaders())
            finally:
                to.close()
            if what == "lost":
                self.close_connection = True
                return
            self._answer(answer.status, headers, content, torn=what == "torn")

        def _answer(
            self, status: int, headers: dict[str, str], content: bytes, *, torn: bool = False
        ) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            size = headers.get("Content-Length", str(len(content)))
            self.send_header(
                "Content-Length", size if self.command == "HEAD" else str(len(content))
            )
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if torn else content)
            if torn:
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
