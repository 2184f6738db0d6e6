"""Drawn networks: streams and queries at any node, operators of queries at others, by hand or by a
strategy; rows pushed anywhere; nodes that come and go, stand still, and are cut off from others.

`THALWEG_NETWORKS` says how many (`make soak` draws 200, of up to eight nodes). A network is drawn
from a seed, which a failure prints with what was done.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.runtime.links import Link, Mesh
from tests.runtime.network.live_workloads import feed, judge, network, restart
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script, parse_script, syntax
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.cutting import places
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.fragments import cut_plan, whole_reach
from thalweg.runtime.network.placing.deploying import PLANNED

DRAWN = int(os.environ.get("THALWEG_NETWORKS", "5"))
MOST_NODES = 8 if "THALWEG_NETWORKS" in os.environ else 5
STRATEGIES = ("by hand", "by hand", *PLANNED)


@settings(
    max_examples=DRAWN,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # each example takes seconds: none are shrunk
    suppress_health_check=list(HealthCheck),
)
@given(workloads(queries=3), st.integers(3, MOST_NODES), st.integers(0, 1 << 32), st.booleans())
def test_a_drawn_network_gives_what_the_reference_gives(
    workload: Workload, count: int, seed: int, takes_over: bool
) -> None:
    """Nodes come and go; or (`takes_over`) those who read fragments begin them anew themselves."""
    chance = random.Random(seed)
    with Mesh() as mesh, network(count, Shared(mesh=mesh)) as nodes:
        homes = _define(workload.text, nodes, chance, holds=takes_over)
        faults = Faults(nodes, chance, _take_over if takes_over else restart)
        try:
            feed(workload, homes, chance, faults.maybe)
            faults.heal()
            judge(workload, homes, f"seed {seed}, {count} nodes, {takes_over=}, {faults.done}")
        finally:
            mesh.heal()


@dataclass
class Faults:
    """What befalls a network while rows are pushed; all is well in the end."""

    nodes: list[LiveNode]
    chance: random.Random
    disturb: Callable[[LiveNode], None]
    cut: list[Link] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def maybe(self) -> None:
        if self.cut and self.chance.random() < 0.4:
            self.heal()
        if self.chance.random() < 0.3:
            kind = self.chance.choice((self._disturbed, self._paused, self._cut_off))
            kind(self.chance.choice(self.nodes))

    def heal(self) -> None:
        for link in self.cut:
            link.heal()
        self.cut.clear()

    def _disturbed(self, node: LiveNode) -> None:
        self.done.append(f"{self.disturb.__name__} {node.name}")
        self.disturb(node)

    def _paused(self, node: LiveNode) -> None:
        """Nothing is computed there."""
        self.done.append(f"paused {node.name}")
        with node.node.site.engine.exclusive():
            time.sleep(0.1)

    def _cut_off(self, node: LiveNode) -> None:
        """From one other, or from all; silently, or with all connections broken."""
        others = [n for n in self.nodes if n is not node]
        if self.chance.random() < 0.5:
            others = [self.chance.choice(others)]
        how = self.chance.choice((Link.cut, Link.refuse))
        self.done.append(f"{how.__name__} {node.name} from {[n.name for n in others]}")
        mesh = node.shared.mesh
        assert mesh is not None
        for other in others:
            for one, to in ((node, other), (other, node)):
                link = mesh.relay(one.name, to.data.address)
                how(link)
                self.cut.append(link)


def _define(
    text: str, nodes: list[LiveNode], chance: random.Random, *, holds: bool
) -> dict[str, LiveNode]:
    """Each statement at a node of its own choice; where everything is."""
    homes: dict[str, LiveNode] = {}
    for statement in parse_script(text):
        node = chance.choice(nodes)
        assert statement.name is not None
        name = statement.name.text
        _execute(statement, text[slice(*statement.span)], node, nodes, chance)
        found = node.node.find(name)
        assert found is not None
        homes[name] = node = next(n for n in nodes if n.name == found.node)
        if holds:
            streams = [s.name for s in node.node.site.catalog.streams() if not is_mirror(s)]
            node.node.site.engine.holds.write("all", dict.fromkeys(streams, BEGINNING))
    return homes


def _execute(
    statement: syntax.Statement,
    text: str,
    node: LiveNode,
    nodes: list[LiveNode],
    chance: random.Random,
) -> None:
    """At the node; of a query, some operators at others."""
    if not isinstance(statement, syntax.CreateQuery):
        node.cql(text)
        return
    strategy = chance.choice(STRATEGIES)
    if strategy != "by hand":
        eventually(lambda: _is_planned(node, text, strategy))
        return
    plan = compile_script(text, node.node.catalog()).queries[0].plan
    found = list(places(plan))
    cuts = chance.sample(found, min(len(found), chance.choice((0, 1, 2, 3))))
    at = {c.path: chance.choice(nodes).name for c in cuts}
    node.node.place(text, cut_plan(plan, at, node.name))


def _is_planned(node: LiveNode, text: str, strategy: str) -> bool:
    """On a busy machine a node may not answer in time: then it is asked again, as users do."""
    headers = {"thalweg-strategy": strategy}
    answer = node.http.post("/queries", json={"cql": text}, headers=headers)
    assert answer.is_success or answer.status_code == 503, answer.text
    return answer.is_success


def _take_over(node: LiveNode) -> None:
    """As if the nodes that compute its fragments were gone; they go on, and nobody listens."""
    for _, (stream, fragment) in list(node.node.fragments.read()):
        place = node.node.mirrors.place(stream)
        is_over = place is not None and place.instant >= FOREVER
        if whole_reach(fragment) is not None and not is_over:
            node.node.fragments.begin_again(stream, fragment)
