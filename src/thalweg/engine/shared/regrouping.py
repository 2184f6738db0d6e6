"""Who is answered together: which queries form groups, and when members move.

Before a tick, and never within one:

1. Queries that have not run yet, of one signature and with one beginning, begin as one group.
2. Parts of one signature (groups, and queries that run alone) that have come to the same instant
   become one, if one of the groups can answer all: its generation takes the others' members.
3. If none can, a new generation is started that could. It runs from the SteMs' contents up to the
   present and answers nobody; then rule 2 moves everybody there.

A member's result does not show where it lives: up to the instant of the move the old part has said
everything, and from there on the new one does, whose rows that are still open are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.columns import needed_columns
from thalweg.engine.shared.groups import Generation, compile_group, core_of, knows_enough
from thalweg.engine.shared.lifting import lifted
from thalweg.engine.shared.members import lifted_family, lifted_key, window_classes
from thalweg.engine.shared.planning import Registered
from thalweg.engine.shared.segments import SegmentReader
from thalweg.engine.shared.task import BEGINNING
from thalweg.engine.shared.worth import Part, Sharing, saving_s, statistics_for
from thalweg.sharing.core import Signature
from thalweg.sharing.representative import representative

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine

SURELY_MANY = 64
MOST_WINDOWS = 64  # different windows in one group: each is looked at in every tick
GROUP = "group/"


def is_sharable(query: Registered) -> bool:
    return query.normal is not None and not query.normal.above


def is_liftable(query: Registered) -> bool:
    return query.normal is not None and bool(query.normal.above)


def is_finite(query: Registered) -> bool:
    return all(w.length is not None for w in core_of(query).windows)


@dataclass(frozen=True)
class _Offer:
    """Whom a generation would take, whom it would leave, and which others would then be empty."""

    home: Generation
    taken: list[Registered]
    left: list[Registered]
    emptied: list[Generation]


class Regrouping:
    """One round over an engine; `settled` says whether a later round could do more, `changed`
    whether this one has done something."""

    def __init__(self, engine: SharedEngine) -> None:
        self.engine = engine
        self.settled, self.changed = True, False
        self._tick = engine.store.tick()[0]
        self._frontiers = dict(engine.store.all("SELECT flow, frontier FROM frontiers"))

    def run(self) -> None:
        parts: dict[Signature, list[Registered]] = {}
        alone = self.engine.homes.homeless(self.engine.queries).values()
        for query in alone:
            if is_sharable(query):
                parts.setdefault(core_of(query).signature, []).append(query)
        with self.engine.store.transaction():
            self._lift([q for q in alone if is_liftable(q)])
            for queries in parts.values():
                self._begin_together([q for q in queries if not self._has_run(q)])
            groups: dict[Signature, list[Generation]] = {}
            for generation in self.engine.generations.values():
                if generation.is_lifted:
                    continue
                groups.setdefault(generation.representative.signature, []).append(generation)
            for signature in {**parts, **groups}:
                left = [q for q in parts.get(signature, []) if q.name not in self.engine.homes]
                self._merge(groups.get(signature, []), left)

    def _lift(self, alone: Iterable[Registered]) -> None:
        """Rule 1 for queries with aggregates; they stay as they have begun."""
        alike: dict[tuple[object, ...], list[Registered]] = {}
        for query in alone:
            if not self._has_run(query):
                alike.setdefault(lifted_key(query), []).append(query)
        for members in alike.values():
            if len(members) > 1 and len(window_classes(members)) <= MOST_WINDOWS:
                self._move(members, self._generation(members, members[0], is_lifted=True))

    def _has_run(self, run: Registered) -> bool:
        return self._reached(run) > BEGINNING

    def _reached(self, run: Registered) -> int:
        return self._frontiers.get(run.flow, BEGINNING)

    # --- rule 1

    def _begin_together(self, fresh: list[Registered]) -> None:
        by_flow: dict[str, list[Registered]] = {}
        for query in fresh:
            by_flow.setdefault(query.flow, []).append(query)
        for queries in by_flow.values():
            parts = [Part(core_of(q), None) for q in queries]
            is_few = len(window_classes(queries)) <= MOST_WINDOWS
            if len(queries) > 1 and is_few and self._pays(parts):
                self.settled = False
                first = queries[0]
                self._move(queries, self._generation(queries, first))

    def _pays(self, parts: list[Part]) -> bool:
        """Whether one representative for all costs less than what there is."""
        engine = self.engine
        if engine.sharing is Sharing.WHEREVER_POSSIBLE:
            return True
        if len(parts) > SURELY_MANY:
            return True  # their number alone outweighs what a wider range may cost
        statistics = statistics_for(
            parts[0].core,
            engine.observed,
            engine.segments.values(),
            SegmentReader(),
            engine.folder / "segments",
        )
        return saving_s(parts, engine.observed, statistics) > 0

    # --- rules 2 and 3

    def _merge(self, groups: list[Generation], alone: list[Registered]) -> None:
        if len(groups) + len(alone) < 2:
            return
        now = max(self._reached(q) for q in (*(g.run for g in groups), *alone))
        ready = [g for g in groups if self._reached(g.run) == now]
        single = [q for q in alone if self._reached(q) == now]
        if now == BEGINNING or len(ready) + len(single) < len(groups) + len(alone):
            self.settled = False  # somebody is still on the way to the present
        if now == BEGINNING or len(ready) + len(single) < 2:
            return
        living = {g.name: self.engine.members_of(g.name) for g in ready}
        left = self._gather(ready, single, living, now)
        is_coming = any(not self.engine.members_of(g.name) for g in groups if g not in ready)
        if is_coming or not left:
            return
        stay = {m.name for m in left}
        others = [m for of in living.values() for m in of if m.name not in stay]
        horizons = self._complete([*left, *others])
        together = [m for m in (*left, *others) if knows_enough(horizons, m, now)]
        if any(is_finite(m) for m in (*left, *others) if m not in together):
            self.settled = False  # what only some have seen will expire
        if (
            len(together) > 1
            and any(m.name in stay for m in together)
            and len(window_classes(together)) <= MOST_WINDOWS
        ):
            parts = [
                *(Part(core_of(m), m.name) for m in alone if m in together),
                *(Part(g.representative.to_core(), g.name) for g in ready if living[g.name]),
            ]
            names = frozenset(m.name for m in together)
            if names not in self.engine.tried and self._pays(parts):
                self.engine.tried.add(names)  # once: what did not come about will not now
                self.settled = False
                self._generation(together, None)

    def _gather(
        self,
        ready: list[Generation],
        alone: list[Registered],
        living: dict[str, list[Registered]],
        now: int,
    ) -> list[Registered]:
        """Move to the ablest generation whom it can take; gives those whom it cannot.

        The largest is asked first: if it can take everybody, the fewest have to move.
        """
        if not ready:
            return alone
        by_size = sorted(ready, key=lambda g: -len(living[g.name]))
        offers = []
        for home in by_size:
            offers.append(self._offer(home, ready, alone, living, now))
            if not offers[-1].left:
                break
        best = min(offers, key=lambda o: len(o.left))
        self._move(best.taken, best.home)
        for other in best.emptied:
            self._end(other)
        return best.left

    def _offer(
        self,
        home: Generation,
        ready: list[Generation],
        alone: list[Registered],
        living: dict[str, list[Registered]],
        now: int,
    ) -> _Offer:
        offer = _Offer(home, [], [], [])
        for query in alone:
            (offer.taken if home.covers(query, now) else offer.left).append(query)
        for other in (g for g in ready if g is not home):
            members = living[other.name]
            if home.covers_all_of(other) or all(home.covers(m, now) for m in members):
                offer.taken.extend(members)
                offer.emptied.append(other)
            else:  # as long as some have to stay, moving the others saves nothing
                offer.left.extend(members)
        return offer

    def _end(self, generation: Generation) -> None:
        self.changed = True
        self.engine.store.end_generation(generation.name, self._tick)
        del self.engine.generations[generation.name]
        self.engine.forget_plan()

    def _generation(
        self, members: list[Registered], beside: Registered | None, *, is_lifted: bool = False
    ) -> Generation:
        """A new one, which begins like a query that is new itself, or from what the SteMs hold."""
        engine = self.engine
        rep = representative(core_of(m) for m in members)
        streams = members[0].streams
        if beside is not None:
            epoch, started, horizons = beside.epoch, beside.started, beside.horizons
        else:
            epoch, started = self._tick + 1, None
            horizons = tuple(self._complete(members).items())
        name = f"{GROUP}{engine.store.next_number('generations')}"
        made: ph.Ending = compile_group(rep, (core_of(m) for m in members))
        family = None
        if is_lifted:
            normal, family = members[0].normal, lifted_family(rep, members)
            assert normal is not None
            made = lifted(made, name, family.outputs, normal.above, normal.kind)
        run = Registered(name, (), streams, epoch, started, horizons, made=made)
        generation = Generation(rep, run, family)
        self.changed = True
        engine.store.write_generation(generation.name, pickle.dumps(generation))
        engine.generations[generation.name] = generation
        engine.forget_plan()
        return generation

    def _complete(self, members: list[Registered]) -> dict[str, int]:
        """From where the SteMs are complete in all that these need together."""
        cores = [core_of(m) for m in members]
        needed = needed_columns([compile_group(representative(cores), cores)])
        found = ((s, self.engine.store.complete_from(s, of)) for s, of in sorted(needed.items()))
        return {s: h for s, h in found if h > BEGINNING}

    def _move(self, members: Iterable[Registered], home: Generation) -> None:
        moved = list(members)
        if not moved:
            return
        self.changed = True
        self.engine.store.write_homes((m.name, self._tick + 1, home.name) for m in moved)
        for member in moved:
            self.engine.homes[member.name] = home.name
            self.engine.queries[member.name] = replace(member, plan=None)
        self.engine.forget_plan()
