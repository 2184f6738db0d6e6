"""A node as an object store for another one, with certificates of both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.remote.node_objects import NodeObjects, url_of
from thalweg.engine.shared.state.remote.objects import Taken
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.trust import Credentials, issue, make_authority


def test_an_owner_has_its_own_objects_and_nobody_elses(tmp_path: Path) -> None:
    trust, stolen = tmp_path / "trust", tmp_path / "stolen"
    trust.mkdir()
    make_authority(trust, "test")
    for name in ("keeper", "home", "other"):
        issue(trust, name, ["127.0.0.1"])
    # Another node of the network that calls itself `home`.
    shutil.copytree(trust, stolen)
    for end in ("crt", "key"):
        shutil.copy(stolen / f"other.{end}", stolen / f"home.{end}")
    options = Credentials.of(trust, "keeper").for_flight_server()
    with DataServer("127.0.0.1:0", copies=tmp_path / "copies", **options) as server:
        address = f"127.0.0.1:{server.port}"
        mine = NodeObjects(url_of("keeper", address, "home", "site", trust))
        mine.put("segments/a", b"rows")
        mine.create("log/000000000001", b"first")
        mine.create("log/000000000001", b"first")
        with pytest.raises(Taken):
            mine.create("log/000000000001", b"second")
        assert mine.keys("log/") == ["log/000000000001"]
        assert mine.get("segments/a") == b"rows"
        with pytest.raises(FileNotFoundError):
            mine.get("segments/b")
        mine.delete(["segments/a"])
        assert mine.keys("") == ["log/000000000001"]
        elsewhere = NodeObjects(url_of("keeper", address, "home", "protocols", trust))
        assert elsewhere.keys("") == []
        for owner, folder in (("home", stolen), ("keeper", trust)):
            objects = NodeObjects(url_of("other", address, owner, "site", folder))
            with pytest.raises(Unavailable):
                objects.get("log/000000000001")
