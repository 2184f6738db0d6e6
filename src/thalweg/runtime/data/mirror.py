"""A stream that is fed at another node: its rows come from there, once, in order.

How far a reader has come is an instant, and it is written down with the rows. So a restart, a lost
connection and a publisher that was away are the same case: it asks again from there on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from thalweg.engine.shared.expressions.translate import is_true
from thalweg.engine.shared.frames import OP, TS, dtype, name
from thalweg.engine.site.delays import Took
from thalweg.engine.sources.feed import Feed, Stopped
from thalweg.plan.catalog import PLACE, StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.fragments import is_fragment
from thalweg.runtime.data.messages import Acknowledge, MovedTo, Range, Read
from thalweg.runtime.data.profiles import Profile, conditions_of
from thalweg.runtime.data.routes import Place, Route, after, decode_place, encode_place

PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)  # then every 2 s
ACKNOWLEDGE_EVERY_S = 0.2
BEGINS_WITHIN_S = 10.0  # before, who has not been heard yet is not called unreachable
_LOOK_EVERY_S = 0.1
UNTIL = "until"  # an option of a mirror: the last instant at which anything may come
_INSTANT, _POSITION = (f.name for f in PLACE)

Routes = Callable[[], tuple[Route, ...]]
# To a publication's node; raises Unreachable while that is not known.
Connect = Callable[[str], DataClient]
# From when on rows are needed; what is waited for; from when on they may be asked for again.
Needs = Callable[[], tuple[int, int | None, int | None]]


class Lost(Exception):
    """What would have come can't be known any more."""


