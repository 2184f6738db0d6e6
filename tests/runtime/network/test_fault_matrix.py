"""Each role, each kind of fault, each moment: the result is the reference's, or waits and says so.

A handful of cells run here; `THALWEG_FAULTS=1` (`make soak`) runs them all, with nodes that are
paused and cut off for half a minute (`THALWEG_PAUSE_S`). Live nodes have no coordinators: the proxy
plans. In their place stands the node that passes users' requests on.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.links import Link
from tests.runtime.network.auctions import QUERIES, Auctions
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.api.network.forwarding import AT
from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]

ROLES = {"home": "n2", "fragment": "n4", "proxy": "n3", "gateway": "n5", "broker": "b1"}
KINDS = ("restarted", "gone", "paused", "cut off", "silent", "slow")
MOMENTS = ("before a tick", "in a tick", "after a tick", "placed", "re-placed", "dropped")
FEW = (
    ("home", "restarted", "in a tick"),
    ("fragment", "gone", "re-placed"),
    ("proxy", "cut off", "placed"),
)
EVERY = "THALWEG_FAULTS" in os.environ
CELLS = list(product(ROLES, KINDS, MOMENTS)) if EVERY else list(FEW)
PAUSE_S = float(os.environ.get("THALWEG_PAUSE_S", "30" if EVERY else "8"))
SLOW_S, SLOW_BPS = 0.3, 200_000.0  # more than a probe may take before others are asked, too


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("network")
    count = 5 if EVERY else 4  # those few cells need no gateway
    with Network(folder, count, "--gone-after-s", "0.5", doors=True) as made:
        yield made


@pytest.fixture(scope="module")
def with_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Homes at one site; at the other a broker, who computes, and who reads that."""
    folder: Path = tmp_path_factory.mktemp("network")
    wanted = [
        Wanted("n1", "a", IN_PROCESS, trees="nearest"),
        Wanted("n2", "a", IN_PROCESS, trees="nearest"),
        Wanted("b1", "b", engine="none", trees="nearest"),
        Wanted("n3", "b", IN_PROCESS, trees="nearest"),
        Wanted("n4", "b", IN_PROCESS, trees="nearest"),
    ]
    with Network(folder, 5, "--gone-after-s", "0.5", wanted=wanted, doors=True) as made:
        yield made


