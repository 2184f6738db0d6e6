"""Tolerance classes at the home of a stream: which rows are due, and for whom (`labels.py`).

| what | is |
|---|---|
| `pub/S>.labels.N` | the unfiltered stream, from the past on |
| `due/S` | what is due of it for some class, with a label that names the classes |

When a class starts, its past is handed over: of a new class all that the home has, of one that runs
what it holds. That is a *generation*: from an instant on, labels have its numbers too (`book.py`).
All of it is written down before anybody is told, so a crash is nothing but asking again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from msgspec import structs

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.state.names import LABEL, LABELLED
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
from thalweg.plan.catalog import StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Tolerant
from thalweg.plan.travelling import encode_plan
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.holding import ORPHANED_S
from thalweg.runtime.data.messages import Label, LabelledAs
from thalweg.runtime.data.routes import Place, Route, decode_place
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.data.statements import mirror_text, quoted
from thalweg.runtime.network.labels import keeping
from thalweg.runtime.network.labels.book import Book, Class, Generation, Start, tolerant_of
from thalweg.runtime.network.labels.books import Books
from thalweg.runtime.network.labels.label_source import LabelSource
from thalweg.runtime.network.labels.labels import (
    can_be_labelled,
    class_text,
    due_name,
    due_stream,
)
from thalweg.runtime.network.labels.passing import Passing
from thalweg.runtime.network.labels.wanted import Numbers, numbers_of, numbers_read

READER = ".labels"  # of the publications here; no node is called so
_NUMBERS = "labels"
KEPT_FOR_S = 30.0  # what nobody reads: who has asked for a class is about to open it
UNREAD_FOR_S = ORPHANED_S + KEPT_FOR_S  # classes, as their readers may hang somewhere else by then


class Labelling:
    def __init__(self) -> None:
        self._site: Site | None = None
        self._lock = threading.RLock()  # while classes start and end
        self._taking: dict[str, threading.Lock] = {}
        self._books = Books()
        self._asked: dict[str, float] = {}
        self._unread: dict[tuple[str, int], float] = {}
        self._outdated: set[str] = set()

    def attach(self, site: Site, publications: Publications) -> None:
        self._site, self._publications = site, publications
        self._books.attach(site.engine.store)
        known = set[str]()
        for stream in site.catalog.streams():
            if labels_of(stream) is None:
                continue
            if not self._books.has(stream.name):
                self._outdated.add(stream.name)
                site.engine.holds.write(_note(stream.name), {})
            else:
                self._hold(stream.name)
                known |= self.book(stream.name).publications
        for name in publications.names():  # of a class that has not come to start
            if reader_of(name) == READER and name not in known:
                publications.close(name)

    @property
    def _attached(self) -> Site:
        assert self._site is not None, "the node has not begun"
        return self._site

    def outdated(self, due: str) -> str | None:
        """Why nothing comes any more of a stream that an older version has begun."""
        if due not in self._outdated:
            return None
        return (
            f"{due} was begun by an older version, with a column for each tolerance: drop the "
            f"queries that read it, at their nodes, and create them again"
        )

    # --- what is written down

    def book(self, due: str) -> Book:
        return self._books.of(due)

    def taking(self, due: str) -> threading.Lock:
        """Who has it sees how far the stream has come."""
        with self._books.lock:
            return self._taking.setdefault(due, threading.Lock())

    def base(self, due: StreamDef) -> StreamDef:
        base = labels_of(due)
        assert base is not None
        return self._attached.stream(base)

    def _place(self, due: StreamDef) -> Place | None:
        packed = self._attached.engine.landing.resume_point(due)
        return None if packed is None else decode_place(packed)

    # --- classes that start

    def label(self, asked: Label) -> LabelledAs:
        """Raises CannotPublish, Unknown."""
        base = self._attached.stream(asked.stream)
        if is_internal(base) or base.is_relation or not can_be_labelled(base):
            raise CannotPublish(f"{asked.stream} is no stream of this node's own")
        try:
            nodes = [tolerant_of(packed, base) for packed in asked.classes]
        except EncodingError as error:
            raise CannotPublish(str(error)) from None
        due = due_name(base.name)
        if (why := self.outdated(due)) is not None:
            raise CannotPublish(why)
        with self._lock:
            self._hold(due)
            self._check_columns(base, due, nodes, asked.columns)
            book = self.book(due)
            new, again = dict[str, Tolerant](), dict[str, Class]()
            for node in nodes:
                text = class_text(node)
                known = book.by_text.get(text)
                if known is None:
                    new[text] = node
                elif not self._is_enough(due, book, book.last_starts[known.number], asked):
                    again[text] = known
            if new or again:
                try:
                    self._begin(base, due, book, new, tuple(again.values()))
                except SiteError as error:
                    raise CannotPublish(str(error)) from None
            book = self.book(due)
            numbers = [book.last_starts[book.by_text[class_text(n)].number].number for n in nodes]
            for number in numbers:
                self._unread.pop((due, number), None)
        return LabelledAs(tuple(numbers))

    def _check_columns(
        self, base: StreamDef, due: str, nodes: Sequence[Tolerant], columns: Collection[str]
    ) -> None:
        here = self._attached.catalog.find(due)
        there = {f.name for f in (here if isinstance(here, StreamDef) else base).fields}
        used = {i for n in nodes for i in (n.column, *n.per) if i is not None}
        wanted = {*columns, *(base.fields[i].name for i in used)}
        if lacking := sorted(wanted - there):
            raise CannotPublish(f"the classes of {base.name} began without {', '.join(lacking)}")

    def _is_enough(self, due: str, book: Book, start: Start, asked: Label) -> bool:
        """Whether who reaches back so far finds all that a start has let through."""
        stream, engine = self._attached.stream(due), self._attached.engine
        if self._pending(stream, book, (start,)) is not None:
            return True  # it will be handed over
        wanted = {*asked.columns, LABEL}
        places = [i for i, f in enumerate(stream.fields) if f.name in wanted]
        kept = max(engine.store.inputs.complete_from(due, places), book.gone_below(start))
        if kept <= book.horizon(start):
            return True
        return asked.reach is not None and kept <= engine.watermark(due) - asked.reach

    def _begin(
        self,
        base: StreamDef,
        due: str,
        book: Book,
        new: Mapping[str, Tolerant],
        again: Sequence[Class],
    ) -> None:
        """Raises SiteError, CannotPublish; then nothing has started."""
        here = self._attached.catalog.find(due)
        stream = here if isinstance(here, StreamDef) else None
        publication = self._publish(base, stream) if new else book.generations[-1].publication
        try:
            started, horizon = self._started(base, publication)
            if started >= FOREVER:
                raise CannotPublish(f"{base.name} has ended")
            if stream is None:
                first = Generation(1, BEGINNING, publication)
                made = _with_classes(book, self._numbered(new), first, horizon, ())
                self._books.write(due, structs.replace(made, generations=(first,)))
                with by_itself():
                    text = mirror_text(due_stream(base), base.name, "1", scheme=LABELLED)
                    self._attached.execute(text)
                return
            with self.taking(due), self._books.lock:
                used = self._add(stream, publication, self._numbered(new), again)
            if not used:
                self._publications.close(publication)
        except BaseException:
            if new:
                self._publications.close(publication)
            if self._attached.catalog.find(due) is None:
                self._forget(due)
            raise

    def _numbered(self, new: Mapping[str, Tolerant]) -> list[tuple[int, str, Tolerant]]:
        take = self._attached.engine.store.take_numbers
        first = take(_NUMBERS, len(new)) if new else 0
        return [(first + i, text, node) for i, (text, node) in enumerate(new.items())]

    def _add(
        self,
        due: StreamDef,
        publication: str,
        new: Sequence[tuple[int, str, Tolerant]],
        again: Sequence[Class],
    ) -> bool:
        """Whether the publication is read then."""
        book, place = self.book(due.name), self._place(due)
        last = book.generations[-1]
        if place is None:  # nothing has come: they begin together
            _, horizon = self._started(self.base(due), last.publication)
            self._books.write(due.name, _with_classes(book, new, last, horizon, ()))
            return publication == last.publication
        if place.instant >= FOREVER:
            raise CannotPublish(f"{due.name} has ended")
        started, horizon = self._started(self.base(due), publication)
        since = max(place.instant, last.since, started)
        made = Generation(last.number + 1, since, publication)
        take = self._attached.engine.store.take_numbers
        numbers = take(_NUMBERS, len(again)) if again else 0
        joined = [Start(numbers + i, c.number, made.number, since) for i, c in enumerate(again)]
        book = _with_classes(book, new, made, horizon, joined)
        generations = (*book.generations, made)
        self._books.write(due.name, structs.replace(book, generations=generations))
        return True

    def _publish(self, base: StreamDef, due: StreamDef | None) -> str:
        """The unfiltered stream, from the past on."""
        number = self._attached.engine.store.take_numbers(_NUMBERS, 1)
        name = publication_name(base.name, READER, number)
        columns = None if due is None else [f.name for f in due.fields]
        self._attached.engine.readers.keep(name)
        with by_itself():
            self._attached.execute(publication_text(base, name, None, columns=columns))
        return name

    def _started(self, base: StreamDef, publication: str) -> tuple[int, int]:
        """When a publication has begun, and from when on it has rows."""
        run = self._attached.engine.roster_entry(publication)
        if run is None:
            raise CannotPublish(f"{publication} was given up")
        started = BEGINNING if run.started is None else run.started
        return started, dict(run.horizons).get(base.name, BEGINNING)

    # --- who reads

    def _hold(self, due: str) -> None:
        """Nothing goes of what is there until who asks has opened it."""
        self._asked[due] = time.monotonic()
        holds = self._attached.engine.holds
        if due not in holds.of(_note(due)):
            with self._attached.gate.between_ticks(), self._books.lock:
                holds.write(_note(due), {**holds.of(_note(due)), due: BEGINNING})
        _later(KEPT_FOR_S, self._release, due)

    def _release(self, due: str) -> None:
        with self._lock, suppress(*FAILURES):  # the site may be closed
            if not self._is_asked_for(due):
                self._attached.engine.holds.write(_note(due), {})
                self.drop_unused()

    def _is_asked_for(self, due: str) -> bool:
        return time.monotonic() - self._asked.get(due, 0.0) < KEPT_FOR_S

    @contextmanager
    def beginning(self, due: StreamDef, where: Sequence[str] | None) -> Iterator[Past | None]:
        """Where a reader of these labels begins, if that is to come yet; until it stands, the
        stream does not go on. Raises SiteError."""
        with self.taking(due.name):
            book = self.book(due.name)
            wanted = numbers_of(due, where)
            if wanted is not None and (over := wanted - book.started.keys()):
                raise SiteError(f"tolerance {min(over)} of {due.name} has ended: submit again")
            starts = [s for s in book.starts if wanted is None or s.number in wanted]
            past = self._pending(due, book, starts)
            if past is not None and past.again:
                self._note_gone(due, book.generations[-1].number)
            yield past

    def _pending(self, due: StreamDef, book: Book, starts: Sequence[Start]) -> Past | None:
        place = self._place(due)
        if place is None:
            (first, *_) = book.generations
            started, _ = self._started(self.base(due), first.publication)
            return Past(started, book.complete_from(starts)) if started > BEGINNING else None
        reached = int(place.publication)
        to_come = [s for s in starts if s.generation > reached]
        if not to_come:
            return None
        number = max(s.generation for s in to_come)
        since = next(g.since for g in book.generations if g.number == number)
        return Past(since, book.complete_from(to_come), since, again=True)

    def _note_gone(self, due: StreamDef, generation: int) -> None:
        """Before a past is handed over, which makes the stream count as complete again."""
        with self._books.lock:
            below = self._attached.engine.store.inputs.complete_from(due.name, ())
            book = self.book(due.name)
            if (noted := book.with_gone(generation, below)) is not book:
                self._books.write(due.name, noted)

    # --- rows

    def source(self, due: StreamDef) -> Source:
        return LabelSource(due, self)

    def routes(self, due: StreamDef) -> tuple[Route, ...]:
        return self.book(due.name).routes or (Route("1"),)

    def switched(self, due: str, name: str) -> None:
        """All that was before a generation is over."""
        with self._books.lock:
            book = self.book(due)
            left = book.switched(name)
            self._books.forget_passed(due, set(book.generations) - set(left.generations))
            self._books.write(due, left)
        self._close_later(book.publications - left.publications)

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

    # --- what has passed

    def keep(self, due: str, generation: Generation, passing: Passing) -> None:
        """Write down what has passed: rows from before are not needed any more."""
        engine = self._attached.engine
        self._books.write_passed(due, generation, keeping.packed(passing))
        engine.readers.acknowledge(generation.publication, passing.instant)

    def kept(self, due: StreamDef, generation: Generation) -> Passing:
        """As it was written down last."""
        packed = self._books.passed(due.name, generation)
        if packed is None:
            return Passing()
        base, classes = self.base(due), self.book(due.name).begun(generation.number)
        known = {c.number: tolerant_of(c.packed, base) for c in classes}
        passing = keeping.unpacked(packed, base, known)
        self._attached.engine.readers.acknowledge(generation.publication, passing.instant)
        return passing

    def begin(self, due: StreamDef, generation: Generation, passing: Passing) -> None:
        """A generation is about to begin."""
        self.keep(due.name, generation, passing)
        self._note_gone(due, generation.number)

    # --- classes that end

    def drop_unused(self) -> None:
        """Classes that nobody reads any more, and streams of due rows of which that is true of
        all."""
        for stream in self._attached.catalog.streams():
            with self._lock:
                if labels_of(stream) is None or self._is_asked_for(stream.name):
                    continue
                readers = numbers_read(stream, self._attached.catalog)
                if readers:
                    self._end_unread(stream, readers)
                    continue
                book = self.book(stream.name)
                with by_itself():
                    self._attached.execute(f"DROP STREAM {quoted(stream.name)}")
                self._forget(stream.name)
            self._close_later(book.publications)

    def _end_unread(self, due: StreamDef, readers: Sequence[Numbers]) -> None:
        """Not at once: who has lost its publisher may ask for the same numbers somewhere else."""
        if due.name in self._outdated or None in readers:
            return
        read = {n for numbers in readers if numbers is not None for n in numbers}
        now, over, is_news = time.monotonic(), set[int](), False
        with self._books.lock:
            book = self.book(due.name)
            for number in book.started:
                if number in read:
                    self._unread.pop((due.name, number), None)
                elif now - self._unread.get((due.name, number), now) >= UNREAD_FOR_S:
                    over.add(number)
                elif (due.name, number) not in self._unread:
                    self._unread[due.name, number] = now
                    is_news = True
            if over and len(over) < len(book.starts):
                self._books.write(due.name, book.without(over))
                for number in over:
                    self._unread.pop((due.name, number), None)
        if is_news:
            _later(UNREAD_FOR_S + 1.0, self._look_again)

    def _look_again(self) -> None:
        with suppress(*FAILURES):  # the site may be closed
            self.drop_unused()

    def _forget(self, due: str) -> None:
        self._books.forget(due)
        self._attached.engine.holds.write(_note(due), {})
        self._outdated.discard(due)
        self._asked.pop(due, None)
        self._unread = {key: at for key, at in self._unread.items() if key[0] != due}


def _with_classes(
    book: Book,
    new: Sequence[tuple[int, str, Tolerant]],
    generation: Generation,
    horizon: int,
    joined: Sequence[Start],
) -> Book:
    """What starts with a generation. A class has the number of its first start."""
    at = generation.number
    classes = [Class(n, text, encode_plan(node), horizon, at) for n, text, node in new]
    starts = [*joined, *(Start(c.number, c.number, generation.number) for c in classes)]
    starts.sort(key=lambda s: s.number)
    return structs.replace(book, classes=(*book.classes, *classes), starts=(*book.starts, *starts))


def _later(seconds: float, what: Callable[..., None], *args: str) -> None:
    timer = threading.Timer(seconds, what, args)
    timer.daemon = True
    timer.start()


def _note(due: str) -> str:
    return f"labels/{due}"