class MirrorSource:
    """Feeds a stream from publications, for as long as it stands. `switched` is told when it has
    gone over to another one; `landed`, the first instant of each batch (None: it is empty), and up
    to where it goes."""

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
        moved: Callable[[str, MovedTo], None] = lambda _, __: None,
        came: Callable[[Took], None] = lambda _: None,
        landed: Callable[[int | None, int], None] = lambda _, __: None,
        over: Callable[[str], None] = lambda _: None,
        node_of: Callable[[str], str] | None = None,
    ) -> None:
        """`over` is told by which publication it was fed when nothing will come any more; `node_of`
        says who has a publication, if not the stream's home."""
        self._stream, self._routes = stream, routes
        self._connect, self._needs, self._switched = connect, needs, switched
        self._unserved, self._moved = unserved, moved
        self._came, self._landed, self._over = came, landed, over
        self._node_of = node_of or (lambda _: home)
        until = dict(stream.options).get(UNTIL)
        self._until = FOREVER if until is None else int(until)
        self._taking = taking or threading.Lock()  # who holds it sees how far the mirror has come
        self._acknowledged = 0.0
        self._hop_s = 0.0  # from the publisher to here: half of the last round trip
        self._reading: DataClient | None = None

    def run(self, feed: Feed) -> None:
        failures, since, is_warned = 0, "", False
        # Nodes start together: one that has not been heard yet need not be away.
        patient_until = time.monotonic() + BEGINS_WITHIN_S
        while not feed.stopped:
            client = None
            try:
                self._go_over(feed)
                place = self.place(feed)
                if place.instant >= FOREVER and self._until < FOREVER:
                    self._over(place.publication)
                    return
                self._reading = client = self._connect(place.publication)
                if is_warned:  # a stream that is quiet would not say that it is back
                    client.greet()
                    feed.recovered()
                    is_warned = False
                for range_, rows in client.read(Read(place.publication, place.instant)):
                    failures, patient_until = 0, 0.0
                    if isinstance(range_, MovedTo):
                        self._moved(place.publication, range_)
                        break
                    if range_.took is not None:
                        self._came(range_.took.after_hop(self._hop_s))
                    if range_.upto > self._until:
                        range_ = Range(range_.low, FOREVER)
                    self.take(feed, range_, rows)
                    self._acknowledge(client, place.publication)
                    if self._is_due(feed):
                        break
                    if range_.upto >= FOREVER and self._until < FOREVER:
                        break
                    if range_.upto >= FOREVER or feed.wait(0):
                        return
            except Unreachable as error:
                since = since if failures else time.strftime("%H:%M:%S")
                if not is_warned and time.monotonic() >= patient_until:
                    is_warned = True
                    feed.warn(f"{self._asked(feed)} can't be reached since {since} ({error})")
                feed.wait(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
            except NotServed as error:
                of = dict(self._stream.options).get("stream", self._stream.name)
                feed.warn(f"{self._asked(feed)} does not serve {of} any more: {error}")
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

    def _asked(self, feed: Feed) -> str:
        """The node that has to speak."""
        return self._node_of(self.place(feed).publication)

    # --- rows

    def take(self, feed: Feed, range_: Range, rows: pl.DataFrame) -> None:
        """A batch counts once: what is known is trimmed, and so is what will come by another way; a
        gap is refused."""
        with self._alone(feed):
            self._take(feed, range_, rows)

    @contextmanager
    def _alone(self, feed: Feed) -> Iterator[None]:
        """Who else has it may wait for this source to stop."""
        while not self._taking.acquire(timeout=_LOOK_EVERY_S):
            if feed.stopped:
                raise Stopped
        try:
            yield
        finally:
            self._taking.release()

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
        self._landed(None if fresh.is_empty() else int(fresh[when].min()), upto)  # type: ignore[arg-type]
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
        if route.continues:
            return route.since
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
            if route.continues:
                if not self._continue(feed, old, route):
                    return
                self._switched(route.publication)
                continue
            client, parts = self._connect(route.publication), []
            try:
                for range_, rows in client.read(Read(route.publication, BEGINNING)):
                    if isinstance(range_, MovedTo):
                        return  # it has gone on already: look there
                    parts.append(rows if route.hands_over else rows.clear())
                    if range_.upto > route.since:
                        with self._alone(feed):
                            if after(self._routes(), old) != route:
                                return  # it was chosen otherwise meanwhile
                            self.adopt(feed, old, route, pl.concat(parts))
                        break
                else:
                    return  # it has not begun to speak yet
            finally:
                client.close()
            self._switched(route.publication)

    def _continue(self, feed: Feed, old: str, route: Route) -> bool:
        """Go on where the old way has ended; whether it was done. It was given away for good, so
        that the new one need not be heard first."""
        with self._alone(feed):
            if after(self._routes(), old) != route:
                return False  # it was chosen otherwise meanwhile
            reached = self.place(feed).instant
            places = () if self._stream.is_relation else (_INSTANT, _POSITION)
            schema = {TS: pl.Int64, OP: pl.Int8, **dict.fromkeys(places, pl.Int64)}
            nothing = pl.DataFrame(schema=schema)
            self._push(feed, nothing, Place(route.publication, reached), reached)
        return True

    def adopt(self, feed: Feed, old: str, route: Route, rows: pl.DataFrame) -> None:
        """The first rows of a publication: what the old one did not send of the past."""
        known = self._profile_of(old)
        # It may have come further by the old way, if that was silent and not gone.
        reached = max(self.place(feed).instant, self._first_of(route))
        place = Place(route.publication, reached)
        if self._stream.is_relation:
            content = _netted(rows.filter(pl.col(TS) <= route.since))
            content = content.with_columns(pl.lit(route.since, dtype=pl.Int64).alias(TS))
            more = self._more(content, known, self._lacks(known, route.profile))
            # More than this is promised once all of it is there.
            self._push(feed, more, place, route.since)
        else:
            if _INSTANT not in rows.columns:
                rows = _placed(rows)
            past = rows.filter(pl.col(_INSTANT) < route.since).sort(_INSTANT, _POSITION)
            self._adopt(feed, past, route, encode_place(place))
            feed.arrived(0)
        if route.since > BEGINNING:
            feed.heartbeat(place.instant)

    def _adopt(self, feed: Feed, past: pl.DataFrame, route: Route, resume: bytes) -> None:
        tuples, positions = self._tuples(past), past[_POSITION]
        if not route.hands_over or route.past is None:  # all of it has come by the old way
            feed.engine.landing.adopt(self._stream, tuples.clear(), positions.clear(), resume)
            return
        # Not only those that the old way did not send: of older tuples it may lack more.
        columns = [f.name for f in self._stream.fields if route.profile.sends(f.name)]
        engine: Any = feed.engine
        complete = route.past.complete_from
        while not engine.adopt(self._stream, columns, tuples, positions, complete, resume):
            if feed.wait(_LOOK_EVERY_S):
                raise Stopped

    def _profile_of(self, publication: str) -> Profile:
        return next(r for r in self._routes() if r.publication == publication).profile

    def _lacks(self, known: Profile, wider: Profile) -> list[str]:
        """The columns that came by the new way and not by the old one."""
        fields = [f.name for f in self._stream.fields]
        return [c for c in fields if wider.sends(c) and not known.sends(c)]

    def _more(self, content: pl.DataFrame, known: Profile, lacks: list[str]) -> pl.DataFrame:
        """What makes a relation of a content: rows that were not sent come, and those that came
        without some columns go, and come again with them."""
        is_sent = self._is_sent(content, known)
        if not lacks:
            return content.filter(~is_sent)
        without = (pl.lit(None, dtype=content.schema[c]).alias(c) for c in lacks)
        taken_back = content.filter(is_sent).with_columns(-pl.col(OP), *without)
        return pl.concat([taken_back, content])

    def _is_sent(self, rows: pl.DataFrame, profile: Profile) -> pl.Series:
        """Which rows are sent by a profile."""
        if profile.where is None:
            return pl.repeat(True, rows.height, eager=True)
        conditions = conditions_of(self._stream, profile.where)
        assert conditions is not None, "it was one when the publication was opened"
        columns = rows.select(
            pl.col(f.name).alias(name(i))
            for i, f in enumerate(self._stream.fields)
            if f.name in rows.columns
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
        return self._whole(rows.drop(TS, OP, _INSTANT, _POSITION))

    def _changes(self, rows: pl.DataFrame) -> pl.DataFrame:
        sign = pl.when(pl.col(OP) > 0).then(pl.lit("+")).otherwise(pl.lit("-")).alias("op")
        stamp = self._stamp(pl.col(TS))
        return self._whole(rows.with_columns(sign, stamp).drop(TS, OP))

    def _whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With all columns: nobody looks at those that are not sent."""
        unsent = [f for f in self._stream.fields if f.name not in rows.columns]
        return rows.with_columns(pl.lit(None, dtype=dtype(f.type)).alias(f.name) for f in unsent)

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
        client.ask(Acknowledge(publication, *self._needs()))
        self._hop_s = (time.monotonic() - now) / 2


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """What a query says, as a stream: a batch has all rows of its instants, in order."""
    number = pl.int_range(pl.len(), dtype=pl.Int64).over(TS).alias(_POSITION)
    return rows.with_columns(pl.col(TS).alias(_INSTANT), number)


def _netted(changes: pl.DataFrame) -> pl.DataFrame:
    """What is left of a relation's changes: its content."""
    if (changes[OP] > 0).all():
        return changes
    columns = [c for c in changes.columns if c not in (TS, OP)]
    left = changes.group_by(columns, maintain_order=True).agg(pl.col(OP).sum(), pl.col(TS).max())
    rows = left.select(pl.int_range(pl.len()).repeat_by(OP).explode())
    once = left[rows.to_series().drop_nulls()].with_columns(pl.lit(1, dtype=pl.Int8).alias(OP))
    return once.select(changes.columns)


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """By instant and position; mostly they come so."""
    instants, positions = rows[_INSTANT].to_numpy(), rows[_POSITION].to_numpy()
    later = instants[1:] > instants[:-1]
    behind = (instants[1:] == instants[:-1]) & (positions[1:] >= positions[:-1])
    return rows if (later | behind).all() else rows.sort(_INSTANT, _POSITION)
