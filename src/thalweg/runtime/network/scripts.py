"""Where the statements of a script are executed, and where its new queries run: here, near their
input, as a strategy or nodes together have it, spread, joined across nodes, or as one fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from thalweg.cql import Script, compile_script
from thalweg.cql.bind.dependencies import names_read
from thalweg.engine.site import WrongUse
from thalweg.plan.catalog import Catalog
from thalweg.plan.engines import SHARED
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.measuring import NodeMeasure
from thalweg.runtime.network.own_definitions import OwnDefinitions
from thalweg.runtime.network.placing.deploying import Placement, Planned
from thalweg.runtime.network.placing.placing import (
    placed_at_home,
    placed_by_engines,
    placed_locally,
)
from thalweg.runtime.network.placing.planning import Planning, bounds_of
from thalweg.runtime.network.placing.spreading import movable_query, spread_over, spread_query
from thalweg.runtime.network.reserved import check_not_reserved
from thalweg.runtime.network.statements import Part, is_for
from thalweg.runtime.swap.joins import Joins
from thalweg.runtime.swap.opening import placed_by_swap

if TYPE_CHECKING:  # nodes whose queries are planned at one node do without its imports
    from thalweg.runtime.network.protocols.deciding import Deciding


def check_engine(directory: Directory) -> None:
    """Raises WrongUse at a node that only passes on."""
    if directory.me.only_passes_on:
        raise WrongUse(
            f"{directory.me.name} only passes streams on (--engine none), and has no streams and "
            "queries of its own: submit at another node (--at NODE)"
        )


class Scripts:
    def __init__(
        self,
        directory: Directory,
        planning: Planning,
        own: OwnDefinitions,
        catalog: Callable[[], Catalog],
        joins: Joins | None = None,
        deciding: Deciding | None = None,
    ) -> None:
        self._me, self._directory, self._planning = directory.me.name, directory, planning
        self._own, self._catalog = own, catalog
        self._joins, self._deciding = joins, deciding

    def parts(
        self, text: str, name: str, arrived: Mapping[str, int] | None = None
    ) -> tuple[list[Part], dict[str, Placement]]:
        """Where a script's statements have to be executed; new queries here, or, if it is told how
        much has arrived of each stream, near their input; and elsewhere, each with the reason, what
        the engine there refuses. Raises CqlError, WrongUse."""
        script = compile_script(text, self._catalog(), name=name)
        check_not_reserved(script)
        place = placed_locally(self._me)
        if self._directory.me.only_passes_on and arrived is None:
            arrived = dict.fromkeys(self._own.elsewhere(), 0)  # wherever its streams are
        if arrived is not None:
            place = placed_at_home(self._me, self._directory.defined(), arrived)
        elsewhere = placed_by_engines(script, place, self._directory, self._me)
        return self._planning.parts(text, script, elsewhere, place)

    def planned(
        self,
        text: str,
        name: str,
        strategy: str,
        measured: Sequence[NodeMeasure],
        bound_ms: float | None = None,
    ) -> tuple[Script, Planned]:
        """What a strategy would do with the new queries of a script. Raises CqlError, SiteError."""
        self._check_planned(text)
        return self._planning.planned(text, name, strategy, measured, bound_ms)

    def _check_planned(self, text: str) -> None:
        """Raises WrongUse."""
        check_engine(self._directory)
        self._own.check_read(text)
        if renamed := sorted(names_read(text) & self._own.renamed().keys()):
            raise WrongUse(
                f"{', '.join(renamed)} lost the name to another definition, and is read at its own "
                "node only: submit with --strategy local"
            )

    def decides(self, strategy: str) -> bool:
        """Whether nodes decide together where a strategy puts queries."""
        return self._deciding is not None and self._deciding.decides(strategy)

    @contextmanager
    def decided(
        self, text: str, name: str, strategy: str, bound_ms: float | None = None
    ) -> Iterator[tuple[Script, Planned, list[NodeMeasure]]]:
        """As `planned`, by nodes together, and what those that are concerned have measured; what
        does not come to stand within is given back. Raises CqlError, NotAdmitted, SiteError."""
        assert self._deciding is not None
        self._check_planned(text)
        script, fresh, homes = self._planning.fresh(text, name)
        check_not_reserved(script)
        bounds = bounds_of(fresh, bound_ms)
        with self._deciding.planned(fresh, strategy, homes, bounds) as (planned, measured):
            yield script, planned, measured

    @contextmanager
    def decided_parts(
        self, text: str, name: str, strategy: str, bound_ms: float | None = None
    ) -> Iterator[tuple[list[Part], dict[str, Placement]]]:
        """As `planned_parts`, by nodes together."""
        with self.decided(text, name, strategy, bound_ms) as (script, planned, _):
            self._planning.check_admitted(planned, strategy)
            yield self._planning.parts(text, script, planned.placements)

    def planned_parts(
        self,
        text: str,
        name: str,
        strategy: str,
        measured: Sequence[NodeMeasure],
        bound_ms: float | None = None,
    ) -> tuple[list[Part], dict[str, Placement]]:
        """As `parts`, with new queries placed by a strategy. Raises NotAdmitted, with what is short
        where, if it does not admit all of them."""
        script, planned = self.planned(text, name, strategy, measured, bound_ms)
        check_not_reserved(script)
        self._planning.check_admitted(planned, strategy)
        return self._planning.parts(text, script, planned.placements)

    def spread_parts(
        self, text: str, name: str, over: str, measured: Sequence[NodeMeasure]
    ) -> tuple[list[Part], dict[str, Placement]]:
        """As `parts`, with new queries spread over nodes. Raises WrongUse with the reason if one
        of them can't be."""
        check_engine(self._directory)
        self._own.check_read(text)
        script = compile_script(text, self._catalog(), name=name)
        check_not_reserved(script)
        nodes, parts = spread_over(over, [n for n in measured if n.engine == SHARED])
        defined = self._directory.defined()
        fresh = [q for q in script.queries if q.name.lower() not in defined]
        placements = [spread_query(q, self._me, nodes, parts) for q in fresh]
        return self._planning.parts(text, script, placements)

    def swapped_parts(
        self, text: str, name: str, measured: Sequence[NodeMeasure], routing: str
    ) -> tuple[list[Part], dict[str, Placement]]:
        """As `parts`, with the joins of new queries made across the homes of their streams, in an
        order that is left open, or chosen by `routing`. Raises WrongUse with the reason if one of
        them can't be."""
        check_engine(self._directory)
        if self._joins is None:
            raise WrongUse(f"{self._me} runs without the protocol that joins across nodes")
        self._own.check_read(text)
        script = compile_script(text, self._catalog(), name=name)
        check_not_reserved(script)
        defined = self._directory.defined()
        homes = {s.name: self._me for s in script.catalog.streams()} | self._planning.homes()
        fresh = [q for q in script.queries if q.name.lower() not in defined]
        placements = [
            placed_by_swap(q, self._me, self._directory, homes, measured, routing) for q in fresh
        ]
        return self._planning.parts(text, script, placements)

    def movable_parts(self, text: str, name: str) -> tuple[list[Part], dict[str, Placement]]:
        """As `parts`, with each new query as one fragment. Raises WrongUse with the reason if one
        of them can't be."""
        check_engine(self._directory)
        self._own.check_read(text)
        script = compile_script(text, self._catalog(), name=name)
        check_not_reserved(script)
        defined = self._directory.defined()
        fresh = [q for q in script.queries if q.name.lower() not in defined]
        return self._planning.parts(text, script, [movable_query(q, self._me) for q in fresh])

    def are_for_here(self, texts: Iterable[str]) -> bool:
        """Whether no statement of these texts has to be executed elsewhere."""
        elsewhere = self._own.elsewhere()
        return all(is_for(self._me, text, elsewhere) for text in texts)
