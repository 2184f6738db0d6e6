"""A stream that is fed at another node: its rows come from there, once, in order.

How far a reader has come is an instant, and it is written down with the rows. So a restart, a lost
connection and a publisher that was away are the same case: it asks again from there on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import polars as pl

from thalweg.engine.shared.expressions.translate import is_true
from thalweg.engine.shared.frames import OP, TS, name
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import PLACE, StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.fragments import is_fragment
from thalweg.runtime.data.messages import Acknowledge, Range, Read
from thalweg.runtime.data.profiles import conditions_of
from thalweg.runtime.data.routes import Place, Route, after, decode_place, encode_place

PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)  # then every 2 s
ACKNOWLEDGE_EVERY_S = 0.2
_INSTANT, _POSITION = (f.name for f in PLACE)

Routes = Callable[[], tuple[Route, ...]]
# To a publication's node; raises Unreachable while that is not known.
Connect = Callable[[str], DataClient]
Needs = Callable[[], tuple[int, int | None]]  # from when rows are needed; what is waited for


class Lost(Exception):
    """What would have come can't be known any more."""


class MirrorSource:
    """Feeds a stream from publications, for as long as it stands. `switched` is told when it has
    gone over to another one."""

    def __init__(
        self,
        stream: StreamDef,
        home: str,
        routes: Routes,
        connect: Connect,
        needs: Needs,
        switched: Callable[[str], None] = lambda _: None,
        taking: threading.Lock | None = None,
        unserved: Callable[[], None] = lambda: None,
    ) -> None:
        self._stream, self._home, self._routes = stream, home, routes
        self._connect, self._needs, self._switched = connect, needs, switched
        self._unserved = unserved
        self._taking = taking or threading.Lock()  # who holds it sees how far the mirror has come
        self._acknowledged = 0.0
        self._reading: DataClient | None = None

    def run(self, feed: Feed) -> None:
        failures, since = 0, ""
        while not feed.stopped:
            client = None
            try:
                self._go_over(feed)
                place = self.place(feed)
                self._reading = client = self._connect(place.publication)
                for range_, rows in client.read(Read(place.publication, place.instant)):
                    failures = 0
                    self.take(feed, range_, rows)
                    self._acknowledge(client, place.publication)
                    if self._is_due(feed):
                        break
                    if range_.upto >= FOREVER or feed.wait(0):
                        return
            except Unreachable as error:
                if not failures:
                    since = time.strftime("%H:%M:%S")
                    feed.warn(f"{self._home} can't be reached since {since} ({error})")
                feed.wait(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
            except NotServed as error:
                feed.warn(f"{self._home} does not serve {self._stream.name} any more: {error}")
                self._unserved()
                feed.wait(PAUSES_S[-1])
            except Lost as error:
                feed.warn(str(error))
                feed.wait(PAUSES_S[-1])
            finally:
                self._reading = None
                if client is not None:
                    client.close()

    def look_again(self) -> None:
        """At the routes, which have changed: who is read may be silent for long."""
        if (client := self._reading) is not None:
            client.interrupt()

    def place(self, feed: Feed) -> Place:
        packed = feed.resume_point()
        if packed is None:
            return Place(self._routes()[0].publication, BEGINNING)
        return decode_place(packed)

    # --- rows

    def take(self, feed: Feed, range_: Range, rows: pl.DataFrame) -> None:
        """A batch counts once: what is known is trimmed, and so is what will come by another way; a
        gap is refused."""
        with self._taking:
            self._take(feed, range_, rows)

    def _take(self, feed: Feed, range_: Range, rows: pl.DataFrame) -> None:
        place = self.place(feed)
        known, upto = place.instant, range_.upto
        if not self._stream.is_relation and _INSTANT not in rows.columns:
            rows = _placed(rows)
        if (following := after(self._routes(), place.publication)) is not None:
            upto = min(upto, self._first_of(following))
        if upto <= known:
            return
        if range_.low > known:
            raise Unreachable(f"rows from {known} to {range_.low} are missing")
        # A stream's rows of the past come at a publication's first instant.
        when = TS if self._stream.is_relation or known == BEGINNING else _INSTANT
        is_fresh = rows[when].is_between(known, upto, closed="left")
        fresh = rows if is_fresh.all() else rows.filter(is_fresh)
        promise = upto
        if following is not None and upto >= self._first_of(following):
            promise = following.since
        self._push(feed, fresh, Place(place.publication, upto), promise)
        if upto >= FOREVER:
            feed.finish()

    def _push(self, feed: Feed, rows: pl.DataFrame, place: Place, promise: int) -> None:
        """With a promise that nothing below an instant will follow."""
        resume = encode_place(place)
        ahead = promise if BEGINNING < promise < FOREVER else None
        if self._stream.is_relation:
            feed.push(self._changes(rows), resume=resume, promise=ahead)
        else:
            placed = _in_order(rows)
            tuples, positions = self._tuples(placed), placed[_POSITION]
            feed.push(tuples, positions=positions, resume=resume, promise=ahead)

    # --- from one publication to the next

    def _first_of(self, route: Route) -> int:
        """From where on a route's rows are taken. A relation's content is that of an instant, so
        that this instant belongs to the old way; and what a query says first is all that it holds.
        """
        inside = self._stream.is_relation or is_fragment(route.publication)
        return route.since + 1 if inside and route.since > BEGINNING else route.since

    def _is_due(self, feed: Feed) -> bool:
        place = self.place(feed)
        following = after(self._routes(), place.publication)
        return following is not None and place.instant >= self._first_of(following)

    def _go_over(self, feed: Feed) -> None:
        """If all has been read by the old way, take over what it has left out so far."""
        while self._is_due(feed):
            old = self.place(feed).publication
            route = after(self._routes(), old)
            assert route is not None
            client = self._connect(route.publication)
            try:
                for range_, rows in client.read(Read(route.publication, BEGINNING)):
                    if range_.upto > route.since:
                        with self._taking:
                            if after(self._routes(), old) != route:
                                return  # it was chosen otherwise meanwhile
                            self.adopt(feed, old, route, rows)
                        break
                else:
                    return  # it has not begun to speak yet
            finally:
                client.close()
            self._switched(route.publication)

    def adopt(self, feed: Feed, old: str, route: Route, rows: pl.DataFrame) -> None:
        """The first rows of a publication: those of the past that the old one did not send."""
        known = next(r for r in self._routes() if r.publication == old)
        if not self._stream.is_relation and _INSTANT not in rows.columns:
            rows = _placed(rows)
        missed = rows.filter(~self._is_sent(rows, known))
        # It may have come further by the old way, if that was silent and not gone.
        reached = max(self.place(feed).instant, self._first_of(route))
        place = Place(route.publication, reached)
        if self._stream.is_relation:
            since = route.since  # more than this is promised once all of it is there
            self._push(feed, missed.filter(pl.col(TS) <= since), place, since)
        else:
            past = missed.filter(pl.col(_INSTANT) < route.since).sort(_INSTANT, _POSITION)
            landing = feed.engine.landing
            positions = past[_POSITION]
            landing.adopt(self._stream, self._tuples(past), positions, encode_place(place))
            feed.arrived(0)
        if route.since > BEGINNING:
            feed.heartbeat(place.instant)

    def _is_sent(self, rows: pl.DataFrame, route: Route) -> pl.Series:
        """Which rows a route's publication sends."""
        if route.where is None:
            return pl.repeat(True, rows.height, eager=True)
        conditions = conditions_of(self._stream, route.where)
        assert conditions is not None, "it was one when the publication was opened"
        columns = rows.select(
            pl.col(f.name).alias(name(i)) for i, f in enumerate(self._stream.fields)
        )
        sent = [columns.select(is_true(c).alias("sent"))["sent"] for c in conditions]
        return (
            pl.DataFrame(sent, schema=[str(i) for i in range(len(sent))])
            .select(pl.any_horizontal(pl.all()).fill_null(False))
            .to_series()
        )

    def _tuples(self, rows: pl.DataFrame) -> pl.DataFrame:
        if self._stream.timestamp_index is None:
            rows = rows.with_columns(self._stamp(pl.col(_INSTANT)))
        return rows.drop(TS, OP, _INSTANT, _POSITION)

    def _changes(self, rows: pl.DataFrame) -> pl.DataFrame:
        sign = pl.when(pl.col(OP) > 0).then(pl.lit("+")).otherwise(pl.lit("-")).alias("op")
        stamp = self._stamp(pl.col(TS))
        return rows.with_columns(sign, stamp).drop(TS, OP)

    def _stamp(self, instant: pl.Expr) -> pl.Expr:
        """An instant as the stream's own timestamp."""
        stream = self._stream
        if not stream.timestamp_type.is_integer:
            instant = (instant * stream.resolution_us).cast(pl.Datetime("us"))
        return instant.alias(stream.timestamp)

    def _acknowledge(self, client: DataClient, publication: str) -> None:
        now = time.monotonic()
        if now - self._acknowledged < ACKNOWLEDGE_EVERY_S:
            return
        self._acknowledged = now
        needed_from, held_up_at = self._needs()
        client.ask(Acknowledge(publication, needed_from, held_up_at))


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """What a query says, as a stream: a batch has all rows of its instants, in order."""
    number = pl.int_range(pl.len(), dtype=pl.Int64).over(TS).alias(_POSITION)
    return rows.with_columns(pl.col(TS).alias(_INSTANT), number)


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """By instant and position; mostly they come so."""
    instants, positions = rows[_INSTANT].to_numpy(), rows[_POSITION].to_numpy()
    later = instants[1:] > instants[:-1]
    behind = (instants[1:] == instants[:-1]) & (positions[1:] >= positions[:-1])
    return rows if (later | behind).all() else rows.sort(_INSTANT, _POSITION)
