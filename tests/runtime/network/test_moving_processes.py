"""Nodes as processes are killed (`kill -9`) at each step of a move: the result is the reference's.

A few of them run here; `THALWEG_FAULTS=1` (`make soak`) kills each role at each step of each way.
At a step a process is killed by whoever comes to it (`striking/sitecustomize.py`): before what the
step says leaves the node, or (`write`) before what it persists is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.cli.network.running import meet
from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.plan.nodes import Aggregate, Join

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

STREAMS = (
    "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT"
)
QUERY = (
    "CREATE QUERY sales AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS top "
    "FROM Bids [Partition By item Rows 5] B, Sold [Unbounded] S WHERE B.item = S.item "
    "GROUP BY S.item"
)
# What its reader can compute anew from the streams' homes when its node is gone.
REPLAYABLE = QUERY.replace("Partition By item Rows 5", "Range 40").replace(
    "Unbounded", "Range 25 Slide 5"
)
# By PTLB goes what is linear, over windows that end.
LINEAR = (
    "CREATE QUERY sales AS SELECT S.item, B.price FROM Bids [Range 40] B, "
    "Sold [Range 25 Slide 5] S WHERE B.item = S.item"
)
EVERY = "THALWEG_FAULTS" in os.environ
# The manager is who was asked for the move; the splits are the streams' homes.
ROLES = {"manager": "n1", "sender": "n2", "reader": "n3", "receiver": "n4"}
ROLES |= {"split of Bids": "n5", "split of Sold": "n6"} if EVERY else {}
BIDS, SOLD = ROLES.get("split of Bids", "n1"), ROLES.get("split of Sold", "n1")

STEPS = {
    "offered": "say handover Offer",
    "described": "do describe",
    "sent": "do piece",
    "copied": "say handover Copied",
    "stands still": "say handover Finish",
    "old track": "do track",
    "adopted": "do stand",
    "taken": "say handover Taken",
    "decided": "say handover Settled",
    "followed": "do follow",
    "heard": "say handover Done",
}
WAYS = {
    "precopy": [s for s in STEPS if s != "old track"],
    "mslb": [s for s in STEPS if s != "old track"],
    "ptlb": [s for s in STEPS if s != "sent"],
}
WRITES = {"sender": ("Offer", "Finish", "Settled"), "receiver": ("Copied", "Taken", "Done")}
CELLS = [(r, s, w) for w, steps in WAYS.items() for s in steps for r in ROLES]
CELLS += [(r, f"write {m}", w) for r, said in WRITES.items() for m, w in product(said, WAYS)]
FEW = [("receiver", "adopted", "precopy"), ("sender", "write Settled", "mslb")]
FOR_GOOD = [(r, s, w) for r, s, w in CELLS if r in WRITES and s in STEPS]
_number = count(1)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder = tmp_path_factory.mktemp("moving")
    with pytest.MonkeyPatch.context() as patch:
        striking = str(Path(__file__).parent / "striking")
        patch.setenv("PYTHONPATH", striking, prepend=os.pathsep)
        patch.setenv("THALWEG_STRIKE", str(folder / "strike"))
        with Network(folder, len(ROLES), "--gone-after-s", "600") as made:
            yield made


@pytest.mark.parametrize(("role", "step", "way"), CELLS if EVERY else FEW)
def test_whoever_is_killed_at_a_step_of_a_move_no_row_shows_it(
    network: Network, role: str, step: str, way: str
) -> None:
    text = LINEAR if way == "ptlb" else QUERY
    with Case(network, text, dict(ROLES)).begun() as case:
        case.move_and_kill(role, step, way)
        if role == "manager":  # nobody needs it
            case.push(120, 180)
            case.settle(180)
            network.begin(ROLES[role])
        else:
            network.begin(ROLES[role])
            case.push(120, 180)
        eventually(case.is_over, 120)
        case.push(180, 240)
        case.settle(240)
        case.stands_once()


@pytest.mark.skipif(not EVERY, reason="make soak")
@pytest.mark.parametrize(("role", "step", "way"), FOR_GOOD)
def test_either_node_may_be_gone_for_good_at_a_step_of_a_move(
    network: Network, role: str, step: str, way: str
) -> None:
    text = LINEAR if way == "ptlb" else REPLAYABLE
    names = {**ROLES, role: f"x{next(_number)}"}
    network.begin(names[role])
    meet(list(network.nodes.values()))
    with Case(network, text, names).begun() as case:
        case.move_and_kill(role, step, way)
        case.forget(names[role])
        case.push(120, 240)
        case.settle(240)


@pytest.mark.skipif(not EVERY, reason="make soak")
@pytest.mark.parametrize("gone", ["sender", "receiver"])
def test_by_ptlb_either_node_may_be_gone_for_good_while_both_compute(
    network: Network, gone: str
) -> None:
    names = {**ROLES, gone: f"x{next(_number)}"}
    network.begin(names[gone])
    meet(list(network.nodes.values()))
    with Case(network, LINEAR, names).begun() as case:
        assert case.move("ptlb")
        eventually(case.is_over, 120)
        case.push(120, 140)
        case.settle(140)
        assert [len(case.fragments(r)) for r in ("sender", "receiver")] == [1, 1]
        network.kill(names[gone])
        case.forget(names[gone])
        case.push(140, 240)
        case.settle(240)


@pytest.mark.skipif(not EVERY, reason="make soak")
@pytest.mark.parametrize("reader_is_killed", [False, True])
def test_what_nobody_could_rebuild_outlives_its_node_by_a_copy(
    tmp_path: Path, reader_is_killed: bool
) -> None:
    options = ("--gone-after-s", "600", "--copy-every-s", "0.5")
    names = dict.fromkeys(ROLES, "n1") | {"sender": "n2", "reader": "n3"}
    with Network(tmp_path, 3, *options) as network:
        case = Case(network, QUERY, names, homes=("n1", "n1"))
        case.begin()
        placed = f"/queries/{case.query}/placed"
        eventually(lambda: "checkpointed" in network.ask("n3", "GET", placed).text, 120)
        case.push(120, 160)
        network.kill("n2")
        if reader_is_killed:
            network.kill("n3")
            network.begin("n3")
        case.push(160, 200)
        case.forget("n2")
        case.push(200, 240)
        case.settle(240)
        assert len(case.fragments("reader")) == 1


@dataclass
class Case:
    """A query at its reader, whose fragment goes from the sender to the receiver."""

    network: Network
    text: str
    names: dict[str, str]  # of nodes, by role
    homes: tuple[str, str] = (BIDS, SOLD)  # of both streams
    number: int = field(default_factory=lambda: next(_number))

    @property
    def query(self) -> str:
        return self._own("sales")

    def _own(self, text: str) -> str:
        """With names of this case."""
        for name in ("Bids", "Sold", "sales"):
            text = text.replace(name, f"{name}{self.number}")
        return text

    @contextmanager
    def begun(self) -> Iterator[Case]:
        self.begin()
        yield self
        self.network.cql(self.names["reader"], f"DROP QUERY {self.query}")
        for node in self.network.nodes:
            eventually(lambda n=node: not self._fragments_at(n), 120)  # type: ignore[misc]
        for home, stream in zip(self.homes, ("Bids", "Sold"), strict=True):
            text = self._own(f"DROP STREAM {stream}")
            eventually(lambda h=home, t=text: self._drops(h, t), 120)  # type: ignore[misc]

    def _drops(self, home: str, text: str) -> bool:
        """What was subscribed to goes in its own time."""
        return self.network.ask(home, "POST", "/queries", json={"cql": text}).is_success

    def begin(self) -> None:
        kind = Join if self.text == LINEAR else Aggregate
        for home, stream in zip(self.homes, STREAMS.split("; "), strict=True):
            self.network.cql(home, self._own(stream))
        place = self.network.place
        place(
            self.names["reader"],
            self._own(STREAMS),
            self._own(self.text),
            {kind: self.names["sender"]},
        )
        self.push(1, 120)
        self.settle(120)

    def move(self, way: str) -> bool:
        """Whether it is known to have begun: whoever is asked may be killed over it."""
        (publication,) = self.fragments("sender")
        asked = {"what": publication, "to": self.names["receiver"], "by": way}
        with suppress(httpx.TransportError):
            answer = self.network.ask(self.names["manager"], "POST", "/network/moves", json=asked)
            return answer.is_success
        return False

    def move_and_kill(self, role: str, step: str, way: str) -> None:
        order, pid = self.network.folder / "strike", self.network.nodes[self.names[role]].pid
        words = STEPS.get(step) or f"write handover {step.removeprefix('write ')}"
        order.write_text(f"{words}\n{pid}")
        try:
            self.move(way)
            eventually(lambda: not order.exists(), 60)
        finally:
            order.unlink(missing_ok=True)
        os.waitpid(pid, 0)

    def forget(self, node: str) -> None:
        """It does not come back."""
        del self.network.nodes[node]
        away = {"node": node}  # who is forgotten has to be silent for a while
        path, network = "/network/forget", self.network
        eventually(lambda: network.ask("n1", "POST", path, json=away).is_success, 120)

    def push(self, first: int, upto: int) -> None:
        for stream, rows in (("Bids", bids(upto)), ("Sold", sold(upto))):
            new = [r for r in rows if r["ts"] >= first]
            by = [self.names["reader"], self.names["manager"]]
            self.network.push(by, self._own(stream), new, f"{stream}{self.number}-{first}")

    def settle(self, upto: int) -> None:
        """What is final below an instant is the reference's."""
        reader = self.names["reader"]
        eventually(lambda: self.network.final(self.query, reader) >= upto - 2, 120)
        assert sorted(self.network.said(self.query, reader)) == expected(upto, self.text)

    def is_over(self) -> bool:
        told = patiently(lambda: self.network.ask("n1", "GET", "/network/moves")).json()
        return all(m["is_over"] for m in told)

    def stands_once(self) -> None:
        """Whether the move was given up or not: it runs at one node."""
        eventually(lambda: len(self.fragments("sender") + self.fragments("receiver")) == 1, 120)

    def fragments(self, role: str) -> list[str]:
        return self._fragments_at(self.names[role])

    def _fragments_at(self, node: str) -> list[str]:
        return self.network.fragments(node)


def bids(upto: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 3, "price": t * 7 % 31} for t in range(1, upto)]


def sold(upto: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 4} for t in range(1, upto)]


def expected(upto: int, text: str = QUERY) -> list[tuple[Any, ...]]:
    (query,) = compile_script(f"{STREAMS}; {text}").queries
    inputs = {
        name: [
            Arrival(0, row["ts"], place, tuple(v for k, v in row.items() if k != "ts"))
            for place, row in enumerate(rows)
        ]
        for name, rows in (("Bids", bids(upto)), ("Sold", sold(upto)))
    }
    found = reference.evaluate(query.plan, inputs)
    return sorted((c.ts, c.op, c.row) for c in found if c.ts < upto - 1)
