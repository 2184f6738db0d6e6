"""A node of the network: a site, its publications, and what it knows of the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from thalweg.cql import Script, compile_script
from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.shared.registering import NameTaken
from thalweg.engine.shared.state.names import PUBLISHED
from thalweg.engine.site import Site, SiteError, WrongUse
from thalweg.engine.site.book import kind_of
from thalweg.engine.site.publications import is_internal, is_mirror
from thalweg.engine.site.scripts import Change, CompileEach, Text
from thalweg.engine.site.scripts import Script as SiteScript
from thalweg.plan.catalog import Catalog, Definition, QueryDef, StreamDef, ViewDef
from thalweg.plan.nodes import Node as Node_
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan, without_plan
from thalweg.runtime.data.fragments import NAMED, Fragment, inlined
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.data.statements import quoted, schema_text
from thalweg.runtime.network.definitions import needed_views, network_catalog
from thalweg.runtime.network.deploying import Placement, Planned, plan_queries
from thalweg.runtime.network.difference import Change as FragmentChange
from thalweg.runtime.network.difference import Running, Stays, changed, difference
from thalweg.runtime.network.directory import FED, VIEW, Defined, Directory
from thalweg.runtime.network.fragments import Assembled, Fragments, with_streams
from thalweg.runtime.network.leaving import Leaving
from thalweg.runtime.network.measuring import Meter, NodeMeasure, Task
from thalweg.runtime.network.mirrors import Mirrored, Mirrors
from thalweg.runtime.network.placed_text import placed_text, select_of
from thalweg.runtime.network.placing import placed_at_home, placed_locally
from thalweg.runtime.network.publishing import FragmentPublisher
from thalweg.runtime.network.replacing import Replacement, Replacing, Step
from thalweg.runtime.network.statements import Part, is_for, named, parts_of
from thalweg.runtime.network.succession import LiveSuccession
from thalweg.runtime.network.tasks import Refused, Tasks

_MOST_NAMED = 5
_NEWS_WITHIN_S, _LOOK_EVERY_S = 5.0, 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """What a node may be given to do: cores, and bits per second; None: as much as comes."""

    cpu: float | None = None
    out_bps: float | None = None
    in_bps: float | None = None


class Node:
    """`site` answers for what is here; statements go through `parts` and `execute`, which look
    beyond it."""

    def __init__(
        self,
        site: Site,
        directory: Directory,
        mirrors: Mirrors,
        data: DataServer,
        limits: Limits | None = None,
        strategy: str = "local",
        succession: LiveSuccession | None = None,
    ) -> None:
        self.site, self.directory, self.mirrors, self.data = site, directory, mirrors, data
        self.limits, self.strategy = limits or Limits(), strategy
        self.meter, self.tasks = Meter(site), Tasks(site)
        self._lock = threading.RLock()
        self.fragments = Fragments(self.name, site, mirrors, succession)
        self.succession = succession
        mirrors.attach(site)
        data.attach(site)
        self.publisher = FragmentPublisher(
            site,
            self._stand,
            self._stop_publication,
            mirrors.drop_unused,
            self._lock,
            self.fragments,
            data.publications,
        )
        data.publish_with(self.publisher)
        mirrors.demanded = data.publications.demanded
        self._reconcile()
        self.fragments.give_back_unread()
        directory.on_gone(self._gone)
        if succession is not None:
            succession.attach(site, mirrors, self.fragments)
        self.replacing = Replacing(site, mirrors, self.fragments, self.tasks)
        self.replacing.go_on()

    @property
    def name(self) -> str:
        return self.directory.me.name

    def close(self) -> None:
        if self.succession is not None:
            self.succession.close()
        self.replacing.close()
        self.data.shutdown()
        self.site.close()

    # --- nodes that go

    def leave(self) -> None:
        """Take this node out of the network; what it computes for others goes to those who read it.
        Raises WrongUse while it has something: queries do not move by themselves yet, streams have
        one home, and what can't be rebuilt stays."""
        own = [d for d in self.site.catalog.definitions.values() if self.is_own(d)]
        if own:
            named = ", ".join(f"{kind_of(d)} {d.name}" for d in own[:_MOST_NAMED])
            more = f" and {len(own) - _MOST_NAMED} more" if len(own) > _MOST_NAMED else ""
            raise WrongUse(
                f"{self.name} still has {named}{more}: drop them, and submit queries at another "
                "node first"
            )
        leaving = Leaving(self.name, self.directory, self.mirrors, self.publisher)
        leaving.move_fragments()
        self.directory.leave()

    def _gone(self, node: str) -> None:
        """What was kept for a node that is gone need not be kept any more."""
        for publication in self.data.publications.read_by(node):
            self.data.publications.close(publication)
        self.publisher.closed()

    # --- statements

    def catalog(self) -> Catalog:
        """All that statements at this node may read."""
        return network_catalog(self._elsewhere(), self.site.catalog)

    def parts(self, text: str, name: str, arrived: Mapping[str, int] | None = None) -> list[Part]:
        """Where a script's statements have to be executed; new queries here, or, if it is told how
        much has arrived of each stream, near their input. Raises CqlError."""
        script = compile_script(text, self.catalog(), name=name)
        self._check_names(script)
        place = placed_locally(self.name)
        if arrived is not None:
            place = placed_at_home(self.name, self.directory.defined(), arrived)
        return parts_of(text, script, self.name, self._elsewhere(), place)

    @staticmethod
    def _check_names(script: Script) -> None:
        for change in script.changes:
            for own in (PUBLISHED, NAMED):
                if change.definition.name.startswith(own):
                    raise NameTaken(f"names that begin with {own} are the network's own")

    def measured(self) -> NodeMeasure:
        """What planners want to know of this node."""
        others = [n for n in self.directory.nodes() if n.name != self.name]
        seconds, bits = self.meter.load()
        return NodeMeasure(
            self.name,
            self.meter.streams(),
            self.meter.delays_ms([n for n in others if self.directory.is_up(n.name)]),
            seconds,
            bits,
            tuple(self.tasks.all()),
            self.limits.cpu,
            self.limits.out_bps,
            self.limits.in_bps,
        )

    def planned(
        self, text: str, name: str, strategy: str, measured: Sequence[NodeMeasure]
    ) -> tuple[Script, Planned]:
        """What a strategy would do with the new queries of a script. Raises CqlError, SiteError."""
        script = compile_script(text, self.catalog(), name=name)
        defined = self.directory.defined()
        homes = {s.name: self.name for s in script.catalog.streams()}
        homes |= {d.name: d.node for d in defined.values() if d.kind in FED}
        fresh = [q for q in script.queries if q.name.lower() not in defined and not q.from_now]
        return script, plan_queries(fresh, strategy, self.name, homes, measured)

    def planned_parts(
        self, text: str, name: str, strategy: str, measured: Sequence[NodeMeasure]
    ) -> tuple[list[Part], dict[str, Placement]]:
        """As `parts`, with new queries placed by a strategy. Raises WrongUse, with what is short
        where, if it does not admit all of them."""
        script, planned = self.planned(text, name, strategy, measured)
        self._check_names(script)
        try:
            planned.check(strategy)
        except WrongUse as error:
            self.tasks.refuse(Refused(time.strftime("%F %T"), strategy, str(error)))
            raise
        placed = {p.query: p for p in planned.placements}

        def place(query: QueryDef) -> str:
            return placed[query.name].node if query.name in placed else self.name

        return parts_of(text, script, self.name, self._elsewhere(), place, placed), placed

    def planned_again(
        self, strategy: str, measured: Sequence[NodeMeasure]
    ) -> tuple[Replacement, list[Stays]]:
        """What would change if this node's placed queries were placed now. Raises WrongUse,
        SiteError."""
        tasks = {t.query: t for t in self.tasks.all()}
        queries = [QueryDef(t.query, decode_plan(t.plan)) for t in tasks.values()]
        homes = {s.name: self.name for s in self.site.catalog.streams() if not is_mirror(s)}
        homes |= {d.name: d.node for d in self.directory.defined().values() if d.kind in FED}
        planned = plan_queries(queries, strategy, self.name, homes, measured)
        planned.check(strategy)
        moves: dict[str, FragmentChange] = {}  # a fragment that several read goes once
        stays: list[Stays] = []
        given: list[Task] = []
        for placement in planned.placements:
            if placement.node != self.name:
                why = f"{strategy} would have it stand at {placement.node}, and queries do not move"
                stays.append(Stays(placement.query, self.name, why))
                continue
            running = list(self._running(placement.query))
            for found in difference(placement.query, running, placement.fragment, self.name):
                if isinstance(found, Stays):
                    stays.append(found)
                else:
                    moves.setdefault(found.stream, found)
            root = tasks[placement.query].fragment
            after = None if root is None else changed(root, running, moves.values())
            given.append(msgspec.structs.replace(placement.task, fragment=after))
        steps = tuple(Step(c) for c in moves.values())
        return Replacement(strategy, steps, tuple(given)), stays

    def _running(self, query: str) -> Iterator[Running]:
        """What other nodes compute for a query of this one."""
        read = dict(self.fragments.read())
        for name in (s.name for s in base_streams(self.site.query(query).plan)):
            if name in read:
                stream, fragment = read[name]
                last = self.mirrors.routes(stream)[-1]
                yield Running(name, self.mirrors.home(stream), last.publication, fragment)

    def are_for_here(self, texts: Iterable[str]) -> bool:
        """Whether no statement of these texts has to be executed elsewhere."""
        elsewhere = self._elsewhere()
        return all(is_for(self.name, text, elsewhere) for text in texts)

    def execute(self, text: str, *, name: str = "<cql>", folder: Path | None = None) -> Script:
        """Run a script at this node: all of it, or nothing. It may read what others have."""
        with self._lock:
            elsewhere = self._elsewhere()
            script = compile_script(text, network_catalog(elsewhere, self.site.catalog), name=name)
            with self._opened([script], [text], elsewhere) as opened:
                before = "".join(f"{t}; " for t in opened.texts)
                done = self.site.execute(
                    before + text, name=name, folder=folder, pasts=opened.pasts
                )
            return self._told([(done, script)])[0]

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
        script = compile_script(text, self.catalog(), name=name)
        if not script.queries:
            return script  # it is there
        (query,) = script.queries
        if fragment.node.schema != query.plan.schema:
            raise WrongUse(f"what is placed is not {query.name}")
        written = select_of(text)
        if task is not None:
            self.tasks.write(task)
        try:
            with self.fragments.assembled(fragment) as assembled, self._lock:
                made = placed_text(query.name, assembled.plan, written)
                done = self._run_placed(query.name, made, assembled, folder)
        except BaseException:
            if task is not None:
                self.tasks.delete(task.query)
            raise
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
        if since is not None:
            self._stand_again(name, shape(inlined(fragment)), since)
            return
        with self.fragments.assembled(fragment, complete=complete) as assembled, self._lock:
            assembled = replace(assembled, plan=shape(assembled.plan))
            self._run_placed(name, placed_text(name, assembled.plan), assembled, None)

    def _stand_again(self, name: str, plan: Node_, since: int) -> None:
        """As if it had begun at an instant of the past, over streams that their homes have held."""
        definition = QueryDef(name, plan)
        with self._lock:
            mirrored, streams = self.mirrors.open_past(definition, self._elsewhere(), since)
            text = placed_text(name, with_streams(plan, streams))
            try:
                before = "".join(f"{t}; " for t in mirrored.texts)
                self.site.execute(before + text, pasts=mirrored.pasts)
            except BaseException:
                self.mirrors.give_back(mirrored.opened)
                raise

    def _run_placed(
        self, name: str, text: str, assembled: Assembled, folder: Path | None
    ) -> SiteScript:
        for shared in assembled.shared:
            if self.site.catalog.find(shared) is None:
                raise SiteError(f"{shared} was dropped meanwhile: submit again")
        definition = QueryDef(name, assembled.plan, text)
        self._await_news(assembled)
        mirrored = self.mirrors.open([definition], self._elsewhere())
        try:
            before = "".join(f"{t}; " for t in (*mirrored.texts, *assembled.texts))
            pasts = {**mirrored.pasts, **assembled.pasts}
            return self.site.execute(before + text, folder=folder, pasts=pasts)
        except BaseException:
            self.mirrors.give_back(mirrored.opened)
            raise

    def _await_news(self, assembled: Assembled) -> None:
        """A stream may be so new that its home has told others of it, and not this node yet."""
        read = {s.name.lower() for s in base_streams(assembled.plan)}
        read -= {name.lower() for name in assembled.pasts}
        until = time.monotonic() + _NEWS_WITHIN_S
        while time.monotonic() < until:
            known = self.directory.defined()
            if all(n in known or self.site.catalog.find(n) is not None for n in read):
                return
            time.sleep(_LOOK_EVERY_S)

    def _stop_publication(self, publication: str) -> None:
        self.data.publications.close(publication)

    def execute_each(self, texts: Sequence[Text], compiler: CompileEach) -> list[Script]:
        """As `Site.execute_each`; statements may read what others have."""
        with self._lock:
            elsewhere = self._elsewhere()
            cql = [t.cql for t in texts]
            scripts = compiler(cql, network_catalog(elsewhere, self.site.catalog))
            texts = [
                Text(named(t.cql, (q.name for q in s.queries)), t.folder)
                for t, s in zip(texts, scripts, strict=True)
            ]
            with self._opened(scripts, cql, elsewhere) as opened:
                before = Text("".join(f"{t};\n" for t in opened.texts))
                _, *done = self.site.execute_each([before, *texts], compiler, opened.pasts)
            return self._told(list(zip(done, scripts, strict=True)))

    @contextmanager
    def _opened(
        self, scripts: Iterable[SiteScript], texts: Iterable[str], elsewhere: Mapping[str, Defined]
    ) -> Iterator[Mirrored]:
        """What scripts need of other nodes; given back if they fail."""
        made = [c.definition for s in scripts for c in s.changes if not c.dropped]
        reading = [d for d in made if isinstance(d, QueryDef | ViewDef)]
        mirrored = self.mirrors.open(reading, elsewhere)
        views = self._views_for(texts, elsewhere)
        try:
            yield replace(mirrored, texts=(*mirrored.texts, *views))
        except BaseException:
            self.mirrors.give_back(mirrored.opened)
            raise

    def _told(self, pairs: Sequence[tuple[SiteScript, SiteScript]]) -> list[Script]:
        """The network learns what has changed. What was done for the sake of a user's statements is
        left out: scripts as the site has executed them, beside those of the user."""
        told = []
        for done, script in pairs:
            own = {c.definition.name for c in script.changes}
            changes = tuple(c for c in done.changes if c.definition.name in own)
            assert isinstance(done, Script)
            told.append(replace(done, changes=changes, warnings=script.warnings))  # type: ignore[arg-type]
        everything = [c for script in told for c in script.changes]
        self._tell(everything)
        gone = [c for c in everything if c.dropped or c.replaced is not None]
        for change in gone:
            self.tasks.delete(change.definition.name)
        if gone:
            self._drop_unused()
        return told

    def _views_for(self, texts: Iterable[str], elsewhere: Mapping[str, Defined]) -> Iterator[str]:
        """Views of others that texts read, as they are now."""
        if not any(d.kind == VIEW for d in elsewhere.values()):
            return
        copies = {v.name.lower(): v for v in self.site.catalog.views()}
        for view in needed_views(texts, elsewhere):
            copy = copies.get(view.name.lower())
            if copy is None:
                yield view.text
            elif copy.text != view.text and not dependents(copy, self.site.catalog):
                yield f"DROP VIEW {quoted(view.name)}; {view.text}"

    def _drop_unused(self) -> None:
        elsewhere = self._elsewhere()
        for view in reversed(self.site.catalog.views()):
            is_copy = view.name.lower() in elsewhere
            if is_copy and not dependents(view, self.site.catalog):
                self.site.execute(f"DROP VIEW {quoted(view.name)}")
        self.mirrors.drop_unused()

    # --- what is where

    def _elsewhere(self) -> dict[str, Defined]:
        """What other nodes have; by lower-cased name."""
        return {k: d for k, d in self.directory.defined().items() if d.node != self.name}

    def find(self, name: str) -> Defined | None:
        return self.directory.defined().get(name.lower())

    def is_own(self, definition: Definition) -> bool:
        """Whether it was made here, and not for the network's sake."""
        if is_internal(definition):
            return False
        entry = self.find(definition.name)
        is_copy = isinstance(definition, ViewDef) and entry is not None and entry.kind == VIEW
        return not (is_copy and entry is not None and entry.node != self.name)

    def _tell(self, changes: Sequence[Change]) -> None:
        """The network learns what this node has."""
        texts = self._texts() if len(changes) > 1 else None
        made = {c.definition.name: c.definition for c in changes if not c.dropped}
        gone = {c.definition.name for c in changes if c.dropped} - made.keys()
        had = [(d.name, kind_of(d), self._text_of(d, texts)) for d in made.values()]
        self.directory.change(had, sorted(gone))

    def _text_of(self, definition: Definition, texts: Mapping[str, str] | None = None) -> str:
        if isinstance(definition, StreamDef):
            return schema_text(definition)
        return without_plan((self._texts() if texts is None else texts).get(definition.name, ""))

    def _texts(self) -> dict[str, str]:
        return {name: text for name, _, text in self.site.book.definitions()}

    def _reconcile(self) -> None:
        """After a crash between a change and the news of it."""
        known = {k: d for k, d in self.directory.defined().items() if d.node == self.name}
        texts = self._texts()
        own = [d for d in self.site.catalog.definitions.values() if self.is_own(d)]
        had = [(d.name, kind_of(d), self._text_of(d, texts)) for d in own]
        news = [
            (name, kind, text)
            for name, kind, text in had
            if (e := known.get(name.lower())) is None or (e.kind, e.text) != (kind, text)
        ]
        here = {name.lower() for name, _, _ in had}
        self.directory.change(news, [e.name for key, e in known.items() if key not in here])
