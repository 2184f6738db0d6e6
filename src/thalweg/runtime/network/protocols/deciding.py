"""Nodes decide together where a query runs: what is asked of their protocols, and given back.

The protocols only decide. What follows is what follows from any plan: `verify` judges it, and the
query's own node has it executed. A protocol's query whose decision was not followed, because a node
refused its part or this one was stopped meanwhile, is dropped (`following.py`).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thalweg.engine.site import SiteError
from thalweg.overlay.sand.query import TreeQuery
from thalweg.placement.problem import Problem
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.asking import measured_by
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.measuring import Decided, NodeMeasure, Task
from thalweg.runtime.network.placing.deploying import (
    NotAdmitted,
    Planned,
    plan_queries,
    problem_to_decide,
)
from thalweg.runtime.network.protocols.addresses import Names
from thalweg.runtime.network.protocols.coordinators import LiveCoordinators
from thalweg.runtime.network.protocols.following import LOOK_EVERY_S, Following
from thalweg.runtime.network.protocols.outcomes import (
    Decision,
    coordinator_words,
    encode_asked,
    movable,
    submissions,
    tree_queries,
    zone_words,
)
from thalweg.runtime.network.protocols.stack import COSMOS, DECIDED
from thalweg.runtime.network.protocols.zones import LiveZones

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node


class Deciding:
    def __init__(
        self, driver: Driver, directory: Directory, look_every_s: float | None = LOOK_EVERY_S
    ) -> None:
        """`look_every_s` None: what is decided later on is followed only when somebody looks."""
        self._look_every_s = look_every_s
        self.zones, self.coordinators = LiveZones(driver), LiveCoordinators(driver)
        self.names = Names(directory)
        self._open = 0  # decisions that may yet be followed
        self._lock = threading.Lock()

    def attach(self, node: Node) -> None:
        """Also follow what nodes have decided, and will."""
        self._node = node
        self.following = Following(node, self, self._look_every_s)
        self.following.start()

    def close(self) -> None:
        self.following.close()

    def decides(self, strategy: str) -> bool:
        return strategy in DECIDED

    @property
    def is_idle(self) -> bool:
        """Whether no decision waits to be followed: what nobody follows then can go."""
        with self._lock:
            return self._open == 0

    @contextmanager
    def planned(
        self,
        queries: Sequence[QueryDef],
        strategy: str,
        homes: Mapping[str, str],
        bounds_ms: Mapping[str, float],
    ) -> Iterator[tuple[Planned, list[NodeMeasure]]]:
        """What nodes come to, and what was measured by those that are concerned. What does not
        come to stand within is given back. Raises NotAdmitted, SiteError."""
        with self._lock:
            self._open += 1
        decision: Decision | None = None
        try:
            me = self._node.name
            near = {me, *(homes[s.name] for q in queries for s in base_streams(q.plan))}
            measured = list(measured_by(self._node, near))
            if me not in {n.name for n in measured}:
                raise SiteError(f"{me} runs no queries: submit at another node (--at NODE)")
            problem = problem_to_decide(queries, me, homes, measured, bounds_ms)
            decision = self._decided(problem, queries, strategy)
            measured += measured_by(self._node, decision.nodes - near)
            found = plan_queries(
                queries, strategy, me, homes, measured, bounds_ms, decision.outcome
            )
            placements = tuple(map(decision.applied, found.placements))
            yield replace(found, placements=placements), measured
        finally:
            if decision is not None:
                self._give_back(decision)
            with self._lock:
                self._open -= 1

    def _decided(self, problem: Problem, queries: Sequence[QueryDef], strategy: str) -> Decision:
        try:
            if strategy == COSMOS:
                return self._by_coordinators(problem, queries)
            return self._by_zones(problem, queries, strategy)
        except ValueError as error:
            words = self.names.in_words(str(error))
            raise SiteError(f"{strategy} can't place this: {words}") from None
        except NotAdmitted as error:
            raise NotAdmitted(self.names.in_words(str(error))) from None
        except SiteError as error:
            raise SiteError(self.names.in_words(str(error))) from None

    def _by_zones(self, problem: Problem, queries: Sequence[QueryDef], strategy: str) -> Decision:
        addresses = self.names.addresses(problem.hosts.names)
        tickets = [self.ticket(q.name) for q in queries]
        asked = tree_queries(problem, strategy, addresses, tickets)
        stands = self.zones.place(asked)
        decided, words = {}, {}
        for query, tree in zip(queries, asked, strict=True):
            found = stands[tree.name]
            at = self.names.names(found.at)
            decided[query.name] = Decided(tree.name, tuple(at), encode_asked(tree))
            by = [(zone, self.names.shown(who)) for zone, who in found.coordinators]
            words[query.name] = zone_words(tree, at, by)
        return Decision(strategy, decided, words)

    def _by_coordinators(self, problem: Problem, queries: Sequence[QueryDef]) -> Decision:
        titles = {q.name: self.ticket(q.name) for q in queries}
        asked = submissions(problem, queries, list(titles.values()))
        able = [a for a, q in zip(asked, queries, strict=True) if movable(q)]
        owners = self.coordinators.submit(able)
        decided: dict[str, Decided] = {}
        words: dict[str, tuple[str, ...]] = {}
        for query in queries:
            if titles[query.name] not in owners:  # of tables alone: it stands where it was asked
                decided[query.name], words[query.name] = Decided("", (self._node.name,)), ()
                continue
            ticket, owner = owners[titles[query.name]]
            (name,) = self.names.names([owner.address])
            decided[query.name] = Decided(ticket, (name,))
            by = [self.names.shown(a) for a in owner.by]
            words[query.name] = coordinator_words(name, by)
        return Decision(COSMOS, decided, words)

    def told(self) -> dict[str, Any]:
        """For people: this node's part in what nodes decide together."""
        place, shown = self.coordinators.place(), self.names.shown
        return {
            "node": self._node.name,
            "root": shown(place.root),
            "parent": None if place.parent is None else shown(place.parent),
            "leads": [[shown(a) for a in cluster] for cluster in place.led],
            "queries": [name.partition("#")[0] for name in place.owned],
            "load": place.load,
            "capability": place.capability,
            "zones": [
                {
                    "query": query.partition("#")[0],
                    "zone": zone,
                    "at": sorted({shown(a) for a in hosts.values()}),
                }
                for query, zone, hosts in sorted(self.zones.coordinated())
            ],
        }

    def asked_now(self, task: Task) -> TreeQuery | None:
        """What SAND would be asked for a query that stands, at the rates of now; None while the
        home of a stream does not answer. Raises SiteError."""
        query, homes = QueryDef(task.query, decode_plan(task.plan)), self._node.planning.homes()
        me = self._node.name
        near = {me, *(homes[s.name] for s in base_streams(query.plan))}
        measured = list(measured_by(self._node, near))
        if near - {n.name for n in measured}:
            return None
        bounds = {} if task.bound_ms is None else {task.query: task.bound_ms}
        problem = problem_to_decide([query], me, homes, measured, bounds, {task.query: task.late})
        addresses = self.names.addresses(problem.hosts.names)
        (asked,) = tree_queries(problem, task.strategy, addresses, [self.ticket(task.query)])
        return asked

    def ticket(self, query: str) -> str:
        """New in the whole network, for ever."""
        return f"{query}#{self._node.name}.{secrets.token_hex(5)}"

    def _give_back(self, decision: Decision) -> None:
        standing = {t.decided.ticket for t in self._node.tasks.all() if t.decided is not None}
        for found in decision.decided.values():
            if found.ticket and found.ticket not in standing:
                self.drop(decision.strategy, found.ticket)

    def drop(self, strategy: str, ticket: str) -> None:
        if strategy == COSMOS:
            self.coordinators.withdraw(ticket)
        else:
            self.zones.drop(ticket)
