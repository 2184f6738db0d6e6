"""Who has a stream from whom: decided at the stream's home, from what its readers have measured.

One small interface, so that another way is one class. What is decided is only a wish: each reader
carries it out by itself, at an instant, and only if the other takes it (`overlay/trees`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from thalweg.placement.arrays import NONE, ints
from thalweg.placement.trees.explain import why
from thalweg.placement.trees.greedy import Greedy, best_parent, join_order
from thalweg.placement.trees.growing import Growing, Totals
from thalweg.placement.trees.model import Cargo, Nodes

MOST_CHILDREN = 16
_FAR_MS = 1000.0  # where nobody has measured
_STAYS = 0.2  # of its way: for less than this, nobody moves
_JITTER_MS = 1.0
_LITTLE = 1e-6  # rows a second: a broker is in the tree, and wants nothing


@dataclass(frozen=True, slots=True)
class Member:
    """A node of a stream's tree, or a broker that may become one."""

    name: str
    site: str
    delays_ms: Mapping[str, float] = field(default_factory=dict)
    rows_per_s: float = 0.0
    row_ms: float = 0.0  # that a row takes there
    is_broker: bool = False
    parent: str | None = None  # at present
    hop_ms: float = 0.0  # that rows wait there before they can be passed on
    is_new: bool = False  # nobody has said yet where it should hang


class Choice(Protocol):
    name: str
    in_rounds: bool  # who hangs already is moved by rounds of adaptation only (`overlay/trees`)

    def parents(self, home: Member, members: Sequence[Member]) -> dict[str, str]:
        """Of each member: the home, or another one. No circles."""
        ...

    def why(self, home: Member, members: Sequence[Member], node: str) -> list[str]:
        """In words, why a member hangs where it hangs."""
        ...


