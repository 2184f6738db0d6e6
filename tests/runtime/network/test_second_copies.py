"""A home that is gone for good, with its disk: another node has a second copy of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.cli.network.running import Wanted
from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import run
from thalweg.engine.shared.state.remote.kept_objects import KeptObjects
from thalweg.engine.shared.state.remote.objects import Taken

STREAM = "CREATE STREAM S (k BIGINT, x BIGINT) TIMESTAMP BY ts BIGINT LATENESS 3"
COUNT = "SELECT k, COUNT(*) AS n FROM S [Range 7] GROUP BY k"
ROWS = [{"ts": 3 * (t // 3) + (2 * t) % 3, "k": t % 4, "x": t} for t in range(60)]  # out of order


class Copied(Network):
    """`home` has its copy at `keeper`."""

    def begin(self, name: str) -> None:
        kept, self._options = self._options, list(self._options)
        if name == "home":
            port = json.loads((self.folder / "keeper" / "node.json").read_text())["data"]
            self._options += ["--copy-at", f"keeper=127.0.0.1:{port}"]
        super().begin(name)
        self._options = kept


def test_a_home_that_is_lost_with_its_disk_goes_on_from_its_copy(tmp_path: Path) -> None:
    nodes = [Wanted(n, master="in-process") for n in ("keeper", "home", "reader")]
    with Copied(tmp_path, wanted=nodes) as network:
        network.cql("home", STREAM)
        network.cql("home", "CREATE QUERY own AS SELECT ISTREAM x FROM S [Range 2]")
        network.cql("reader", f"CREATE QUERY counted AS {COUNT}")
        for number in range(4):
            _push(network, number)
            if number in (1, 2):
                if number == 2:
                    eventually(lambda: network.final("counted", "reader") > 20)
                network.kill("home")
                shutil.rmtree(tmp_path / "home")
                network.begin("home")
                # Whoever had no answer asks again: what is in the copy counts once.
                _push(network, number)
        patiently(lambda: network.ask("home", "POST", "/streams/S/finish"))
        for query in ("own", "counted"):
            eventually(lambda q=query: _state(network, q) == "finished")
        assert network.said("counted", "reader") == _expected(COUNT)
        assert network.said("own", "home") == _expected("SELECT ISTREAM x FROM S [Range 2]")


@pytest.mark.skipif("THALWEG_COPIES" not in os.environ, reason="it waits for what must not come")
def test_nothing_is_acknowledged_while_the_copy_cannot_be_made(tmp_path: Path) -> None:
    nodes = [Wanted(n, master="in-process") for n in ("keeper", "home")]
    with Copied(tmp_path, wanted=nodes) as network:
        network.cql("home", STREAM)
        network.pause("keeper")
        with pytest.raises(Exception, match=r"timed out|Timeout|time"):
            _ask_briefly(network, ROWS[:15])
        network.go_on("keeper")
        _push(network, 0)
        found = patiently(lambda: network.ask("home", "GET", "/streams/S")).json()
        assert found["arrived"] == 15


def test_of_two_who_create_an_object_one_is_first(tmp_path: Path) -> None:
    kept = KeptObjects(tmp_path)
    kept.create("log/1", b"one")
    kept.create("log/1", b"one")  # the answer was lost
    with pytest.raises(Taken):
        kept.create("log/1", b"another")
    kept.put("book/x", b"book")
    assert kept.get("log/1") == b"one"
    assert kept.keys("log/") == ["log/1"]
    kept.delete(["log/1", "log/2"])
    assert kept.keys("") == ["book/x"]
    for outside in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(ValueError, match="not a key"):
            kept.put(outside, b"")


def _push(network: Network, number: int) -> None:
    rows = ROWS[15 * number : 15 * number + 15]
    network.push(["home"], "S", rows, f"batch{number}")


def _ask_briefly(network: Network, rows: list[dict[str, Any]]) -> None:
    import httpx

    url = network.nodes["home"].url + "/streams/S/tuples?batch_id=batch0"
    with httpx.Client(trust_env=False, timeout=3) as client:
        answer = client.post(url, json=rows)
        assert not answer.is_success, "it was acknowledged"
        raise TimeoutError("refused, in time")


def _state(network: Network, query: str) -> str:
    found: str = patiently(lambda: network.ask("reader", "GET", f"/queries/{query}")).json()[
        "state"
    ]
    return found


def _expected(text: str) -> list[tuple[Any, ...]]:
    (query,) = compile_script(f"{STREAM}; CREATE QUERY q AS {text}").queries
    inputs = {"S": [Arrival(0, r["ts"], n, (r["k"], r["x"])) for n, r in enumerate(ROWS)]}
    return [(c.ts, c.op, c.row) for c in run(query.plan, inputs).changes]
