"""Tolerance classes at the home of a stream: which rows are due, and for whom (`labels.py`).

| what | is |
|---|---|
| `pub/S>.labels.N` | of a class: the rows that are due for it, of the unfiltered stream |
| `due/S` | a stream of all of these, each row once, with a column for each class |

When a class starts, its past is handed over: of a new class all that the home has, of one that runs
what it holds. That is a *generation*: from an instant on, `due/S` is made of these publications.
All of it is written down before anybody is told, so a crash is nothing but asking again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

import msgspec
from msgspec import structs

from thalweg.cql import compile_script
from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.state.names import LABELLED
from thalweg.engine.shared.state.runs import ClassStart
from thalweg.engine.shared.tolerance_classes import starts_of
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.authors import by_itself
from thalweg.engine.site.publications import (
    Publications,
    is_internal,
    labels_of,
    publication_name,
    publication_text,
    reader_of,
)
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Node, Scan, Tolerant, transform
from thalweg.plan.travelling import decode_plan, rebound
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.messages import Label, LabelledAs
from thalweg.runtime.data.routes import Handed, Place, Route, decode_place
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.data.statements import mirror_text, quoted
from thalweg.runtime.network.fragments.placed_text import placed_text
from thalweg.runtime.network.labels.label_source import LabelSource
from thalweg.runtime.network.labels.labels import class_text, due_name, due_stream, label_name

READER = ".labels"  # of the classes' publications; no node is called so
_NUMBERS = "labels"
_HOLD_EVERY_S = 1.0
KEPT_FOR_S = 30.0  # what nobody reads: who has asked for a class is about to open it


class Generation(msgspec.Struct, frozen=True):
    """From `since` on: by column the publication of its class. What was before is handed over for
    those that are `fresh`."""

    name: str
    since: int
    labels: dict[str, str]
    fresh: tuple[str, ...]


class Book(msgspec.Struct, frozen=True):
    """Of one stream: the columns of its classes, from where on each has what its class let
    through, and the generations that are left."""

    classes: dict[str, str] = {}
    complete_from: dict[str, int] = {}
    generations: tuple[Generation, ...] = ()


class Labelling:
    def __init__(self) -> None:
        self._site: Site | None = None
        self._lock = threading.RLock()  # while classes start and end
        self._writing = threading.RLock()  # while a book is read or changed
        self._taking: dict[str, threading.Lock] = {}
        self._books: dict[str, Book] = {}
        self._asked: dict[str, float] = {}
        self._held: dict[str, float] = {}

    def attach(self, site: Site, publications: Publications) -> None:
        self._site, self._publications = site, publications
        known = set[str]()
        for stream in site.catalog.streams():
            if labels_of(stream) is not None:
                self._hold(stream.name)
                known |= _publications(self.book(stream.name))
        for name in publications.names():  # of a class that has not come to start
            if reader_of(name) == READER and name not in known:
                publications.close(name)

    @property
    def _attached(self) -> Site:
        assert self._site is not None, "the node has not begun"
        return self._site

    # --- what is written down

    def book(self, due: str) -> Book:
        with self._writing:
            if due not in self._books:
                note = None if self._site is None else self._site.engine.store.note(_note(due))
                if note is None:
                    return Book()
                self._books[due] = msgspec.json.decode(note, type=Book)
            return self._books[due]

    def _write(self, due: str, book: Book) -> None:
        with self._writing:
            self._attached.engine.store.write_note(_note(due), msgspec.json.encode(book))
            self._books[due] = book

    def taking(self, due: str) -> threading.Lock:
        """Who has it sees how far the stream has come."""
        with self._writing:
            return self._taking.setdefault(due, threading.Lock())

    def _place(self, due: StreamDef) -> Place | None:
        packed = self._attached.engine.landing.resume_point(due)
        return None if packed is None else decode_place(packed)

    # --- classes that start

    def label(self, asked: Label) -> LabelledAs:
        """Raises CannotPublish, Unknown."""
        base = self._attached.stream(asked.stream)
        if is_internal(base) or base.is_relation:
            raise CannotPublish(f"{asked.stream} is no stream of this node's own")
        try:
            nodes = [_tolerant(packed, base) for packed in asked.classes]
        except EncodingError as error:
            raise CannotPublish(str(error)) from None
        due = due_name(base.name)
        with self._lock:
            self._hold(due)
            self._check_columns(base, due, asked.columns)
            book, fresh = self.book(due), dict[str, Tolerant]()
            for node in nodes:
                text = class_text(node)
                column = book.classes.get(text)
                if column is None:
                    column = self._new_column(text)
                    book = structs.replace(book, classes={**book.classes, text: column})
                    fresh[column] = node
                elif column not in fresh and not self._is_enough(due, book, column, asked):
                    fresh[column] = node
            if fresh:
                try:
                    self._begin(base, due, book, fresh)
                except SiteError as error:
                    raise CannotPublish(str(error)) from None
            classes = self.book(due).classes
        return LabelledAs(tuple(classes[class_text(node)] for node in nodes))

    def _new_column(self, text: str) -> str:
        return label_name(text, self._attached.engine.store.take_numbers(_NUMBERS, 1))

    def _hold(self, due: str) -> None:
        """Nothing goes of what is there until who asks has opened it."""
        self._asked[due] = time.monotonic()
        holds = self._attached.engine.holds
        if due not in holds.of(_note(due)):
            with self._attached.gate.between_ticks(), self._writing:
                holds.write(_note(due), {**holds.of(_note(due)), due: BEGINNING})
        later = threading.Timer(KEPT_FOR_S, self._release, [due])
        later.daemon = True
        later.start()

    def _release(self, due: str) -> None:
        with self._lock, suppress(*FAILURES):  # the site may be closed
            if not self._is_asked_for(due):
                holds = self._attached.engine.holds
                with self._writing:
                    left = {s: i for s, i in holds.of(_note(due)).items() if s != due}
                    holds.write(_note(due), left)
                self.drop_unused()

    def _is_asked_for(self, due: str) -> bool:
        return time.monotonic() - self._asked.get(due, 0.0) < KEPT_FOR_S

    def _check_columns(self, base: StreamDef, due: str, columns: Collection[str]) -> None:
        here = self._attached.catalog.find(due)
        known = here if isinstance(here, StreamDef) else base
        if lacking := sorted(set(columns) - {f.name for f in known.fields}):
            raise CannotPublish(f"the classes of {base.name} began without {', '.join(lacking)}")

    def _is_enough(self, due: str, book: Book, column: str, asked: Label) -> bool:
        """Whether who reaches back so far finds all that the class let through, or what it held."""
        stream, engine = self._attached.stream(due), self._attached.engine
        if self._pending(stream, book, (column,)) is not None:
            return True  # it will be handed over
        wanted = {*asked.columns, column}
        places = [i for i, f in enumerate(stream.fields) if f.name in wanted]
        kept = engine.store.inputs.complete_from(due, places)
        if kept <= book.complete_from[column]:
            return True
        return asked.reach is not None and kept <= engine.watermark(due) - asked.reach

    def _begin(self, base: StreamDef, due: str, book: Book, fresh: Mapping[str, Tolerant]) -> None:
        """Raises SiteError, CannotPublish; then nothing has started."""
        opened: dict[str, str] = {}
        try:
            for column, node in fresh.items():
                publication = self._publish(base, node)
                if column in book.complete_from and not self._joined(publication):
                    # What ran had come no further than what is kept: it is another class.
                    column = self._new_column(class_text(node))
                    book = structs.replace(book, classes={**book.classes, class_text(node): column})
                opened[column] = publication
            starts = [self._started(p) for p in opened.values()]
            if max(starts) >= FOREVER:
                raise CannotPublish(f"{base.name} has ended")
            complete = {c: self._complete_from(base, p) for c, p in opened.items()}
            book = structs.replace(book, complete_from={**book.complete_from, **complete})
            here = self._attached.catalog.find(due)
            with by_itself():
                if not isinstance(here, StreamDef):
                    first = Generation("1", BEGINNING, opened, tuple(opened))
                    self._write(due, structs.replace(book, generations=(first,)))
                    made = due_stream(base, opened)
                    text = mirror_text(made, base.name, first.name, scheme=LABELLED)
                    self._attached.execute(text)
                    return
                there = {f.name for f in here.fields}
                added = [c for c in opened if c not in there]
                if added:
                    texts = (
                        f"ALTER STREAM {quoted(due)} ADD COLUMN {quoted(c)} BOOLEAN" for c in added
                    )
                    self._attached.execute("; ".join(texts))
            with self.taking(due), self._writing:
                self._add(self._attached.stream(due), book, opened, max(starts))
        except BaseException:
            for publication in opened.values():
                self._publications.close(publication)
            if self._attached.catalog.find(due) is None:
                self._forget(due)
            raise

    def _add(self, due: StreamDef, book: Book, opened: dict[str, str], started: int) -> None:
        *before, last = self.book(due.name).generations
        labels, place = {**last.labels, **opened}, self._place(due)
        if place is None:  # nothing has come: they begin together
            fresh = (*last.fresh, *(c for c in opened if c not in last.fresh))
            made = structs.replace(last, labels=labels, fresh=fresh)
        else:
            if place.instant >= FOREVER:
                raise CannotPublish(f"{due.name} has ended")
            name, since = str(int(last.name) + 1), max(place.instant, last.since, started)
            before.append(last)
            made = Generation(name, since, labels, tuple(opened))
        self._write(due.name, structs.replace(book, generations=(*before, made)))

    def _publish(self, base: StreamDef, node: Tolerant) -> str:
        """The rows that are due for a class, from the past on."""
        number = self._attached.engine.store.take_numbers(_NUMBERS, 1)
        name = publication_name(base.name, READER, number)
        self._attached.engine.readers.keep(name)
        with by_itself():
            self._attached.execute(placed_text(name, class_plan(base, name, node)))
        return name

    def _started(self, publication: str) -> int:
        run = self._attached.engine.roster_entry(publication)
        return BEGINNING if run is None or run.started is None else run.started

    def _complete_from(self, base: StreamDef, publication: str) -> int:
        """From where on a class has counted, if it runs: what it holds may be as old."""
        engine = self._attached.engine
        run = engine.roster_entry(publication)
        assert run is not None
        joined = self._joined(publication)
        own = dict(run.horizons).get(base.name, BEGINNING)
        return min([own, *(start.horizon for start in joined)])

    def _joined(self, publication: str) -> Collection[ClassStart]:
        """The start of its class, if that has run before."""
        engine = self._attached.engine
        run = engine.roster_entry(publication)
        assert run is not None
        assert run.plan is not None
        return starts_of(engine.store, run, run.plan).values()

    # --- who reads

    @contextmanager
    def beginning(self, due: StreamDef, columns: Collection[str]) -> Iterator[Past | None]:
        """Where a reader of these labels begins, if that is to come yet; until it stands, the
        stream does not go on."""
        with self.taking(due.name):
            yield self._pending(due, self.book(due.name), columns)

    def _pending(self, due: StreamDef, book: Book, columns: Collection[str]) -> Past | None:
        place, names = self._place(due), [g.name for g in book.generations]
        with_them = [g for g in book.generations if set(columns) & set(g.fresh)]
        if not with_them:
            return None
        last = with_them[-1]
        wanted = [c for c in last.fresh if c in columns]
        complete = max(book.complete_from[c] for c in wanted)
        if place is None:
            started = max(self._started(last.labels[c]) for c in wanted)
            return Past(started, complete) if started > BEGINNING else None
        reached = names.index(place.publication) if place.publication in names else -1
        if reached >= names.index(last.name):
            return None
        return Past(last.since, complete, last.since, again=True)

    # --- rows

    def source(self, due: StreamDef) -> Source:
        return LabelSource(due, self)

    def routes(self, due: StreamDef) -> tuple[Route, ...]:
        book = self.book(due.name)
        labels = set(book.complete_from)
        own = tuple(f.name for f in due.fields if f.name not in labels)
        return tuple(
            Route(
                g.name,
                since=g.since,
                columns=(*own, *g.fresh) if number else None,
                past=Handed(None, max(book.complete_from[c] for c in g.fresh)),
                hands_over=number > 0,
            )
            for number, g in enumerate(book.generations)
        )

    def generation(self, due: str, name: str) -> Generation | None:
        return next((g for g in self.book(due).generations if g.name == name), None)

    def reached(self, due: StreamDef, instant: int) -> None:
        """The base stream is kept from there on: who joins a class goes on where that is."""
        now, base = time.monotonic(), labels_of(due)
        if now - self._held.get(due.name, 0.0) < _HOLD_EVERY_S or base is None:
            return
        self._held[due.name] = now
        holds = self._attached.engine.holds
        with self._writing:
            if BEGINNING < instant < FOREVER:
                holds.write(_note(due.name), {**holds.of(_note(due.name)), base: instant - 1})

    def switched(self, due: str, name: str) -> None:
        """All that was before a generation is over."""
        with self._writing:
            book = self.book(due)
            names = [g.name for g in book.generations]
            left = structs.replace(book, generations=book.generations[names.index(name) :])
            self._write(due, left)
        self._close_later(_publications(book) - _publications(left))

    def _close_later(self, names: Collection[str]) -> None:
        """Not on the caller's thread: rows wait for it."""
        if names:
            threading.Thread(target=self._close, args=(sorted(names),), daemon=True).start()

    def _close(self, names: Collection[str]) -> None:
        with suppress(*FAILURES):  # at the next start, then
            for name in names:
                self._publications.close(name)

    @property
    def publications(self) -> Publications:
        return self._publications

    @property
    def site(self) -> Site | None:
        return self._site

    # --- classes that end

    def drop_unused(self) -> None:
        """Classes of streams whose due rows nobody reads any more."""
        for stream in self._attached.catalog.streams():
            with self._lock:
                if labels_of(stream) is None or self._is_asked_for(stream.name):
                    continue
                if dependents(stream, self._attached.catalog):
                    continue
                book = self.book(stream.name)
                with by_itself():
                    self._attached.execute(f"DROP STREAM {quoted(stream.name)}")
                self._forget(stream.name)
            self._close_later(_publications(book))

    def _forget(self, due: str) -> None:
        self._attached.engine.store.delete_note(_note(due))
        self._attached.engine.holds.write(_note(due), {})
        with self._writing:
            self._books.pop(due, None)
        self._asked.pop(due, None)


def class_plan(base: StreamDef, name: str, node: Tolerant) -> Node:
    """The rows that are due for a class, with their positions, from the past on."""
    text = publication_text(base, name, None)
    (query,) = compile_script(text, Catalog().with_definition(base)).queries

    def change(each: Node) -> Node:
        return replace(node, input=each) if isinstance(each, Scan) else each

    return transform(query.plan, change)


def _tolerant(packed: bytes, base: StreamDef) -> Tolerant:
    """Raises EncodingError."""
    found = rebound(decode_plan(packed), lambda _: base)
    if not isinstance(found, Tolerant):
        raise EncodingError("a class is a tolerance of a stream")
    return found


def _publications(book: Book) -> set[str]:
    return {p for g in book.generations for p in g.labels.values()}


def _note(due: str) -> str:
    return f"labels/{due}"
