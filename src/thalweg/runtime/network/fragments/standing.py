"""Queries of which other nodes compute parts, and those that are computed for other nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from thalweg.cql import Script
from thalweg.engine.shared.compile.history import complete_from, gaps_of
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError, WrongUse
from thalweg.engine.site.scripts import Script as SiteScript
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.fragments import Fragment, inlined
from thalweg.runtime.network.computing import Computing
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.fragments.fragments import Assembled, Fragments, with_streams
from thalweg.runtime.network.fragments.placed_text import placed_text, select_of
from thalweg.runtime.network.labels.labelled import Labels
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.own_definitions import OwnDefinitions
from thalweg.runtime.network.placing.tasks import Tasks

_NEWS_WITHIN_S, _LOOK_EVERY_S = 5.0, 0.05

Assembling = Callable[[QueryDef], AbstractContextManager[Assembled]]


class Standing:
    """`add_columns` gives streams of others the columns here that they have there."""

    def __init__(
        self,
        site: Site,
        directory: Directory,
        mirrors: Mirrors,
        fragments: Fragments,
        tasks: Tasks,
        own: OwnDefinitions,
        add_columns: Callable[[], None],
        lock: threading.RLock,
        computing: Computing,
        labels: Labels,
    ) -> None:
        self._site, self._directory, self._mirrors = site, directory, mirrors
        self._fragments, self._tasks, self._own = fragments, tasks, own
        self._add_columns, self._lock, self._computing = add_columns, lock, computing
        self._labels = labels

    def place(
        self,
        text: str,
        script: Script,
        fragment: Fragment,
        task: Task | None,
        folder: Path | None,
        assembling: Assembling | None = None,
    ) -> SiteScript:
        """Make one query stand at this node that reads what other nodes compute for it; all or
        nothing. `task` is written down with it. `assembling` is for what is no fragment of one
        node. Raises NodeAway, SiteError."""
        (query,) = script.queries
        if fragment.node.schema != query.plan.schema:
            raise WrongUse(f"what is placed is not {query.name}")
        written = select_of(text)
        if task is not None:
            self._tasks.write(task)
        try:
            with (
                self._fragments.assembled(fragment)
                if assembling is None
                else assembling(query) as assembled,
                self._lock,
            ):
                return self._run_placed(query.name, assembled, folder, written)
        except BaseException:
            if task is not None:
                self._tasks.delete(task.query)
            raise

    def stand(
        self,
        name: str,
        fragment: Fragment,
        shape: Callable[[Node], Node],
        complete: bool,
        since: int | None,
    ) -> None:
        """An internal query that computes a fragment for another node."""
        if since is not None:
            self._stand_again(name, shape(inlined(fragment)), since)
            return
        with self._fragments.assembled(fragment, complete=complete) as assembled, self._lock:
            assembled = replace(assembled, plan=shape(assembled.plan))
            self._run_placed(name, assembled, None, complete=complete)

    def _stand_again(self, name: str, plan: Node, since: int) -> None:
        """As if it had begun at an instant of the past, over streams that their homes have held."""
        definition = QueryDef(name, plan)
        with self._lock:
            mirrored, streams = self._mirrors.open_past(definition, self._own.elsewhere(), since)
            over = with_streams(plan, streams)
            try:
                with self._computing.computed(name, over, mirrored.pasts) as made:
                    before = "".join(f"{t}; " for t in (*mirrored.texts, *made.texts))
                    self._site.execute(before + placed_text(name, made.plan), pasts=made.pasts)
            except BaseException:
                self._mirrors.give_back(mirrored.opened)
                raise

    def _run_placed(
        self,
        name: str,
        assembled: Assembled,
        folder: Path | None,
        written: str | None = None,
        complete: bool = False,
    ) -> SiteScript:
        """`written` is what the query's user has, if there is one."""
        for shared in assembled.shared:
            if self._site.catalog.find(shared) is None:
                raise SiteError(f"{shared} was dropped meanwhile: submit again")
        definition = QueryDef(name, assembled.plan)
        self._await_news(assembled)
        self._add_columns()
        elsewhere = self._own.elsewhere()
        if written is not None and self._computing.engine is None:
            plan, due = self._labels.plan(assembled.plan, elsewhere)
            definition, elsewhere = QueryDef(name, plan), elsewhere | due
            assembled = replace(assembled, plan=plan)
        with self._mirrors.opened([definition], elsewhere) as mirrored:
            pasts = {**mirrored.pasts, **assembled.pasts}
            if complete:
                pasts |= self._once_filled(assembled.plan, pasts)
            with self._computing.computed(name, assembled.plan, pasts, complete=complete) as made:
                before = (*mirrored.texts, *assembled.texts, *made.texts)
                text = "".join(f"{t}; " for t in before) + placed_text(name, made.plan, written)
                return self._site.execute(text, folder=folder, pasts=made.pasts)

    def _once_filled(self, plan: Node, pasts: Mapping[str, Past]) -> dict[str, Past]:
        """So that the query begins when all its windows are filled. Its streams were opened one
        after the other, and time went on between: of a later one, what the slowest would still look
        at may have gone."""
        engine = self._site.engine
        known = {
            s.name: pasts.get(s.name) or Past(engine.watermark(s.name), _kept_from(engine, s.name))
            for s in base_streams(plan)
        }
        filled = complete_from(gaps_of(plan, None, {s: p.complete_from for s, p in known.items()}))
        if not BEGINNING < filled < FOREVER:
            return {}
        return {s: replace(p, first=max(p.first, filled)) for s, p in known.items()}

    def _await_news(self, assembled: Assembled) -> None:
        """A stream may be so new that its home has told others of it, and not this node yet."""
        read = {s.name.lower() for s in base_streams(assembled.plan)}
        read -= {name.lower() for name in assembled.pasts}
        until = time.monotonic() + _NEWS_WITHIN_S
        while time.monotonic() < until:
            known = self._directory.defined()
            if all(n in known or self._site.catalog.find(n) is not None for n in read):
                return
            time.sleep(_LOOK_EVERY_S)


def _kept_from(engine: SharedEngine, stream: str) -> int:
    return engine.store.inputs.complete_from(stream, ())
