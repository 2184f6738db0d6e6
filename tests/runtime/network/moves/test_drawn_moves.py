"""Drawn moves on live nodes: queries that are one fragment or spread by buckets, moved about while
rows come, joins change their shapes, and nodes are started again at a drawn step of a move.

`THALWEG_MOVED_NETWORKS` says how many (`make soak` plays 100). Each is drawn from a seed, which a
failure prints with what was done.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engine.shared.shapes_in_turn import in_turn
from tests.runtime.network.keyed_workloads import drawn_workload
from tests.runtime.network.live_workloads import feed, judge, network
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.adapt.handover import WAYS
from thalweg.adapt.handover.messages import MESSAGES
from thalweg.adapt.moves.spreading import CannotSpread, ranges, spreadable
from thalweg.cql import compile_script, parse_script, syntax

SEEDS = int(os.environ.get("THALWEG_MOVED_NETWORKS", "20"))
NODES = 3
ROLES = ("sender", "receiver", "manager", "home", "reader")
STEPS = tuple(m.__name__ for m in MESSAGES)
WORDS = ("GROUP", "DISTINCT", "LEFT", "UNION", "Unbounded", "Rows", "Session", "Tumble", "Hop")
WORDS += ("Slide", "[Now]")
# What may be answered instead: it is where it should go, not to be moved so, or still on its way.
REFUSED = ("already", "can't go by ptlb", "there is no fragment", "does not answer")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_moves_while_nodes_are_started_again_no_row_shows_it(seed: int) -> None:
    chance = random.Random(seed)
    workload = drawn_workload(chance)
    shared = Shared()
    with network(NODES, shared, in_turn(chance.randrange(100))) as nodes:
        homes, parts = define(workload.text, nodes, chance)
        moves = Moves(nodes, homes, parts, chance)
        try:
            feed(workload, homes, chance, moves.maybe)
            judge(workload, homes, "")
            moves.settle()
        except BaseException as error:
            error.add_note(f"seed {seed}: {workload.text}{parts}\n" + "\n".join(moves.done))
            error.add_note("\n".join(map(str, moves.listed())))
            raise


def test_the_seeds_draw_every_way_and_every_kind_of_query() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(100):
        for query in drawn_workload(random.Random(seed)).script().queries:
            drawn[f"joins {len({s for s in 'ABCD' if f'{s} [' in query.text})}"] += 1
            drawn.update(w for w in WORDS if w in query.text)
    assert min(drawn.values()) >= 5, drawn
    assert len(drawn) == 15


def define(
    text: str, nodes: list[LiveNode], chance: random.Random
) -> tuple[dict[str, LiveNode], dict[str, int]]:
    """Where each stream and query stands, and of how many parts each query is."""
    homes: dict[str, LiveNode] = {}
    parts: dict[str, int] = {}
    for statement in parse_script(text):
        assert statement.name is not None
        name, node = statement.name.text, chance.choice(nodes)
        own = text[slice(*statement.span)]
        homes[name] = node
        if not isinstance(statement, syntax.CreateQuery):
            node.cql(own)
            continue
        count = chance.choice((0, 2, 2, 3)) if _can_be_spread(own, node) else 0
        over = chance.sample([n.name for n in nodes], min(count, chance.choice((1, 2))))
        how = {"thalweg-spread": f"{','.join(over)}/{count}"} if count else {"thalweg-movable": "1"}
        answer = node.http.post("/queries", json={"cql": own}, headers=how)
        assert answer.is_success, answer.text
        parts[name] = count or 1
    return homes, parts


def _can_be_spread(text: str, node: LiveNode) -> bool:
    try:
        spreadable(compile_script(text, node.node.catalog()).queries[0].plan)
    except CannotSpread:
        return False
    return True


def fragments_at(node: LiveNode) -> list[str]:
    """What it computes for others."""
    return [q.name for q in node.node.site.catalog.queries() if q.name.startswith("pub/#")]


@dataclass
class Moves:
    """Moves that are asked for while rows are pushed, and who is started again meanwhile."""

    nodes: list[LiveNode]
    homes: dict[str, LiveNode]
    parts: dict[str, int]
    chance: random.Random
    begun: int = 0
    done: list[str] = field(default_factory=list)

    def maybe(self) -> None:
        if not self.begun or self.chance.random() < 0.4:
            self.ask()

    def ask(self) -> None:
        query, manager = self.chance.choice(list(self.parts)), self.chance.choice(self.nodes)
        wanted = {"what": query, "to": self.chance.choice(self.nodes).name}
        wanted["by"] = self.chance.choice(WAYS)
        if self.parts[query] > 1 and self.chance.random() < 0.7:
            own = ranges(self.parts[query])
            first = self.chance.randrange(len(own))
            last = self.chance.randrange(first, len(own))
            wanted["buckets"] = f"{own[first][0]}-{own[last][1]}"
        role, step = self.chance.choice(ROLES), self.chance.choice(STEPS)
        if self.chance.random() < 0.5:
            self.move(wanted, manager)
        else:
            self.move_and_restart(wanted, manager, role, step)

    def move(self, wanted: dict[str, Any], manager: LiveNode) -> list[dict[str, Any]]:
        answer = manager.http.post("/network/moves", json=wanted)
        if not answer.is_success:
            assert any(why in answer.text for why in REFUSED), (wanted, answer.text)
            self.done.append(f"{wanted}: {answer.text}")
            return []
        found: list[dict[str, Any]] = answer.json()
        self.begun += len(found)
        self.done.append(f"{wanted} by way of {manager.name}: {[m['move'] for m in found]}")
        return found

    def move_and_restart(
        self, wanted: dict[str, Any], manager: LiveNode, role: str, step: str
    ) -> None:
        """From a step on a node hears nothing and is not heard; then it is started again."""
        query = wanted["what"]
        sender = self.chance.choice(self.places(query))
        streams = [n for name, n in sorted(self.homes.items()) if name not in self.parts]
        victim = {
            "sender": self.named(sender),
            "receiver": self.named(wanted["to"]),
            "manager": manager,
            "home": self.chance.choice(streams),
            "reader": self.homes[query],
        }[role]
        with struck(victim, step) as has_come:
            begun = self.move(wanted, manager)
            if begun:
                when = step if has_come.wait(2) else "the end"
                self.done.append(f"{role} {victim.name} is started again at {when}")
                victim.close()
        if begun:
            victim.open()

    def settle(self) -> None:
        """Each part stands once, no move is open, and nothing is left of dropped queries."""
        assert self.begun
        for query, count in self.parts.items():
            eventually(lambda q=query, n=count: len(self.places(q)) == n, 60)  # type: ignore[misc]
        eventually(lambda: all(m["is_over"] for m in self.listed()), 60)
        for query in self.parts:
            self.homes[query].cql(f"DROP QUERY {query}")
        for node in self.nodes:
            eventually(lambda n=node: not fragments_at(n), 60)  # type: ignore[misc]

    def named(self, name: str) -> LiveNode:
        return next(n for n in self.nodes if n.name == name)

    def places(self, query: str) -> list[str]:
        """Which nodes have its parts."""
        told = (
            self.homes[query].http.get(f"/queries/{query}/placed", params={"format": "json"}).json()
        )
        return [i["from"] for i in told["inputs"] if i["part"] is not None]

    def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.nodes[0].http.get("/network/moves").json()
        return found


@contextmanager
def struck(victim: LiveNode, step: str) -> Iterator[threading.Event]:
    """Once somebody says what `step` names, the victim is cut off from the protocol."""
    exchange, has_come = victim.shared.exchange, threading.Event()

    def look(sender: str, to: str, message: object) -> None:
        if type(message).__name__ == step:
            exchange.lost.add(victim.address)
            exchange.mute.add(victim.address)
            has_come.set()

    exchange.on_send = look
    try:
        yield has_come
    finally:
        exchange.on_send = None
        exchange.lost.discard(victim.address)
        exchange.mute.discard(victim.address)