class Cell:
    def __init__(self, network: Network, number: int, role: str, kind: str) -> None:
        network.begin_all()
        assert network.doors is not None
        network.doors.heal()
        self.network, self.role, self.kind, self.node = network, role, kind, ROLES[role]
        self.doors = network.doors
        by = ("n5",) if role == "gateway" else ()
        self.auctions = Auctions(network, f"F{number}", by=by)
        self.query = f"joinedF{number}"
        # Where users ask, on behalf of the proxy: there, or (of a gateway) by another node.
        self.asked = ("n5", {AT: "n3"}) if role == "gateway" else ("n3", {})

    def strike(self) -> None:
        match self.kind:
            case "paused":
                self.network.pause(self.node)
                time.sleep(PAUSE_S)
                self.network.go_on(self.node)
            case "cut off" | "silent":
                how = Link.refuse if self.kind == "cut off" else Link.cut
                self.doors.cut_off(self.node, how)
                time.sleep(PAUSE_S)
                self.doors.heal()
            case "slow":
                self.doors.slow(self.node, SLOW_S, SLOW_BPS)  # until the cell ends
            case "gone":
                self.network.kill(self.node)
                self.asked = ("n3", {})
            case "restarted":
                self.network.kill(self.node)
                self.network.begin(self.node)

    def beside(self, deed: Callable[[], object]) -> None:
        """The fault, while something is done."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                deed()
            except BaseException as error:
                failed.append(error)

        doing = threading.Thread(target=run)
        doing.start()
        self.strike()
        if not self.is_waiting:
            doing.join(300)
            assert not doing.is_alive()
            assert not failed, failed

    @property
    def is_waiting(self) -> bool:
        """Without its home or its proxy a query can't go on."""
        return self.kind == "gone" and self.role in ("home", "proxy")

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """As a user does it, who goes elsewhere if nobody answers."""
        node, headers = self.asked
        given = {**headers, **options.pop("headers", {})}
        return self.network.ask(node, method, path, headers=given, **options)

    def place(self) -> None:
        """At a node that is gone for good nothing can be placed: then the proxy computes it."""
        try:
            self.auctions.place("n4", "joined")
        except AssertionError:
            if (self.role, self.kind) != ("fragment", "gone"):
                raise
            self.auctions.place("n3", "joined")

    def drop(self) -> None:
        patiently(lambda: self.ask("POST", "/queries", json={"cql": f"DROP QUERY {self.query}"}))

    def hang_up(self) -> None:
        """Until streams come by the broker. Rows make mirrors go over, so they have to flow."""

        def parents() -> set[str]:
            self.auctions.push(self.auctions.pushed + 1)
            trees = patiently(lambda: self.network.ask("n1", "GET", "/network/trees")).json()
            mine = [t for t in trees if t["stream"].endswith(self.auctions.word)]
            return {m["parent"] for t in mine for m in t["members"] if m["node"] == "n4"}

        eventually(lambda: parents() == {"b1"})

    # --- what is done, and when the fault comes

    def play(self, moment: str) -> None:
        auctions = self.auctions
        if moment == "placed":
            self.beside(self.place)
            if not self.is_waiting:
                auctions.push(80)
            return
        auctions.place("n4", "joined")
        if self.role == "broker":
            self.hang_up()
        if moment == "before a tick":
            self.strike()
            if not self.is_waiting:
                auctions.push(auctions.pushed + 79)
            return
        auctions.push(auctions.pushed + 59)
        if moment == "in a tick":
            self.beside(lambda: _tolerantly(lambda: auctions.push(auctions.pushed + 60)))
        else:
            auctions.reaches(auctions.pushed - 1, "joined")
        if moment == "after a tick":
            self.strike()
        elif moment == "re-placed":
            headers = {"thalweg-strategy": "edge"}
            replan = ("POST", "/network/replan")
            self.beside(lambda: _tolerantly(lambda: self.ask(*replan, headers=headers)))
        elif moment == "dropped":
            self.beside(lambda: _tolerantly(self.drop))
        if not self.is_waiting and moment != "dropped":
            auctions.push(auctions.pushed + 100)

    # --- what must be so in the end

    def check(self, moment: str) -> None:
        if not self.is_waiting and moment == "dropped":
            self.network.begin_all()
            self.asked = ("n3", {})
            mine = (f"Bids{self.auctions.word}", f"Sold{self.auctions.word}")
            eventually(lambda: not self._names() or self._drops_again())
            eventually(lambda: not any(self._reads(stream) for stream in mine))
        elif not self.is_waiting:
            self.auctions.check("joined")
        elif self.role == "home":
            self._waits()
        else:
            self._is_forgotten()

    def _names(self) -> bool:
        told = patiently(lambda: self.network.ask("n1", "GET", "/queries")).json()
        return self.query in [q["name"] for q in told]

    def _drops_again(self) -> bool:
        _tolerantly(self.drop)
        return not self._names()

    def _reads(self, stream: str) -> bool:
        """Whether some home still keeps a stream for a reader."""
        found = [patiently(lambda n=n: self.network.ask(n, "GET", "/network/publications")).json()  # type: ignore[misc]
                 for n in ("n1", "n2")]  # fmt: skip
        return any(name.startswith(f"pub/{stream}>") for names in found for name in names)

    def _waits(self) -> None:
        """What was said is a beginning of what would be, and it is told what is waited for."""
        said = self.auctions.said("joined") if self._names() else []
        self.auctions.pushed = 160  # more than there is
        expected = self.auctions.expected(QUERIES["joined"][0])
        assert said == expected[: len(said)]
        if self._names():
            path = f"/queries/{self.query}/placed"
            eventually(lambda: "n2" in self.network.ask("n1", "GET", path).text)

    def _is_forgotten(self) -> None:
        """A query is gone with its proxy; what was kept and computed for it is not any more."""

        def forget() -> httpx.Response:
            answer = self.network.ask("n1", "POST", "/network/forget", json={"node": "n3"})
            return httpx.Response(503) if answer.status_code == 409 else answer

        patiently(forget)
        eventually(lambda: not self._names())
        eventually(lambda: not any(">n3." in name for name in self.network.fragments("n4")))
        shutil.rmtree(self.network.folder / "n3")  # who comes back under this name is another


def _tolerantly(deed: Callable[[], object]) -> None:
    """As a user does it who tries once, and perhaps in vain."""
    with suppress(httpx.TransportError, AssertionError):
        deed()


@pytest.mark.parametrize(
    ("number", "role", "kind", "moment"),
    [(i, *cell) for i, cell in enumerate(CELLS)],
    ids=[", ".join(cell) for cell in CELLS],
)
def test_a_fault_leaves_no_trace(
    request: pytest.FixtureRequest, number: int, role: str, kind: str, moment: str
) -> None:
    network: Network = request.getfixturevalue("with_broker" if role == "broker" else "plain")
    cell = Cell(network, number, role, kind)
    cell.play(moment)
    cell.check(moment)
