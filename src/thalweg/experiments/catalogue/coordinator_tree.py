"""The coordinator tree at 256 and 4,096 nodes under churn: depth, sizes, cost of joins, repair.

COSMOS 3.3.3 describes the tree and gives no figures for it. Nodes join through the protocol, on a
transit-stub network as in 3.4; then some crash and as many join, at several rates; then the root
and a share of all coordinators are lost at once. All trees are checked by the rules that the
simulator's scenario checks (one tree, sizes in bounds, medians).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.scenarios.coordinators import imperfect, tree_at
from thalweg.sim.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEARTBEAT_S = 5
CONTACTS = 6  # other nodes that a node's configuration names


@dataclass(frozen=True)
class Parameters:
    sizes: tuple[int, ...] = (256, 4096)
    k: int = 4  # COSMOS 3.4
    joins_per_s: float = 8.0  # while the tree is built
    churn_percent: tuple[float, ...] = (1.0, 5.0)  # of the nodes, each minute
    churn_s: int = 300
    lost_percent: float = 20.0  # of the coordinators, and the root, at once
    repair_within_s: int = 600
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.sizes) < 16 or max(self.sizes) > 4096:
            raise ValueError("sizes from 16 to 4,096 nodes fit the networks")
        if self.joins_per_s <= 0 or not 0 < self.lost_percent < 100:
            raise ValueError("rates are above zero, and not all coordinators can be lost")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(sizes=(64, 256), churn_percent=(5.0,), churn_s=120)


class _Contacts:
    """Whom a node may ask: a few, named by its configuration, as membership would know more."""

    def __init__(self, others: list[Address]) -> None:
        self._others = others

    def up(self) -> list[Address]:
        return self._others


class _Network:
    """A tree of one size, and what is done to it."""

    def __init__(self, parameters: Parameters, size: int) -> None:
        self.parameters, self.size = parameters, size
        self.settings = TreeSettings(k=parameters.k, heartbeat_us=HEARTBEAT_S * SECOND_US)
        self.generator = Generator(seed_of(parameters.seed, "tree", size))
        self.addresses: list[Address] = []
        self.latency = _hosts(parameters, size)
        self.world = World(self._build, seed=parameters.seed, network=self.latency)
        self.joining: dict[Address, int] = {}  # not in the tree yet
        self.join_s: list[float] = []

    def _build(self, address: Address) -> Stack:
        contacts = self.generator.sample(self.addresses, CONTACTS)
        return Stack([CoordinatorTree(_Contacts(contacts), self.settings)])

    def add(self) -> None:
        address = f"n{len(self.addresses)}"
        self.world.start(address)
        self.addresses.append(address)
        if len(self.addresses) > 1:
            self.joining[address] = self.world.now_us

    def run(self, seconds: float) -> None:
        """On, noting down who has found a place."""
        end_us = self.world.now_us + int(seconds * SECOND_US)
        while self.world.now_us < end_us:
            self.world.run_for(min(SECOND_US, end_us - self.world.now_us))
            for address, since_us in list(self.joining.items()):
                host = self.world.hosts[address]
                if not host.is_up:
                    del self.joining[address]
                elif not tree_at(host).place.is_root:
                    self.join_s.append((self.world.now_us - since_us) / SECOND_US)
                    del self.joining[address]

    def until_perfect(self, progress: Callable[[str], None]) -> float:
        """Seconds until the tree is as promised; infinite if that takes too long."""
        start_us = self.world.now_us
        while (missing := imperfect(self.world, self.world.up(), self.settings)) is not None:
            waited_s = (self.world.now_us - start_us) / SECOND_US
            if waited_s > self.parameters.repair_within_s:
                progress(missing)
                return float("inf")
            self.run(HEARTBEAT_S)
        return (self.world.now_us - start_us) / SECOND_US

    def sent(self, *kinds: str) -> int:
        found = self.world.sent
        return sum(n for (_, kind), n in found.items() if not kinds or kind in kinds)


def _hosts(parameters: Parameters, size: int) -> Hosts:
    """Places for all, those that join under churn included: a few nodes more where needed."""
    what = transit_stub.COSMOS_4096
    needed = size + round(_churned(parameters, size))
    if needed > what.nodes - what.transits:
        nodes = needed + what.transits
        what = transit_stub.preset("cosmos-4096", name=f"cosmos-{nodes}", nodes=nodes)
    return scattered(transit_stub.generate(what, parameters.seed), needed, parameters.seed)


def _churned(parameters: Parameters, size: int) -> float:
    minutes = parameters.churn_s / 60
    return sum(rate / 100 * size * minutes + 1 for rate in parameters.churn_percent)


def run(parameters: Parameters, progress: Progress) -> Report:
    rows: list[dict[str, Any]] = []
    for i, size in enumerate(parameters.sizes):
        share = i / len(parameters.sizes)

        def say(text: str, share: float = share, size: int = size) -> None:
            progress(f"{size} nodes: {text}", share)

        rows += _measure(_Network(parameters, size), say)
    return Report(
        "coordinator-tree",
        "The coordinator tree under churn (COSMOS 3.3.3)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows, parameters),
        notes=NOTES,
        figures={
            "repair": lambda axes: _draw_repair(axes, rows),
            "messages": lambda axes: _draw_messages(axes, rows),
        },
    )


def _measure(net: _Network, say: Callable[[str], None]) -> list[dict[str, Any]]:
    p = net.parameters
    say("growing")
    gap_s = 1 / p.joins_per_s
    for _ in range(net.size):
        net.add()
        net.run(gap_s)
    rows = [_row(net, "grown", net.until_perfect(say))]
    say("standing still")
    net.world.sent.clear()
    net.run(60)
    rows.append(_row(net, "at rest", 0.0, over_s=60))
    for percent in p.churn_percent:
        say(f"churn of {percent:g} % a minute")
        net.world.sent.clear()
        _churn(net, percent)
        during = _row(net, f"churn {percent:g} %/min", 0.0, over_s=p.churn_s)
        rows.append({**during, "settled after s": net.until_perfect(say)})
    say(f"{p.lost_percent:g} % of the coordinators are lost")
    net.world.sent.clear()
    _lose(net, p.lost_percent / 100)
    rows.append(_row(net, f"{p.lost_percent:g} % of coordinators lost", net.until_perfect(say)))
    say("the root is lost")
    net.world.crash(next(h.address for h in net.world.up() if tree_at(h).place.is_root))
    rows.append(_row(net, "root lost", net.until_perfect(say)))
    return rows


def _churn(net: _Network, percent: float) -> None:
    """One crashes and one joins, at an even pace."""
    changes = max(1, round(percent / 100 * net.size * net.parameters.churn_s / 60))
    gap_s = net.parameters.churn_s / changes
    for _ in range(changes):
        victims = [h.address for h in net.world.up()]
        net.world.crash(net.generator.choice(victims))
        net.add()
        net.run(gap_s)


def _lose(net: _Network, share: float) -> None:
    leaders = [h.address for h in net.world.up() if tree_at(h).place.led]
    for address in net.generator.sample(leaders, max(1, round(share * len(leaders)))):
        net.world.crash(address)


def _row(net: _Network, phase: str, settled_s: float, over_s: float = 0.0) -> dict[str, Any]:
    places = [tree_at(h).place for h in net.world.up()]
    sizes = [len(c.members) for p in places for c in p.led]
    joins, net.join_s = net.join_s, []
    to_parent = _distances_to_parents(net)
    row = {
        "nodes": len(places),
        "phase": phase,
        "depth": max(p.height for p in places),
        "clusters": len(sizes),
        "smallest": min(sizes),
        "mean size": round(float(np.mean(sizes)), 2),
        "largest": max(sizes),
        "ms to parent": round(to_parent / 1_000, 2),
        "ms on average": round(float(_mean_latency(net)) / 1_000, 2),
        "settled after s": settled_s,
        "messages/node/s": round(net.sent() / len(places) / over_s, 2) if over_s else "",
        "joins": len(joins),
        "s per join": round(float(np.median(joins)), 1) if joins else "",
        "messages per join": "",
    }
    if phase == "grown":
        # Questions, answers and the Join itself; pings can't be told from other measuring.
        searching = net.sent("Ask", "Below", "Join")
        row["messages per join"] = round(searching / max(1, net.size), 1)
    return row


def _distances_to_parents(net: _Network) -> float:
    hosts = net.world.hosts
    found = [
        net.latency.latency_us(h.index, hosts[parent].index)
        for h in net.world.up()
        if (parent := tree_at(h).place.parent) is not None and parent in hosts
    ]
    return float(np.mean(found)) if found else 0.0


def _mean_latency(net: _Network) -> float:
    chosen = [h.index for h in net.world.up()][:500]
    matrix = net.latency.matrix_us[np.ix_(chosen, chosen)]
    return float(matrix.sum()) / max(1, len(chosen) * (len(chosen) - 1))


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    settled = max(r["settled after s"] for r in rows)
    largest = [r for r in rows if r["phase"] == "grown"][-1]
    return [
        Goal("every tree as promised again within", settled, 600.0, "s", at_least=False),
        Goal(
            "distance to the parent, of the mean distance",
            round(largest["ms to parent"] / largest["ms on average"], 3),
            0.5,
            "",
            at_least=False,
        ),
    ]


def _beside(rows: list[dict[str, Any]], parameters: Parameters) -> list[Beside]:
    bounds = f"clusters of {parameters.k} to {3 * parameters.k - 1}"
    quiet = [r for r in rows if r["phase"] in ("grown", "root lost")]
    return [
        Beside(
            "3.3.3",
            f"{bounds} (fewer at the root), parents at the centre",
            ", ".join(
                f"{r['nodes']} nodes: {r['smallest']} to {r['largest']}, depth {r['depth']}"
                for r in quiet
            ),
            "the source gives rules and no measurements; failures it leaves out (3.3.9)",
        )
    ]


NOTES = (
    f"A heartbeat takes {HEARTBEAT_S} s and a lease four of them, so a loss is noticed after 20 s "
    "and acted upon within a lease or two. A tree counts as settled only when every cluster is in "
    "bounds, every parent and child agree, and every parent is a median within the tolerance.",
)


def _draw_repair(axes: Axes, rows: list[dict[str, Any]]) -> None:
    shown = [r for r in rows if r["phase"] not in ("at rest",)]
    labels = [f"{r['nodes']}: {r['phase']}" for r in shown]
    axes.barh(labels, [r["settled after s"] for r in shown])
    axes.invert_yaxis()
    axes.set_xlabel("seconds until the tree is as promised")


def _draw_messages(axes: Axes, rows: list[dict[str, Any]]) -> None:
    shown = [r for r in rows if r["messages/node/s"] != ""]
    axes.barh([f"{r['nodes']}: {r['phase']}" for r in shown], [r["messages/node/s"] for r in shown])
    axes.invert_yaxis()
    axes.set_xlabel("messages sent per node and second")
