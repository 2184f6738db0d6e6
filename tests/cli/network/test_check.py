"""What `network check` asks, and says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from thalweg.cli.network.command import network

CHECKED: dict[str, Any] = {"n1": [], "n2": [{"query": "sales", "problems": []}], "n3": None}


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found: Any = [{"name": n} for n in CHECKED]
        if self.path == "/network/check":
            found = CHECKED[self.headers["thalweg-at"]]
        self.send_response(503 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_nodes_are_asked_unless_one_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(network, ["check", "--url", url])
    assert result.exit_code == 0
    assert "1 query runs as it was planned" in result.stderr
    assert "n3 does not answer" in result.stderr
    monkeypatch.setenv("THALWEG_AT", "n1")
    result = CliRunner().invoke(network, ["check", "--url", url])
    assert "no query was placed" in result.stderr


def test_what_runs_otherwise_is_said_in_the_end(url: str) -> None:
    CHECKED["n1"] = [{"query": "top", "problems": ["it runs at n2"]}]
    try:
        result = CliRunner().invoke(network, ["check", "--url", url])
    finally:
        CHECKED["n1"] = []
    assert result.exit_code == 1
    assert "top: it runs at n2" in result.stdout
    assert "1 thing runs otherwise than planned" in result.stderr
