"""What people read when no service answers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from thalweg.cli.client import Unreachable

HERE = "http://127.0.0.1:7341"


def test_a_certificate_that_nobody_knows_is_no_missing_service() -> None:
    error = Unreachable("https://paris:7341", "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed")
    assert "--ca FILE or THALWEG_CA" in str(error)
    assert "start one" not in str(error)


def test_plain_http_to_a_node_with_certificates_is_said_so() -> None:
    error = Unreachable(HERE, "Server disconnected without sending a response.")
    assert "begins with https://" in str(error)


def test_the_other_nodes_of_the_network_in_this_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "start one with `thalweg dev` or" in str(Unreachable(HERE, "refused"))
    nodes = [{"url": HERE, "pid": 0}, {"url": "http://127.0.0.1:9", "pid": os.getpid()}]
    (tmp_path / "thalweg-network").mkdir()
    (tmp_path / "thalweg-network" / "network.json").write_text(json.dumps(nodes))
    error = Unreachable(HERE, "refused")
    assert "--url http://127.0.0.1:9" in str(error)
    assert "`thalweg network up` starts this one again" in str(error)
