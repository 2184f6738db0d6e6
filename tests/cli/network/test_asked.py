"""What commands of a network ask the service: a stub keeps paths, queries and headers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app

ASKED: list[tuple[str, dict[str, str]]] = []
PLANNED: dict[str, Any] = {
    "nodes": [],
    "queries": [],
    "refused": [],
    "strategy": "edge",
    "traffic_bps": 0.0,
}


class Service(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        ASKED.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        self.send_response(200)
        self.end_headers()
        found: Any = PLANNED if self.path == "/network/plan" else []
        self.wfile.write(json.dumps(found).encode())

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    ASKED.clear()
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_fidelity_is_asked_for_the_periods_that_were_given(url: str) -> None:
    arguments = ["network", "fidelity", "--period", "5", "--periods", "7", "--url", url]
    CliRunner().invoke(app, arguments)
    assert ASKED[0][0] == "/network/fidelity?period_s=5.0&periods=7"


def test_a_live_plan_is_made_by_the_nodes_own_strategy_unless_one_is_given(
    url: str, tmp_path: Path
) -> None:
    file = tmp_path / "q.cql"
    file.write_text("SELECT 1")
    asked = ["plan", "--live", "--cql", str(file), "--url", url]
    assert CliRunner().invoke(app, asked).exit_code == 0
    CliRunner().invoke(app, [*asked, "--strategy", "cosmos"])
    given = [headers.get("thalweg-strategy") for _, headers in ASKED]
    assert given == [None, "cosmos"]
