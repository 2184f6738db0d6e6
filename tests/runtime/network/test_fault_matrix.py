"""Each role, each kind of fault, each moment: the result is the reference's, or waits and says so.

A handful of cells run here; `THALWEG_FAULTS=1` (`make soak`) runs them all. Live nodes have no
brokers and no coordinators yet, so that these roles have no cells.
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

import httpx
import pytest
from tests.runtime.network.auctions import QUERIES, Auctions
from tests.runtime.network.processes import Network, eventually, patiently

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

ROLES = {"home": "n2", "fragment": "n4", "proxy": "n3"}
KINDS = ("restarted", "gone", "paused")
MOMENTS = ("before a tick", "in a tick", "after a tick", "placed", "re-placed", "dropped")
FEW = (
    ("home", "restarted", "in a tick"),
    ("fragment", "gone", "re-placed"),
    ("proxy", "restarted", "in a tick"),
    ("proxy", "gone", "after a tick"),
)
EVERY = "THALWEG_FAULTS" in os.environ
CELLS = list(product(ROLES, KINDS, MOMENTS)) if EVERY else list(FEW)
PAUSE_S = 30.0 if EVERY else 5.0


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("network")
    with Network(folder, 4, "--gone-after-s", "0.5") as made:
        yield made


class Cell:
    def __init__(self, network: Network, number: int, role: str, kind: str) -> None:
        network.begin_all()
        self.network, self.role, self.kind, self.node = network, role, kind, ROLES[role]
        self.auctions = Auctions(network, f"F{number}")
        self.query = f"joinedF{number}"

    def strike(self) -> None:
        if self.kind == "paused":
            self.network.pause(self.node)
            time.sleep(PAUSE_S)
            self.network.go_on(self.node)
            return
        self.network.kill(self.node)
        if self.kind == "restarted":
            self.network.begin(self.node)

    def beside(self, deed: Callable[[], object]) -> None:
        """The fault, while something is done."""
        doing = threading.Thread(target=deed)
        doing.start()
        self.strike()
        if not self.is_waiting:
            doing.join(120)
            assert not doing.is_alive()

    @property
    def is_waiting(self) -> bool:
        """Without its home or its proxy a query can't go on."""
        return self.kind == "gone" and self.role != "fragment"

    # --- what is done, and when the fault comes

    def play(self, moment: str) -> None:
        auctions, network = self.auctions, self.network
        if moment == "placed":
            self.beside(lambda: auctions.place("n4", "joined"))
            if not self.is_waiting:
                auctions.push(80)
            return
        auctions.place("n4", "joined")
        if moment == "before a tick":
            self.strike()
            if not self.is_waiting:
                auctions.push(80)
            return
        auctions.push(60)
        if moment == "in a tick":
            self.beside(lambda: _tolerantly(lambda: auctions.push(120)))
        else:
            auctions.reaches(59, "joined")
        if moment == "after a tick":
            self.strike()
        elif moment == "re-placed":
            headers = {"thalweg-strategy": "edge"}
            replan = ("n3", "POST", "/network/replan")
            self.beside(lambda: _tolerantly(lambda: network.ask(*replan, headers=headers)))
        elif moment == "dropped":
            drop = f"DROP QUERY {self.query}"
            self.beside(lambda: _tolerantly(lambda: network.cql("n3", drop)))
        if not self.is_waiting and moment != "dropped":
            auctions.push(160)

    # --- what must be so in the end

    def check(self, moment: str) -> None:
        if not self.is_waiting and moment == "dropped":
            self.network.begin_all()
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
        _tolerantly(lambda: self.network.cql("n3", f"DROP QUERY {self.query}"))
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
    ("number", "role", "kind", "moment"), [(i, *cell) for i, cell in enumerate(CELLS)]
)
def test_a_fault_leaves_no_trace(
    network: Network, number: int, role: str, kind: str, moment: str
) -> None:
    cell = Cell(network, number, role, kind)
    cell.play(moment)
    cell.check(moment)