class Delays:
    """Both ends measure; the less counts."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._known = {(m.name, to): ms for m in members for to, ms in m.delays_ms.items()}

    def ms(self, one: str, other: str) -> float:
        found = [self._known.get((one, other)), self._known.get((other, one))]
        return min((ms for ms in found if ms is not None), default=_FAR_MS)


class Nearest:
    """Into each site once, by the shortest way that has been measured; inside of a site, nodes have
    a stream from each other. Nobody but the home has more than so many children. Brokers come
    first, so that others hang under them."""

    name = "nearest"
    in_rounds = False

    def __init__(self, most_children: int = MOST_CHILDREN) -> None:
        self._most = most_children

    def parents(self, home: Member, members: Sequence[Member]) -> dict[str, str]:
        return {name: parent for name, (parent, _) in self._chosen(home, members).items()}

    def _chosen(self, home: Member, members: Sequence[Member]) -> dict[str, tuple[str, str]]:
        delays = Delays([home, *members])
        way_ms, children = {home.name: 0.0}, {home.name: 0}
        sites = {home.name: home.site}
        found: dict[str, tuple[str, str]] = {}

        def order(m: Member) -> tuple[bool, float, str]:
            return not m.is_broker, delays.ms(home.name, m.name), m.name

        for member in sorted(members, key=order):
            room = [n for n in way_ms if children[n] < self._most]
            near = [n for n in room if sites[n] == member.site]
            length = {n: way_ms[n] + delays.ms(n, member.name) for n in near or room}
            length = length or {home.name: delays.ms(home.name, member.name)}
            best = min(length, key=lambda n: (length[n], n))
            stays = member.parent
            if stays in length and length[stays] <= length[best] * (1 + _STAYS) + _JITTER_MS:
                best = stays
            where = f"of its site {member.site}" if near else f"as the first of site {member.site}"
            way = f"{length[best]:.2f} ms from the home"
            if length[best] >= _FAR_MS:
                way = "by a way that nobody has measured yet"
            reason = f"{where}, {way}, among {len(length)} with room"
            found[member.name] = best, reason
            way_ms[member.name], children[member.name] = length[best], 0
            children[best] += 1
            sites[member.name] = member.site
        return found

    def why(self, home: Member, members: Sequence[Member], node: str) -> list[str]:
        if node == home.name:
            return [f"{node} is the home: every way begins there"]
        parent, reason = self._chosen(home, members)[node]
        return [f"{node} hangs under {parent}: {reason}"]


class GreedyChoice:
    """COSMOS's Greedy (`placement/trees`), over what was measured: delays, rates, and what a row
    takes at a node. Rates are taken as nested: who wants more has all that others want."""

    name = "greedy"
    in_rounds = False

    def parents(self, home: Member, members: Sequence[Member]) -> dict[str, str]:
        everybody = [home, *members]
        nodes, cargo = self._model(everybody)
        (tree,) = Greedy().build(nodes, [cargo])
        return {m.name: everybody[int(tree[i])].name for i, m in enumerate(everybody) if i}

    def _model(self, everybody: Sequence[Member]) -> tuple[Nodes, Cargo]:
        delays = Delays(everybody)
        delay_s = np.array(
            [[0.0 if a is b else delays.ms(a.name, b.name) for b in everybody] for a in everybody]
        )
        delay_s += np.array([[m.hop_ms] for m in everybody])  # of who passes on
        np.fill_diagonal(delay_s, 0.0)
        row_s = np.array([m.row_ms for m in everybody]) / 1000
        rates = np.array([[max(m.rows_per_s, _LITTLE)] for m in everybody])
        rates[0] = 0
        weight = rates[:, 0].copy()
        # What a row takes is not told apart: half for looking at it, half for sending it.
        return Nodes(delay_s / 1000, row_s / 2, row_s / 2), Cargo(rates, weight)

    def why(self, home: Member, members: Sequence[Member], node: str) -> list[str]:
        everybody = [home, *members]
        nodes, cargo = self._model(everybody)
        forest = Greedy().build(nodes, [cargo])
        names = [m.name for m in everybody]
        return why(nodes, [cargo], forest, names.index(node), names=names)


class Adaptive(GreedyChoice):
    """Who is new hangs where the loss grows least, as Greedy would have it, in the tree that is
    there. From then on rounds of adaptation move it, and the home says nothing."""

    name = "adaptive"
    in_rounds = True

    def parents(self, home: Member, members: Sequence[Member]) -> dict[str, str]:
        everybody = [home, *members]
        nodes, cargo = self._model(everybody)
        tree = Growing(nodes, cargo, Totals(len(nodes)))
        for row, parent in _as_it_is(everybody):
            tree.add(row, parent)
        new = {i for i, m in enumerate(everybody) if i and m.is_new}
        for row in join_order(nodes):
            if row in new:
                tree.add(row, best_parent(nodes, tree, row))
        found = tree.parents()
        return {m.name: everybody[int(found[i])].name for i, m in enumerate(everybody) if i}

    def why(self, home: Member, members: Sequence[Member], node: str) -> list[str]:
        everybody = [home, *members]
        nodes, cargo = self._model(everybody)
        parents, rows = self.parents(home, members), [m.name for m in everybody]
        forest = (ints([NONE, *(rows.index(parents[m.name]) for m in members)]),)
        return why(nodes, [cargo], forest, rows.index(node), names=rows)


def _as_it_is(everybody: Sequence[Member]) -> Iterator[tuple[int, int]]:
    """The tree of those who are not new, from the home down: numbers of nodes and their parents.
    Whose parent is not known, or is below it, hangs under the home: it moves just now."""
    row = {m.name: i for i, m in enumerate(everybody)}
    left = {i: row.get(m.parent or "", 0) for i, m in enumerate(everybody) if i and not m.is_new}
    placed = {0}
    while left:
        level = [i for i, parent in left.items() if parent in placed]
        if not level:
            level = [min(left)]
            left[level[0]] = 0
        for i in level:
            yield i, left.pop(i)
        placed.update(level)


CHOICES: dict[str, type[Choice]] = {c.name: c for c in (Nearest, GreedyChoice, Adaptive)}
