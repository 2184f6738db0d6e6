"""What a node knows for planners, and what a strategy makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from thalweg.cql import Script, compile_script
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_internal
from thalweg.plan.catalog import Catalog, QueryDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan
from thalweg.runtime.network.directory import FED, Directory
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.measuring import Meter, NodeMeasure, Task
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.own_definitions import OwnDefinitions
from thalweg.runtime.network.placing.deploying import (
    Decide,
    NotAdmitted,
    Placement,
    Planned,
    plan_queries,
)
from thalweg.runtime.network.placing.difference import Change as FragmentChange
from thalweg.runtime.network.placing.difference import Running, Stays, changed, difference
from thalweg.runtime.network.placing.placing import Place
from thalweg.runtime.network.placing.replacing import Replacement, Step
from thalweg.runtime.network.placing.spreading import MOVABLE, SPREAD
from thalweg.runtime.network.placing.tasks import Refused, Tasks
from thalweg.runtime.network.statements import Part, parts_of
from thalweg.runtime.swap.definitions import SWAP


@dataclass(frozen=True, slots=True)
class Limits:
    """What a node may be given to do: cores, bits per second, and bytes of memory (which the
    balancer looks at); None: as much as comes."""

    cpu: float | None = None
    out_bps: float | None = None
    in_bps: float | None = None
    memory_bytes: float | None = None


class Planning:
    """`catalog` gives all that statements at this node may read."""

    def __init__(
        self,
        site: Site,
        directory: Directory,
        mirrors: Mirrors,
        fragments: Fragments,
        tasks: Tasks,
        meter: Meter,
        limits: Limits,
        own: OwnDefinitions,
        catalog: Callable[[], Catalog],
    ) -> None:
        self._me, self._site, self._directory = directory.me.name, site, directory
        self._mirrors, self._fragments, self._tasks = mirrors, fragments, tasks
        self._meter, self._limits, self._own, self._catalog = meter, limits, own, catalog

    def measured(self) -> NodeMeasure:
        """What planners want to know of this node."""
        others = [n for n in self._directory.nodes() if n.name != self._me]
        seconds, bits = self._meter.load()
        return NodeMeasure(
            self._me,
            self._meter.streams(),
            self._meter.delays_ms([n for n in others if self._directory.is_up(n.name)]),
            seconds,
            bits,
            tuple(self._tasks.all()),
            self._limits.cpu,
            self._limits.out_bps,
            self._limits.in_bps,
            self._directory.me.engine,
        )

    def planned(
        self,
        text: str,
        name: str,
        strategy: str,
        measured: Sequence[NodeMeasure],
        bound_ms: float | None = None,
    ) -> tuple[Script, Planned]:
        """What a strategy would do with the new queries of a script. Raises CqlError, SiteError."""
        script, fresh, homes = self.fresh(text, name)
        bounds = bounds_of(fresh, bound_ms)
        return script, plan_queries(fresh, strategy, self._me, homes, measured, bounds)

    def fresh(self, text: str, name: str) -> tuple[Script, list[QueryDef], dict[str, str]]:
        """A script, its new queries that can be placed, and the homes of all streams. Raises
        CqlError."""
        script = compile_script(text, self._catalog(), name=name)
        defined = self._directory.defined()
        homes = {s.name: self._me for s in script.catalog.streams()}
        homes |= {d.name: d.node for d in defined.values() if d.kind in FED}
        new = [q for q in script.queries if q.name.lower() not in defined and not q.from_now]
        return script, new, homes

    def check_admitted(self, planned: Planned, strategy: str) -> None:
        """Raises NotAdmitted, with what is short where, and writes it down."""
        try:
            planned.check(strategy)
        except NotAdmitted as error:
            self._tasks.refuse(Refused(time.strftime("%F %T"), strategy, str(error)))
            raise

    def parts(
        self,
        text: str,
        script: Script,
        placements: Iterable[Placement],
        otherwise: Place | None = None,
    ) -> tuple[list[Part], dict[str, Placement]]:
        """A script's statements, new queries where they are placed, or otherwise here."""
        placed = {p.query: p for p in placements}

        def place(query: QueryDef) -> str:
            if query.name in placed:
                return placed[query.name].node
            return self._me if otherwise is None else otherwise(query)

        return parts_of(text, script, self._me, self._own.elsewhere(), place, placed), placed

    def homes(self) -> dict[str, str]:
        """Of all streams, by name."""
        own = {s.name: self._me for s in self._site.catalog.streams() if not is_internal(s)}
        return own | {d.name: d.node for d in self._directory.defined().values() if d.kind in FED}

    def planned_again(
        self,
        strategy: str,
        measured: Sequence[NodeMeasure],
        placed: Iterable[Task] | None = None,
        decide: Decide | None = None,
    ) -> tuple[Replacement, list[Stays], Planned]:
        """What would change if this node's placed queries, or these of them, were placed now, or as
        was decided elsewhere; what is spread stays as it is, and what nodes place together. Raises
        WrongUse, SiteError."""
        if placed is None:
            placed = [t for t in self._tasks.all() if t.decided is None]
        tasks = {t.query: t for t in placed if t.strategy not in (SPREAD, SWAP, MOVABLE)}
        queries = [QueryDef(t.query, decode_plan(t.plan)) for t in tasks.values()]
        bounds = {t.query: t.bound_ms for t in tasks.values() if t.bound_ms is not None}
        late = {} if decide is None else {t.query: t.late for t in tasks.values()}
        planned = plan_queries(
            queries, strategy, self._me, self.homes(), measured, bounds, decide, late
        )
        planned.check(strategy)
        moves: dict[str, FragmentChange] = {}  # a fragment that several read goes once
        stays: list[Stays] = []
        given: list[Task] = []
        for placement in planned.placements:
            if placement.node != self._me:
                why = f"{strategy} would have it stand at {placement.node}, and queries do not move"
                stays.append(Stays(placement.query, self._me, why))
                continue
            running = self.running(placement.query)
            for found in difference(placement.query, running, placement.fragment, self._me):
                if isinstance(found, Stays):
                    stays.append(found)
                else:
                    moves.setdefault(found.stream, found)
            root = tasks[placement.query].fragment
            after = None if root is None else changed(root, running, moves.values())
            given.append(msgspec.structs.replace(placement.task, fragment=after))
        steps = tuple(Step(c) for c in moves.values())
        return Replacement(strategy, steps, tuple(given)), stays, planned

    def running(self, query: str) -> list[Running]:
        """What other nodes compute for a query of this one."""
        return list(self._running(query))

    def _running(self, query: str) -> Iterator[Running]:
        read = dict(self._fragments.read())
        for name in (s.name for s in base_streams(self._site.query(query).plan)):
            if name in read:
                stream, fragment = read[name]
                last = self._mirrors.routes(stream)[-1]
                yield Running(name, self._mirrors.home(stream), last.publication, fragment)


def bounds_of(queries: Iterable[QueryDef], bound_ms: float | None) -> dict[str, float]:
    """One for all queries of a script, if there is one."""
    return {} if bound_ms is None else {q.name: bound_ms for q in queries}
