"""Queries that another engine than the site's own computes, behind `engine/wrappers/interface.py`.

The site stays what a node is to others and to users: it has streams, mirrors, results, readers and
sinks. What computes is the engine. A query becomes three things, made in one transaction:

| what | is |
|---|---|
| `pub/S>engine.N` | a publication of each stream, with what windows hold; it feeds the engine |
| `fragment/engine.N` | a stream that the engine feeds (`FROM 'engine:…'`) with what it says |
| the query itself | passes on what the engine says |

So the engine is a reader and a publisher like another node, at hand. How far it has read and what
it has said are instants, and a crash of either side is nothing but asking again.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.pieces import Piece
from thalweg.engine.shared.compile.history import gaps_of
from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.state.names import ENGINE_FED
from thalweg.engine.site import Site, SiteError, WrongUse
from thalweg.engine.site.errors import Forgotten, Unknown
from thalweg.engine.site.publications import (
    Publications,
    is_engine_fed,
    publication_name,
    publication_text,
    reader_of,
)
from thalweg.engine.sources.feed import Source
from thalweg.engine.wrappers.interface import EngineError, Wrapper
from thalweg.engine.wrappers.refusals import only_passes_on
from thalweg.plan.catalog import PLACE, QueryDef, StreamDef
from thalweg.plan.cutting import in_its_place, part_plan, part_schema
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.client import Unreachable
from thalweg.runtime.data.fragments import NAMED
from thalweg.runtime.data.messages import Range, Read
from thalweg.runtime.data.mirror import Lost, MirrorSource
from thalweg.runtime.data.routes import Route
from thalweg.runtime.data.statements import mirror_text, quoted
from thalweg.runtime.network.mirrors.mirrored import Wanted

READER = "engine"  # of the publications that an engine is fed from; no node's name has a dot before
_NUMBERS = "computed"
_LOOK_EVERY_S = 0.05  # behind what is told by events
_READ_FOR_S = 1.0  # so long a stop may go unseen
_ASK_EVERY_S = 0.2  # for promises


class Refused(WrongUse):
    """This node's engine can't run a query: it is for another node."""


@dataclass(frozen=True, slots=True)
class Made:
    """A query as the site runs it: statements before it, its plan, and streams' pasts."""

    texts: tuple[str, ...]
    plan: Node
    pasts: Mapping[str, Past]


