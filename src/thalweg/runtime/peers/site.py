"""A site among peers: streams are all the network's, and what is pushed goes to the peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.ingest.normalise import ROW, normalise
from thalweg.engine.shared.ingest.side_files import lines_of, set_aside
from thalweg.engine.shared.state.names import LATE, REJECTED
from thalweg.engine.site import Busy, Site, Unknown
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.status import QueryStatus, StreamStatus, instant_text
from thalweg.overlay.p2p.index_messages import PromiseUpto, Publish
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.source import Source
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.types import DOUBLE
from thalweg.plan.windows import FOREVER
from thalweg.runtime.data.plain_values import rows_of
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.peers.definitions import (
    is_join,
    is_peers_stream,
    join_of,
    name_of,
    stream_id,
    time_of,
)
from thalweg.runtime.peers.lacking import lacking, lacking_text
from thalweg.runtime.peers.peers import Peers
from thalweg.runtime.peers.telling import words

AT_ONCE = 200  # tuples of one step: others are attended to between two of them
MOST_OPEN = 20_000  # tuples of this node that have not taken effect, before pushes have to wait
RETRY_AFTER_S = 1.0
LOOK_WITHIN_S = 0.5

Streams = Callable[[], dict[str, StreamDef]]


class PeerSite(Site):
    """`join` gives it its place in the network, before anybody asks."""

    def join(
        self,
        peers: Peers,
        streams: Streams,
        execute: Callable[[str], object],
        explained: Callable[[QueryDef], Explanation],
        would: Callable[[str], Explanation],
        named: Callable[[str], str],
    ) -> None:
        self.peers, self._streams, self._execute = peers, streams, execute
        self._explained, self._would, self._named = explained, would, named

    def stream(self, name: str) -> StreamDef:
        """Anywhere in the network."""
        known = self._streams()
        found = known.get(name.lower())
        if found is None:
            raise Unknown("stream", name, [s.name for s in known.values()])
        return found

    def stop(self, query: str) -> None:
        self._execute(f"DROP QUERY {quoted(self.query(query).name)}")

    def drop_stream(self, stream: str) -> None:
        self._execute(f"DROP STREAM {quoted(self.stream(stream).name)}")

    def explain(self, what: str, form: str = "logical") -> Explanation:
        found = self.catalog.find(what)
        if form == "logical" and isinstance(found, QueryDef):
            return self._explained(found)
        if form == "logical" and found is None:
            return self._would(what)
        return super().explain(what, form)

    # --- input

    def push(
        self,
        stream: str,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        """This node is a source of the stream from now on. Durable, at as many nodes as there are
        to be copies, when it returns."""
        found = self.stream(stream)
        typed = normalise(found, batch)
        rows = typed.rows
        is_wrong = rows[TS] < 0
        for place, field in enumerate(found.fields):
            if field.type == DOUBLE:
                is_wrong |= rows[f"c{place}"].is_nan().fill_null(False)
        reasons = dict(zip(typed.rejected[ROW], typed.rejected["_reason"], strict=True))
        if is_wrong.any():
            why = "peers count instants from 0 on, and compare no NaN"
            reasons |= dict.fromkeys(rows.filter(is_wrong)[ROW], why)
            rows = rows.filter(~is_wrong)
        late, repeated = self._publish(found, rows, partition, batch_id)
        if not repeated:
            self._aside(found, batch, REJECTED, sorted(reasons), reasons)
            self._aside(found, batch, LATE, late, {})
        first = min(reasons, default=None)
        return Receipt(
            0 if repeated else rows.height - len(late),
            len(late),
            0 if repeated else len(reasons),
            repeated,
            None if first is None or repeated else reasons[first],
            None if repeated else first,
        )

    def _publish(
        self, stream: StreamDef, rows: pl.DataFrame, partition: int, batch_id: str | None
    ) -> tuple[list[int], bool]:
        """The places of rows that are late, and whether all was there before."""
        source = self.peers.source(stream_id(stream), partition, time_of(stream))
        values = rows_of(rows, [f.type for f in stream.fields])
        stamps, places = rows[TS].to_list(), rows[ROW].to_list()
        late: list[int] = []
        repeated = []
        for first in range(0, max(len(values), 1), AT_ONCE):
            if self.peers.backlog() > MOST_OPEN:
                raise Busy(MOST_OPEN, RETRY_AFTER_S)
            piece = slice(first, first + AT_ONCE)
            batch = "" if batch_id is None else f"{batch_id}/{first}"
            request = Publish(
                source,
                tuple(values[piece]),
                stamps=tuple(stamps[piece]),
                batch=batch,
            )
            done = self.peers.publish(request)
            late += [places[first + i] for i in done.late]
            repeated.append(done.repeated)
        self.peers.await_copies(source, done.upto)
        return late, all(repeated)

    def _aside(
        self,
        stream: StreamDef,
        batch: pl.DataFrame,
        kind: str,
        rows: list[int],
        reasons: dict[int, str],
    ) -> None:
        if rows:
            with self.engine.store.transaction():
                lines = lines_of(batch, rows, reasons)
                set_aside(self.engine.store, stream.name, kind, lines)

    def heartbeat(self, stream: str, instant: int, *, partition: int = 0) -> None:
        found = self.stream(stream)
        source = self.peers.source(stream_id(found), partition, time_of(found))
        self.peers.publish(PromiseUpto(source, instant))

    def finish(self, stream: str) -> None:
        """Nothing more comes from this node; the stream ends with its last source."""
        id_ = stream_id(self.stream(stream))
        for source in self.peers.sources():
            if source.stream == id_ and not source.is_heir:
                self.peers.publish(PromiseUpto(source.id, FOREVER))

    # --- what is going on

    def queries(self) -> list[QueryStatus]:
        """With the streams that peers join, and whether rows come before they are final."""
        return [self._told(q) for q in super().queries()]

    def _told(self, query: QueryStatus) -> QueryStatus:
        found = [s for s in self.catalog.streams() if is_join(s) and s.name in query.streams]
        if not found:
            return query
        joins = [join_of(mirror) for mirror in found]
        streams = [name_of(s) for j in joins for s in j.streams]
        kind = "eager" if any(j.eager for j in joins) else query.kind
        error = query.error or lacking_text(self._lacking(joins), self._moment)
        return replace(query, streams=streams, kind=kind, error=error)

    def lacking(self, query: str) -> dict[str, Any]:
        """How complete its results are, by an estimate, and which sources were lost on the way."""
        found = self.catalog.find(query)
        if not isinstance(found, QueryDef):
            return {}  # dropped while somebody listens
        return self._lacking([join_of(m) for m in self.joins_of(found)])

    def joins_of(self, query: QueryDef) -> list[StreamDef]:
        own = (self.catalog.find(s.name) for s in base_streams(query.plan))
        return [s for s in own if isinstance(s, StreamDef) and is_join(s)]

    def _moment(self, instant: int, stream: str) -> str:
        return words(instant, stream, self._streams())

    def _lacking(self, joins: list[JoinQuery]) -> dict[str, Any]:
        return lacking(joins, self.peers, self._named)

    def streams(self) -> list[StreamStatus]:
        """Those that are defined here, or that this node is a source of."""
        sources: dict[str, list[Source]] = {}
        for source in self.peers.sources():
            sources.setdefault(source.stream, []).append(source)
        found = []
        for stream in self._streams().values():
            id_ = stream_id(stream)
            here = self.catalog.find(stream.name)
            if id_ in sources or (isinstance(here, StreamDef) and is_peers_stream(here)):
                found.append(self._status(stream, sources.get(id_, [])))
        return found

    def _status(self, stream: StreamDef, sources: list[Source]) -> StreamStatus:
        aside = self.engine.store.inputs.all_set_aside()
        told = self.peers.look(stream_id(stream), LOOK_WITHIN_S)
        frontier = None if told is None else told.frontier
        state = "waiting"
        if frontier is not None and frontier >= FOREVER:
            state = "ended"
        elif frontier is not None and told is not None and told.sources:
            state = "flowing"
        return StreamStatus(
            name=stream.name,
            kind="stream",
            columns=[(f.name, str(f.type)) for f in stream.fields],
            timestamp=stream.timestamp,
            source=None if told is None else f"peers ({len(told.sources)})",
            state=state,
            arrived=sum(s.arrived for s in sources),
            backlog=sum(len(s.busy) for s in sources),
            late=aside.get((stream.name, LATE), 0),
            rejected=aside.get((stream.name, REJECTED), 0),
            watermark=instant_text(
                frontier or None, stream.resolution_us, stream.timestamp_type.is_temporal
            ),
            error=None,
            resolution_us=stream.resolution_us,
            is_temporal=stream.timestamp_type.is_temporal,
        )
