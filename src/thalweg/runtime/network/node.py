"""A node of the network: a site, its publications, and what it knows of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from thalweg.cql import Script, compile_script
from thalweg.cql.parser import parse_each
from thalweg.cql.syntax import CreateQuery
from thalweg.engine.failures import FAILURES
from thalweg.engine.site import NotAtOnce, Site, WrongUse
from thalweg.engine.site.publications import is_mirror, is_publication
from thalweg.engine.site.scripts import CompileEach, Text
from thalweg.engine.site.scripts import Script as SiteScript
from thalweg.plan.catalog import Catalog, QueryDef, ViewDef
from thalweg.plan.nodes import Node as Node_
from thalweg.plan.nodes import Tolerant, walk
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.network import views
from thalweg.runtime.network.components import Components, Habits
from thalweg.runtime.network.definitions import (
    changed_views,
    needed_views,
    network_catalog,
    stream_of,
)
from thalweg.runtime.network.directory import FED, QUERY, Defined, Directory
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.fragments.publishing import FragmentPublisher
from thalweg.runtime.network.fragments.standing import Standing
from thalweg.runtime.network.labels.labelled import Labelled, Labels
from thalweg.runtime.network.measuring import Meter, Task
from thalweg.runtime.network.mirrors.mirrored import Mirrored, home_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.balancing import Balancing
from thalweg.runtime.network.moves.copying import Copies
from thalweg.runtime.network.moves.draining import Draining
from thalweg.runtime.network.moves.journal import REPLAY, MoveRecord
from thalweg.runtime.network.moves.leaving import Leaving
from thalweg.runtime.network.moves.moving import LiveMoves
from thalweg.runtime.network.moves.partnering import Partnering
from thalweg.runtime.network.moves.taking import Taker
from thalweg.runtime.network.moves.tracks import OldTracks
from thalweg.runtime.network.own_definitions import OwnDefinitions
from thalweg.runtime.network.placing.planning import Planning
from thalweg.runtime.network.placing.replacing import Replacing
from thalweg.runtime.network.placing.tasks import Tasks
from thalweg.runtime.network.placing.watching import Watcher
from thalweg.runtime.network.reserved import check_not_reserved
from thalweg.runtime.network.rewriting import rewritten
from thalweg.runtime.network.scripts import Scripts, check_engine
from thalweg.runtime.network.statements import named
from thalweg.runtime.network.trees.fidelity import LiveFidelity
from thalweg.runtime.network.trees.passing import Passing
from thalweg.runtime.network.trees.relaying import Relaying
from thalweg.runtime.network.views_read import ViewsRead, replaced_by_itself
from thalweg.runtime.swap.definitions import SWAP
from thalweg.runtime.swap.opening import Opening

if TYPE_CHECKING:  # nodes whose queries are planned at one node do without its imports
    pass

NOTHING_ELSE: Mapping[str, QueryDef] = {}


class Node:
    """`site` answers for what is here; statements go through `scripts` and `execute`, which look
    beyond it."""

    def __init__(
        self,
        site: Site,
        directory: Directory,
        mirrors: Mirrors,
        data: DataServer,
        components: Components | None = None,
        habits: Habits | None = None,
    ) -> None:
        has, habits = components or Components(), habits or Habits()
        self.site, self.directory, self.mirrors, self.data = site, directory, mirrors, data
        self.limits, self.strategy = habits.limits, habits.strategy
        self.computing, self.labelling = has.computing, has.labelling
        self.succession, self.moving, self.trees = has.succession, has.moving, has.trees
        self.joins, self.deciding = has.joins, has.deciding
        self.labels = Labels(self.name, site, mirrors)
        self.meter, self.tasks = Meter(site, self.computing.seconds), Tasks(site)
        self._lock = threading.RLock()
        self.own = OwnDefinitions(site, directory)
        self.fragments = Fragments(self.name, site, mirrors, self.succession)
        parts = site, directory, mirrors, self.fragments, self.tasks
        self.planning = Planning(*parts, self.meter, self.limits, self.own, self.catalog)
        self._views_read = ViewsRead(site, self.own)
        self._standing = Standing(
            *parts,
            self.own,
            lambda: self._add_columns(self.own.elsewhere()),
            self._lock,
            self.computing,
            self.labels,
        )
        self.scripts = self._scripts()
        mirrors.attach(site)
        data.attach(site)
        self.computing.attach(site, data.publications)
        self.labelling.attach(site, data.publications)
        self.publisher = FragmentPublisher(
            site,
            self._stand,
            data.publications.close,
            self._give_back,
            self._lock,
            self.fragments,
            data.publications,
            self.name,
            shares=self.computing.engine is None,
        )
        data.publish_with(self.publisher)
        self.relaying = Relaying(
            site,
            directory,
            mirrors,
            data.publications,
            self.publisher.closed,
            self._lock,
            self.labelling,
        )
        data.relay_with(self.relaying)
        data.measure_with(lambda: msgspec.msgpack.encode(self.planning.measured()))
        mirrors.demanded = data.publications.demanded
        mirrors.moved = self.tasks.fragment_moved
        self.own.reconcile()
        self.fidelity = LiveFidelity(site, directory, mirrors)
        data.time_with(self.fidelity.reached)
        self.passing = Passing(site, self.fidelity.taken)
        mirrors.landed = self.passing.landed
        if self.trees is not None:
            self.trees.attach(site, mirrors, self.meter, self.passing)
            self.relaying.hangs = self.trees
        self.fragments.give_back_unread()
        directory.on_gone(self._gone)
        if self.succession is not None:
            self.succession.attach(site, mirrors, self.fragments)
        self.copies = self._moves_with(self.moving, habits.copy_every_s)
        self._leaving = Leaving(self.name, directory, mirrors, self.publisher, self.moving)
        self.draining = Draining(self._leaving, self._take_no_more)
        self._swapping = Opening(site, directory, mirrors)
        if self.joins is not None:
            self.joins.attach(site, mirrors, data.publications)
        self.balancing = Balancing(self)
        data.balance_with(self.balancing)
        self.replacing = Replacing(site, mirrors, self.fragments, self.tasks)
        self.replacing.go_on()
        self.partnering: Partnering | None = None
        self.watcher = Watcher(self, habits.replan_every_s, advises=habits.replanning_advises)
        self.watcher.start()
        if self.deciding is not None:
            self.deciding.attach(self)
        self.fidelity.start()
        self._views = views.Follower(self.follow_views)
        self._views.start()

    def _scripts(self) -> Scripts:
        parts = self.directory, self.planning, self.own, self.catalog
        return Scripts(*parts, self.joins, self.deciding)

    def _moves_with(self, moving: LiveMoves | None, copy_every_s: float | None) -> Copies | None:
        if moving is None:
            return None
        parts = self.name, self.site, self.mirrors, self.fragments
        taker = Taker(*parts, self.data.publications, self._lock)
        moving.attach(
            self.site,
            self.mirrors,
            self.fragments,
            self.data,
            taker,
            OldTracks(self.site, self._lock),
            self.publisher.closed,
        )
        copies = Copies(*parts, taker, copy_every_s)
        if self.succession is not None:
            self.succession.copies = copies
        copies.start()
        return copies

    @property
    def name(self) -> str:
        return self.directory.me.name

    def close(self) -> None:
        parts = self.trees, self.succession, self.joins, self.copies, self.draining, self.watcher
        more = self.deciding, self.fidelity, self.balancing, self.partnering, self.replacing
        self._views.close()
        for part in (*parts, *more):
            if part is not None:
                part.close()
        self.data.shutdown()
        self.site.close()
        self.computing.close()

    def partner_with(self, partnering: Partnering) -> None:
        """From now on it has partners (`partnering.py`)."""
        self.partnering = partnering
        partnering.start()

    # --- nodes that go

    def check_leaves(self) -> None:
        """Raises WrongUse while it has something: queries do not move by themselves yet, and
        streams have one home."""
        self.own.check_none()

    def leave(self) -> None:
        """Take this node out of the network; what it computes for others goes to those who read it.
        Raises WrongUse as `check_leaves`, and with what can't go; SiteError."""
        self.check_leaves()
        self.draining.finish("it leaves")
        self.directory.leave()

    def _take_no_more(self) -> None:
        if self.deciding is not None:
            self.deciding.coordinators.take_no_more()

    def move(
        self, publication: str, to: str, way: str, *, asked_by: str = "", why: str = ""
    ) -> MoveRecord:
        """Let a fragment of this node go on at another one. Raises WrongUse, Unknown, SiteError."""
        if self.moving is None:
            raise WrongUse(f"{self.name} runs without the protocol that moves fragments")
        if way != REPLAY:
            return self.moving.begin(publication, to, way, asked_by=asked_by, why=why)
        return self._leaving.replay_at(publication, to, asked_by, why)

    def _gone(self, node: str) -> None:
        """What was kept for a node that is gone need not be kept any more."""
        for publication in self.data.publications.read_by(node):
            self.data.publications.close(publication)
            self.relaying.gone(publication)
        self.publisher.closed()

    # --- statements

    def catalog(self) -> Catalog:
        """All that statements at this node may read."""
        with self._lock:
            elsewhere = self.own.elsewhere()
            self._add_columns(elsewhere)
            # What is kept for others is read by their queries, which are what people know.
            named = self.site.catalog.definitions.items()
            own = Catalog({k: d for k, d in named if not is_publication(d.name)})
            known = network_catalog(elsewhere, own)
            aliases = self.own.aliases()
            return Catalog({**known.definitions, **aliases}) if aliases else known

    def _add_columns(self, elsewhere: Mapping[str, Defined]) -> None:
        """Streams of others have the columns here that they have there."""
        for stream in self.site.catalog.streams():
            entry = elsewhere.get(stream.name.lower())
            is_it = entry is not None and entry.kind in FED and is_mirror(stream)
            if is_it and entry is not None and home_of(stream) == entry.node:
                self.mirrors.add_columns(stream, stream_of(entry))

    def execute(self, text: str, *, name: str = "<cql>", folder: Path | None = None) -> Script:
        """Run a script at this node: all of it, or nothing. It may read what others have."""
        check_engine(self.directory)
        self.own.check_read(text)
        text = self.own.as_here(text)
        with self._lock:
            self.renew_views([text])
            elsewhere = self.own.elsewhere()
            script = compile_script(text, self.catalog(), name=name)
            check_not_reserved(script)
            if None in (s.name for s in parse_each(text)[0] if isinstance(s, CreateQuery)):
                text = named(text, (q.name for q in script.queries))
            due = Labelled(text)
            if self.computing.engine is None:
                due = self.labels.script(script, text, elsewhere)
            for query in script.queries:
                if query.name in due.queries or self.computing.engine is not None:
                    self._views_read.write(query.name, query.text)
            with (  # of what is left to compile: a query over due rows is written as a plan
                self._opened([script], [due.text], elsewhere | due.entries, due.queries) as opened,
                ExitStack() as held,
            ):
                made = rewritten(script, due.text, opened.pasts, self.computing, held)
                before = "".join(f"{t}; " for t in opened.texts)
                done = self.site.execute(
                    before + made.text, name=name, folder=folder, pasts=made.pasts
                )
            told = views.told(script, elsewhere, self.name, self._views_read.behind())
            return self._told([(done, script)], (*told, *self._placed_no_more(script)))[0]

    def _placed_no_more(self, script: Script) -> Iterator[str]:
        for name in (c.definition.name for c in script.changes if c.replaced is not None):
            if (task := self.tasks.of(name)) is not None:
                yield (
                    f"{name} runs whole at {self.name} now; it was placed by {task.strategy}: DROP "
                    "it, and submit it again, to have it placed anew"
                )

    def follow_views(self) -> None:
        """Queries of this node go over to views that have been replaced, here or elsewhere. Raises
        CqlError, SiteError."""
        self.renew_views()
        failed: BaseException | None = None
        for query in self._views_read.behind():
            try:
                self.execute(replaced_by_itself(query))
            except FAILURES as error:  # the others need not wait
                failed = error
        if failed is not None:
            raise failed

    def renew_views(self, texts: Sequence[str] | None = None) -> None:
        """Replace the copies of views that have been replaced where they stand, and with them the
        queries over these; with `texts`, only if these read them. Raises CqlError, SiteError."""
        if not changed_views(self.site.catalog, self.own.elsewhere()):
            return
        with self._lock:
            elsewhere, own = self.own.elsewhere(), self.site.catalog
            if texts is not None:
                read = {v.name for v in needed_views(texts, elsewhere)}
                if not any(v.name in read for v in changed_views(own, elsewhere)):
                    return
            found = views.renewal(own, elsewhere)
            if found is None:
                return
            text, script = found
            with self._opened([script], [text], elsewhere) as opened:
                before = "".join(f"{t}; " for t in opened.texts)
                done = self.site.execute(before + text, pasts=opened.pasts)
            self._told([(done, script)])

    def place(
        self,
        text: str,
        fragment: Fragment,
        task: Task | None = None,
        *,
        name: str = "<cql>",
        folder: Path | None = None,
    ) -> Script:
        """Make one query stand at this node that reads what other nodes compute for it; all or
        nothing. `task` is written down with it. Raises NodeAway, SiteError."""
        check_engine(self.directory)
        self.own.check_read(text)
        script = compile_script(text, self.catalog(), name=name)
        if not script.queries:
            return script  # it is there
        self._views_read.write(script.queries[0].name, script.queries[0].text)
        assembling = None
        if task is not None and task.strategy == SWAP:
            assembling = partial(self._swapping.assembled, task=task)
        done = self._standing.place(text, script, fragment, task, folder, assembling)
        return self._told([(done, script)])[0]

    def _stand(
        self,
        name: str,
        fragment: Fragment,
        shape: Callable[[Node_], Node_],
        complete: bool,
        since: int | None,
    ) -> None:
        """An internal query that computes a fragment for another node."""
        check_engine(self.directory)
        self._standing.stand(name, fragment, shape, complete, since)

    def execute_each(self, texts: Sequence[Text], compiler: CompileEach) -> list[Script]:
        """As `Site.execute_each`; statements may read what others have."""
        check_engine(self.directory)
        with self._lock:
            elsewhere = self.own.elsewhere()
            for each in texts:
                self.own.check_read(each.cql)
            self.renew_views([t.cql for t in texts])
            cql = [self.own.as_here(t.cql) for t in texts]
            scripts = compiler(cql, self.catalog())
            for script in scripts:
                check_not_reserved(script)
            if any(map(self._goes_by_itself, scripts)):
                raise NotAtOnce("each statement has to go by itself")
            if self.computing.engine is not None and any(s.queries for s in scripts):
                raise WrongUse(f"{self.name} takes queries one by one: its engine is another")
            texts = [
                Text(named(c, (q.name for q in s.queries)), t.folder)
                for c, t, s in zip(cql, texts, scripts, strict=True)
            ]
            with self._opened(scripts, cql, elsewhere) as opened:
                before = Text("".join(f"{t};\n" for t in opened.texts))
                _, *done = self.site.execute_each([before, *texts], compiler, opened.pasts)
            return self._told(list(zip(done, scripts, strict=True)))

    def _goes_by_itself(self, script: SiteScript) -> bool:
        """What the site, which knows its own definitions only, would take otherwise than the
        network; and what needs more than a statement of its own."""
        replaced = [c.replaced for c in script.changes if c.replaced is not None]
        return (
            bool(script.errors)
            or any(isinstance(d, ViewDef) or self.tasks.of(d.name) for d in replaced)
            or any(isinstance(n, Tolerant) for q in script.queries for n in walk(q.plan))
        )

    @contextmanager
    def _opened(
        self,
        scripts: Iterable[SiteScript],
        texts: Iterable[str],
        elsewhere: Mapping[str, Defined],
        instead: Mapping[str, QueryDef] = NOTHING_ELSE,
    ) -> Iterator[Mirrored]:
        """What scripts need of other nodes, with some queries in the place of others; given back if
        they fail."""
        made = [
            instead.get(c.definition.name, c.definition)
            for s in scripts
            for c in s.changes
            if not c.dropped
        ]
        # A view that is replaced is read by queries of others, too: that is for them.
        others = {k for k, d in elsewhere.items() if d.kind == QUERY}
        kinds = QueryDef | ViewDef
        reading = [d for d in made if isinstance(d, kinds) and d.name.lower() not in others]
        with self.mirrors.opened(reading, elsewhere) as mirrored:
            mirrored.texts.extend(views.views_for(self.site, texts, elsewhere))
            yield mirrored

    def _told(
        self, pairs: Sequence[tuple[SiteScript, SiteScript]], more: Iterable[str] = ()
    ) -> list[Script]:
        """The network learns what has changed. What was done for the sake of a user's statements is
        left out: scripts as the site has executed them, beside those of the user, with `more`
        notes."""
        told = []
        for done, script in pairs:
            own = {c.definition.name for c in script.changes}
            changes = tuple(c for c in done.changes if c.definition.name in own)
            assert isinstance(done, Script)
            notes = (*done.notes, *more)
            told.append(replace(done, changes=changes, warnings=script.warnings, notes=notes))  # type: ignore[arg-type]
        everything = [c for script in told for c in script.changes]
        self.own.tell([c for c in everything if c.dropped or self.own.is_own(c.definition)])
        gone = [c for c in everything if c.dropped or c.replaced is not None]
        for change in gone:
            self.tasks.delete(change.definition.name)
        if gone:
            self._drop_unused()
        return told

    def _drop_unused(self) -> None:
        views.drop_unused_views(self.site, self.own.elsewhere())
        self._give_back()

    def _give_back(self) -> None:
        """What nothing here reads any more."""
        self.computing.drop_unused()
        self.mirrors.drop_unused()
        self.labelling.drop_unused()
        with self.site.gate.between_ticks():
            self.site.engine.tidy()

    # --- what is where

    def is_answered_here(self, path: str) -> bool:
        """Whether any node answers for what is at home at one of them."""
        return False

    def find(self, name: str) -> Defined | None:
        return self.directory.defined().get(name.lower())