class Computing:
    """`wrapper` is None where the site's own engine computes."""

    def __init__(self, wrapper: Wrapper | None = None) -> None:
        self._wrapper = wrapper
        self._site: Site | None = None
        self._publications: Publications | None = None
        self._happened = threading.Condition()

    @property
    def engine(self) -> str | None:
        """The other engine's name."""
        return None if self._wrapper is None else self._wrapper.name

    def attach(self, site: Site, publications: Publications) -> None:
        self._site, self._publications = site, publications
        if self._wrapper is None:
            return
        site.listen(self._tell)
        self._wrapper.changed = self._tell
        # What was made for a query that has not come to stand, or was half dropped.
        known = {_number(s): s for s in site.catalog.streams() if is_engine_fed(s)}
        for query in self._wrapper.queries():
            if query not in known:
                self._wrapper.drop(query)
        read = {p for s in known.values() for p in _inputs(s).values()}
        for publication in publications.names():
            if reader_of(publication) == READER and publication not in read:
                publications.close(publication)

    def close(self) -> None:
        if self._wrapper is not None:
            self._wrapper.close()

    def seconds(self) -> float:
        return 0.0 if self._wrapper is None else self._wrapper.seconds()

    def refusal(self, plan: Node) -> str | None:
        """Why this node's engine can't run a plan."""
        if self._wrapper is None or only_passes_on(plan):
            return None
        return self._wrapper.refusal(part_plan(plan))

    # --- queries

    @contextmanager
    def computed(
        self, name: str, plan: Node, pasts: Mapping[str, Past], *, complete: bool = False
    ) -> Iterator[Made]:
        """A plan as the site is to run it; inside, no tick runs, and the query has to come to stand
        there. Raises Refused; SiteError if it is to be `complete`, and its windows can't be."""
        if self._wrapper is None or only_passes_on(plan):
            yield Made((), plan, pasts)
            return
        if (why := self.refusal(plan)) is not None:
            raise Refused(f"{name}: {why}")
        assert self._site is not None
        site, wrapper = self._site, self._wrapper
        streams = {s.name: _plain(s) for s in base_streams(plan)}
        number = site.engine.store.take_numbers(_NUMBERS, 1)
        definition, texts, inputs = QueryDef(name, plan), [], dict[str, str]()
        with site.gate.between_ticks():
            begins = self._begins(streams, pasts)
            known = {s: self._past(s, begins, pasts) for s in streams}
            if complete and gaps_of(plan, begins, {s: p.complete_from for s, p in known.items()}):
                raise SiteError(f"not all is kept that the windows of {name} hold")
            for stream in streams.values():
                want = Wanted()
                want.add(definition, stream)
                inputs[stream.name] = own = publication_name(stream.name, READER, number)
                where, columns = want.profile.where or None, want.profile.columns
                texts.append(publication_text(stream, own, want.reach, where, columns))
                site.engine.readers.keep(own)
            made = part_schema(plan, f"{NAMED}{READER}.{number}")
            first = BEGINNING if begins is None else begins
            options = {"first": str(first), "inputs": json.dumps(inputs), "query": name}
            source = mirror_text(made, "", str(number), options, scheme=ENGINE_FED + wrapper.name)
            since = BEGINNING if made.is_relation else first
            wrapper.add(str(number), part_plan(plan), begins)
            try:
                yield Made(
                    (*texts, source),
                    in_its_place(plan, made),
                    {**pasts, **known, made.name: Past(first, since, first)},
                )
            except BaseException:
                wrapper.drop(str(number))
                for own in inputs.values():
                    site.engine.readers.forget(own)
                raise

    def _begins(self, streams: Mapping[str, StreamDef], pasts: Mapping[str, Past]) -> int | None:
        """As `Registering` finds it for a query over all of them."""
        now = min(self._watermark(s, pasts) for s in streams)
        now = max([now, *(pasts[s].first for s in streams if s in pasts)])
        return now if BEGINNING < now < FOREVER else None

    def _watermark(self, stream: str, pasts: Mapping[str, Past]) -> int:
        assert self._site is not None
        engine = self._site.engine
        if stream in pasts:
            return pasts[stream].watermark
        return engine.watermark(stream) if stream in engine.streams else BEGINNING

    def _past(self, stream: str, begins: int | None, pasts: Mapping[str, Past]) -> Past:
        """All inputs of a query begin at its own first instant, however far each has come."""
        assert self._site is not None
        at = BEGINNING if begins is None else begins
        if stream in pasts:
            return replace(pasts[stream], watermark=at)
        kept = self._site.engine.store.inputs.complete_from(stream, ())
        return Past(at, kept)

    def drop_unused(self) -> None:
        """What was made for queries that are gone."""
        if self._wrapper is None:
            return
        assert self._site is not None
        assert self._publications is not None
        for stream in self._site.catalog.streams():
            if is_engine_fed(stream) and not dependents(stream, self._site.catalog):
                kind = "RELATION" if stream.is_relation else "STREAM"
                self._site.execute(f"DROP {kind} {quoted(stream.name)}")
                for publication in _inputs(stream).values():
                    self._publications.close(publication)
                self._wrapper.drop(_number(stream))

    def told(self, stream: StreamDef) -> dict[str, Any]:
        """Of a stream that the engine feeds: what computes it, and from what."""
        return {"engine": self.engine, "reads": sorted(_inputs(stream))}

    # --- rows

    def source(self, stream: StreamDef) -> Source:
        """What feeds a stream with what the engine says."""
        return MirrorSource(
            stream,
            self.engine or "",
            lambda: (Route(_number(stream)),),
            lambda _: _Reading(self, stream),  # type: ignore[arg-type,return-value]
            lambda: (BEGINNING, None, None),
        )

    def _tell(self) -> None:
        with self._happened:
            self._happened.notify_all()

    def _wait(self) -> None:
        with self._happened:
            self._happened.wait(_LOOK_EVERY_S)


