"""Partners at a live node: what it observes, and what it does when they have agreed (COSMOS 6.2).

The protocol is `adapt/partners/site.py`. After each window τ it is told this node's busy share, and
of each fragment that could go its share, its state, where its neighbours run, and how long its
results take beside their work (PR). What partners agree on is handed over like any other fragment
(`moving.py`); `thalweg network moves` says who asked, for what, and why.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from thalweg.adapt.handover.messages import PRECOPY
from thalweg.adapt.partners.objective import Ratio
from thalweg.adapt.partners.settings import Settings
from thalweg.adapt.partners.site import GiveAway, Observed, Running, SitePartners, Stays
from thalweg.engine.failures import FAILURES
from thalweg.engine.supervised import SupervisedThread
from thalweg.overlay.stack import Stack
from thalweg.plan.engines import SHARED
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.moves.journal import REPLAY
from thalweg.runtime.network.moves.natives import Natives

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

log = logging.getLogger(__name__)

NAME = "partners"
WINDOWS = 10  # τ in a round Δ, as in the source
LEAST = 0.05  # of a node's time: less is not worth a move
ROUND_S = 5.0
_CALL_WITHIN_S = 30.0


def live_settings(
    round_s: float = ROUND_S, kappa: float = 1.2, alpha: float = 0.9, max1: int = 5
) -> Settings:
    """Raises ValueError."""
    round_us = round(round_s * 1e6)
    return Settings(
        max1=max1,
        max2=-(-max1 // 2),
        kappa=kappa,
        alpha=alpha,
        round_us=round_us,
        lease_us=4 * round_us,  # of no use here: the hand-over says who owns what
        answer_us=min(round_us, 1_000_000),
        least=LEAST,
    )


_KNOWN = {"round_s": float, "kappa": float, "alpha": float, "max1": int}


def parse_partners(text: str) -> Settings:
    """`round_s=5,kappa=1.2,alpha=0.9,max1=5`, or some of it. Raises ValueError."""
    given: dict[str, float | int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or name not in _KNOWN:
            raise ValueError(f"{part!r} is not one of {', '.join(f'{n}=…' for n in _KNOWN)}")
        try:
            given[name] = _KNOWN[name](value)
        except ValueError:
            raise ValueError(f"{name}={value!r} is no number") from None
    return live_settings(**given)  # type: ignore[arg-type]


class Partnering:
    """`advises`: another controller moves fragments here, and this one only says what it would."""

    def __init__(
        self, node: Node, driver: Driver, settings: Settings, *, advises: bool = False
    ) -> None:
        self._node, self._driver, self.settings = node, driver, settings
        self.advises = advises
        self.natives = Natives(node)
        self._before: tuple[float, float, dict[str, float]] = time.monotonic(), 0.0, {}
        self._queries: dict[str, str] = {}  # by the names that partners know
        self._agreed: queue.SimpleQueue[GiveAway] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads: list[SupervisedThread] = []

    # --- its life

    def start(self) -> None:
        window_s = self.settings.round_us / 1e6 / WINDOWS
        self._driver.on(NAME, self._told)

        def observe() -> None:
            while not self._stop.wait(window_s):
                self._call(self.observed())

        def move() -> None:
            while not self._stop.is_set():
                with suppress(queue.Empty):
                    self._give(self._agreed.get(timeout=0.5))

        def failed(error: BaseException) -> float:
            if not self._stop.is_set():
                log.warning("partners begin again: %s", error)
            return window_s

        for name, work in (("observing", observe), ("giving", move)):
            thread = SupervisedThread(f"{name} partners", work, stop=self._stop, failed=failed)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5)

    def _call(self, request: object) -> None:
        with suppress(DriverClosed, NotInTime):
            self._driver.call(NAME, request).result(_CALL_WITHIN_S)

    # --- what is observed

    def observed(self) -> Observed:
        """Since it was observed before."""
        site, roster = self._node.site, self._node.site.engine.roster
        now, (since, ticked_s, before) = time.monotonic(), self._before
        ticking_s, costs = site.status.ticking_s, site.status.seconds()
        self._before = now, ticking_s, costs
        busy = (ticking_s - ticked_s) / (now - since)
        spent = _shares({n: c - before.get(n, 0.0) for n, c in costs.items()}, busy)
        sizes = Counter(roster.group_of.values())
        moving, queries = self._moving(), {}
        fragments = []
        for native in self.natives.all():
            query, group = native.query, roster.group_of.get(native.query)
            load = spent.get(query, 0.0)
            if group is not None:  # 1/n of an operator that n share
                load += spent.get(group, 0.0) / max(1, sizes[group])
            queries[native.name] = query
            fragments.append(
                Running(
                    native.name,
                    load,
                    native.state_bytes,
                    native.home,
                    native.neighbours_at,
                    self._ratio(query),
                    query in moving,
                    native.has_moved,
                )
            )
        self._queries = queries
        return Observed(busy, tuple(fragments), self._peers(), self.pr_max(), self._hop_s())

    def _moving(self) -> set[str]:
        moving = self._node.moving
        return set() if moving is None else moving.on_their_way()

    def _peers(self) -> tuple[str, ...]:
        """Nodes of this site that run queries as this one does."""
        directory, me = self._node.directory, self._node.directory.me
        return tuple(
            n.address
            for n in directory.nodes()
            if n.site == me.site
            and n.engine == SHARED
            and n.name != me.name
            and directory.is_up(n.name)
        )

    def _ratio(self, query: str) -> Ratio | None:
        site = self._node.site
        took = site.delays.of(site.engine.roster.group_of.get(query, query))
        if took is None or took.pr is None or took.cpr is None:
            return None
        return Ratio(took.pr - took.cpr, took.cpr, took.work_s)

    def pr_max(self) -> float:
        """The worst of all that this node computes."""
        found = (self._ratio(q.name) for q in self._node.site.catalog.queries())
        return max((r.pr for r in found if r is not None), default=0.0)

    def _hop_s(self) -> float:
        """What rows that come from other nodes have taken between nodes, on average."""
        site = self._node.site
        names = (q.name for q in site.catalog.queries())
        took = (site.delays.of(site.engine.roster.group_of.get(n, n)) for n in names)
        hops = [t.hops_s for t in took if t is not None and t.hops_s > 0]
        return sum(hops) / len(hops) if hops else 0.0

    # --- what was agreed on

    def _told(self, value: object) -> None:
        if isinstance(value, GiveAway):
            self._agreed.put(value)

    def _give(self, agreed: GiveAway) -> None:
        """A fragment that does not go after all is not asked for again soon."""
        node, query = self._node, self._queries.get(agreed.fragment)
        to = next((n.name for n in node.directory.nodes() if n.address == agreed.asker), None)
        if query is None or to is None or node.moving is None:
            self._call(Stays(agreed.fragment))
            return
        by = f"{to} (partners)"
        way = PRECOPY if self.natives.has_own_state(query) else REPLAY
        if self.advises:
            node.moving.journal.advise(query, node.name, to, way, by, agreed.why)
            self._call(Stays(agreed.fragment))
            return
        try:
            publication = node.data.publications.sharers.of(query)[0]
            node.move(publication, to, way, asked_by=by, why=agreed.why)
        except FAILURES as error:
            log.info("%s stays: %s", query, error)
            self._call(Stays(agreed.fragment))

    # --- for people

    def state(self) -> dict[str, Any]:
        """Partners and what is known of their loads."""
        found = self._driver.read(_state)
        names = {n.address: n.name for n in self._node.directory.nodes()}
        loads = {names.get(a, a): load for a, load in found["loads"].items()}
        mean = (found["load"] + sum(loads.values())) / (1 + len(loads))
        return {
            "node": self._node.name,
            "load": found["load"],
            "partners": loads,
            "asked_for": [names.get(a, a) for a in found["g1"]],
            "mean": mean,
            "pr_max": self.pr_max(),
            "rounds": found["rounds"],
            "advises": self.advises,
        }

    def told_of(self, query: str) -> dict[str, Any] | None:
        """What the source's heuristics look at, of a fragment that is here; None if it can't go."""
        native = next((n for n in self.natives.all() if n.query == query), None)
        if native is None:
            return None
        state = self.state()
        names = {n.address: n.name for n in self._node.directory.nodes()}
        return {
            "load": state["load"],
            "mean": state["mean"],
            "partners": state["partners"],
            "native_to": names.get(native.home),
            "neighbours_at": sorted({names[a] for a in native.neighbours_at if a in names}),
            "advises": self.advises,
        }


def _shares(spent: Mapping[str, float], busy: float) -> dict[str, float]:
    """Of the time in which ticks ran, by what operators took: cuts and commits are theirs, too."""
    whole = sum(spent.values())
    return {n: busy * s / whole for n, s in spent.items()} if whole > 0 else {}


def _state(stack: Stack) -> dict[str, Any]:
    partners = stack[NAME]
    assert isinstance(partners, SitePartners)
    circle = partners.circle
    return {
        "load": partners.load,
        "loads": circle.known_loads(),
        "g1": list(circle.g1),
        "rounds": partners.rounds,
    }