class _Reading:
    """Feeds the engine, and reads what it says, as if it were another node."""

    def __init__(self, computing: Computing, stream: StreamDef) -> None:
        site, publications = computing._site, computing._publications
        if site is None or publications is None or computing._wrapper is None:
            raise Unreachable("this node is about to begin")
        self._site, self._publications, self._wrapper = site, publications, computing._wrapper
        self._query, self._inputs = _number(stream), _inputs(stream)
        self._computing, self._asked = computing, 0.0
        self._ended = False

    def read(self, ticket: Read) -> Iterator[tuple[Range, pl.DataFrame]]:
        since, until = ticket.since, time.monotonic() + _READ_FOR_S
        try:
            while not self._ended and time.monotonic() < until:
                # Who asks from an instant on has written down what was before.
                self._wrapper.forget(self._query, since)
                self._feed()
                is_more = False
                for piece in self._wrapper.publish(self._query, since):
                    yield Range(piece.low, piece.upto), piece.rows
                    since, is_more = piece.upto, True
                if not is_more:
                    self._computing._wait()
        except EngineError as error:
            raise Lost(f"{self._wrapper.name} can't go on: {error}") from None

    def _feed(self) -> None:
        reached = {}
        for stream, publication in self._inputs.items():
            known = self._wrapper.fed(self._query, stream)
            self._site.engine.readers.acknowledge(publication, known)
            try:
                of = _plain(self._site.stream(stream))
                for piece in self._publications.read(publication, known):
                    whole = Piece(piece.low, piece.upto, _whole(of, piece.rows))
                    self._wrapper.feed(self._query, stream, whole)
                    known = piece.upto
            except Unknown:
                raise Unreachable("it is being dropped") from None
            except Forgotten as error:
                raise Lost(f"{stream}: {error}") from None
            reached[stream] = known
        self._demand(reached)

    def _demand(self, reached: Mapping[str, int]) -> None:
        """A stream that holds up the others is asked for a promise, if it is silent."""
        now = time.monotonic()
        if len(reached) < 2 or now - self._asked < _ASK_EVERY_S:
            return
        self._asked = now
        for stream, known in reached.items():
            others = min(r for s, r in reached.items() if s != stream)
            if known < others < FOREVER:
                with contextlib.suppress(Unknown):  # it is being dropped
                    self._publications.promise_all(self._inputs[stream], others)

    def ask(self, request: object) -> None:
        """What is acknowledged is what has been written down, which the next read tells."""

    def interrupt(self) -> None:
        self._ended = True

    def close(self) -> None: ...


def _number(stream: StreamDef) -> str:
    return dict(stream.options)["publication"]


def _inputs(stream: StreamDef) -> dict[str, str]:
    """Publications by stream."""
    found: dict[str, str] = json.loads(dict(stream.options)["inputs"])
    return found


def _plain(stream: StreamDef) -> StreamDef:
    """Without the columns of WITH POSITION."""
    if not stream.is_placed:
        return stream
    return replace(stream, fields=stream.fields[: -len(PLACE)], is_placed=False)


def _whole(stream: StreamDef, rows: pl.DataFrame) -> pl.DataFrame:
    """With all columns: nobody looks at those that are not sent."""
    lacking = [f for f in stream.fields if f.name not in rows.columns]
    return rows.with_columns(pl.lit(None, dtype=dtype(f.type)).alias(f.name) for f in lacking)
