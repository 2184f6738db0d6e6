"""RJoin: queries are rewritten by the tuples that they meet, and wander after their values.

Source: DHTJoin (seed 003) 2.2.3.1, Algorithms 3 to 5, after Idreos, Liarou and Koubarakis (ICDE
2008). The rival of `index`: no query is spread. A tuple of k attributes is indexed 2k times, by the
name and by the value of each attribute, whether or not anybody wants it. A query waits at the owner
of one of its attributes; each tuple that comes there rewrites it into one with fewer joins, which
goes on to the owner of the value that it now asks for, and waits there in turn.

Messages: MultiSend carries many messages to many keys in one walk along the ring (keys in order;
each node takes its own and passes the rest on). Rate and RateIs ask an owner how many tuples came
to it lately (RIC): a query waits, first and later, where the fewest come. Answer goes to who asked.

Promise, as the source's: at once, and complete while nobody fails. Nothing is repeated or rebuilt.
Corrections: the rewritten query keeps its windows, so stored tuples and queries expire (the source
leaves windows out); a stored tuple and a stored query meet once, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.p2p.query import JoinQuery, compare, from_text, to_text
from thalweg.overlay.p2p.tuples import Parts, Tup, Value, key_text
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Message,
    Receive,
    Send,
)
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import id_of

ATTRIBUTE, VALUE = "attribute", "value"
_RATE_WINDOW_US = 10_000_000
_SLACK = 30_000  # instants that a walk along the ring may take


class NewTuple(msgspec.Struct, frozen=True, tag=True):
    tup: Tup
    key: str
    level: str


class Eval(msgspec.Struct, frozen=True, tag=True):
    """A query that is (partly) rewritten: which leaves have their tuples, and which comes next."""

    query: str  # as text: it travels whole
    chosen: tuple[tuple[int, Tup], ...]
    leaf: int  # that it waits for
    key: str
    inserted_ts: int
    rates: tuple[tuple[str, int], ...] = ()  # RIC: tuples by attribute, when it was submitted


Body = NewTuple | Eval


class MultiSend(Message, frozen=True):
    """Bodies with their places on the ring, in ring order from the sender on."""

    bodies: tuple[tuple[int, Body], ...]


class Rate(Message, frozen=True):
    token: int
    key: str
    hops: int
    origin: Address


class RateIs(Message, frozen=True):
    token: int
    key: str
    count: int


class Answer(Message, frozen=True):
    query: str
    parts: Parts


class SubmitRJoin(msgspec.Struct, frozen=True):
    query: JoinQuery


class InsertTuple(msgspec.Struct, frozen=True):
    tup: Tup


class RJoinResult(msgspec.Struct, frozen=True):
    query: str
    parts: Parts
    row: tuple[Value, ...]


@dataclass(slots=True)
class _Waiting:
    """A query at its submitter, until it is known where it should wait first."""

    query: JoinQuery
    inserted_ts: int
    counts: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)  # key -> leaf


class RJoin:
    name = "rjoin"
    messages: ClassVar[tuple[type[Message], ...]] = (MultiSend, Rate, RateIs, Answer)
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, chord: Chord, instant_us: int = 1_000) -> None:
        self._chord = chord
        self._instant_us = instant_us
        self._queries: dict[str, list[Eval]] = {}  # by the key that they wait for
        self._tuples: dict[str, list[Tup]] = {}  # indexed by value
        self._seen: dict[str, list[int]] = {}  # when tuples came, by attribute: for RIC
        self._asked: dict[int, _Waiting] = {}
        self._parsed: dict[str, JoinQuery] = {}
        self._tokens = 0
        self._address = ""
        self.longest_window = 0

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if type(event) is Receive:
            return self._receive(now_us, event.sender, event.message)
        match event:
            case Call(InsertTuple(tup)):
                return self._insert(now_us, tup)
            case Call(SubmitRJoin(query)):
                return self._submit(now_us, query)
            case Init(address):
                self._address = address
        return []

    # --- Algorithm 3: Insert_Tuple ---

    def _insert(self, now_us: int, tup: Tup) -> list[Effect]:
        bodies: list[Body] = []
        for column, value in enumerate(tup.values):
            bodies.append(NewTuple(tup, f"{tup.stream}+{column}", ATTRIBUTE))
            bodies.append(NewTuple(tup, _value_key(tup.stream, column, value), VALUE))
        return self._multi_send(now_us, bodies)

    def _multi_send(self, now_us: int, bodies: Sequence[Body]) -> list[Effect]:
        """Each to the owner of its key, in one walk: the nearest first, the rest goes on."""
        if not bodies:
            return []
        own = self._chord.table.own_id
        placed = sorted(
            ((id_of(b.key), b) for b in bodies), key=lambda e: (distance(own, e[0]), e[1].key)
        )
        return self._walk(now_us, placed)

    def _walk(self, now_us: int, placed: Sequence[tuple[int, Body]]) -> list[Effect]:
        effects: list[Effect] = []
        rest: list[tuple[int, Body]] = []
        for place, body in placed:
            if self._chord.next_hop(place) is None:
                effects += self._take(now_us, body)
            else:
                rest.append((place, body))
        if rest:
            hop = self._chord.next_hop(rest[0][0])
            assert hop is not None
            effects.append(Send(hop, MultiSend(tuple(rest))))
        return effects

    def _take(self, now_us: int, body: Body) -> list[Effect]:
        if isinstance(body, NewTuple):
            return self._tuple_came(now_us, body)
        return self._query_came(now_us, body)

    # --- Algorithm 4: Process_indexedTuple ---

    def _tuple_came(self, now_us: int, body: NewTuple) -> list[Effect]:
        tup = body.tup
        now = now_us // self._instant_us
        effects: list[Effect] = []
        onward: list[Body] = []
        waiting = self._queries.get(body.key, [])
        if body.level == VALUE:
            waiting = [e for e in waiting if not self._has_expired(e, now)]
            if waiting or body.key in self._queries:
                self._queries[body.key] = waiting
        for eval_ in waiting:
            self._rewrite(eval_, tup, onward, effects)
        if body.level == VALUE:
            stored = self._tuples.setdefault(body.key, [])
            limit = now - self.longest_window - _SLACK
            while stored and stored[0].ts < limit:
                stored.pop(0)
            stored.append(tup)
        else:
            self._seen.setdefault(body.key, []).append(now_us)
        return effects + self._multi_send(now_us, onward)

    # --- Algorithm 5: Process_Query ---

    def _query_came(self, now_us: int, body: Eval) -> list[Effect]:
        query = self._query(body.query)
        self.longest_window = max(self.longest_window, query.longest_window)
        self._queries.setdefault(body.key, []).append(body)
        effects: list[Effect] = []
        onward: list[Body] = []
        if body.chosen:  # at the value level tuples are stored
            for tup in self._tuples.get(body.key, ()):
                self._rewrite(body, tup, onward, effects)
        return effects + self._multi_send(now_us, onward)

    def _query(self, text: str) -> JoinQuery:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = from_text(text)
        return found

    def _rewrite(self, eval_: Eval, tup: Tup, onward: list[Body], effects: list[Effect]) -> None:
        """One join fewer, if the tuple fits; an answer, if none is left."""
        query = self._query(eval_.query)
        if tup.ts < eval_.inserted_ts or not query.leaves[eval_.leaf].wants(tup.values):
            return
        chosen = {**dict(eval_.chosen), eval_.leaf: tup}
        if not _agrees(query, chosen):
            return
        order = query.leaves_of(len(query.joins) - 1)
        if len(chosen) == len(order):
            parts = tuple([chosen[i] for i in order])
            mine = query.asker == self._address
            result = RJoinResult(query.id, parts, ())
            effects.append(Deliver(result) if mine else Send(query.asker, Answer(query.id, parts)))
            return
        leaf, key = next_key(query, chosen, dict(eval_.rates))
        listed = tuple(sorted(chosen.items()))
        onward.append(Eval(eval_.query, listed, leaf, key, eval_.inserted_ts, eval_.rates))

    def _has_expired(self, eval_: Eval, now: int) -> bool:
        """No tuple that is still to come can fit those that the query has met."""
        query = self._query(eval_.query)
        ends = [query.leaves[i].end(t.ts) for i, t in eval_.chosen]
        return bool(ends) and min(ends) < now - _SLACK

    # --- where a query waits first: RIC ---

    def _submit(self, now_us: int, query: JoinQuery) -> list[Effect]:
        """It may wait at any attribute that a join uses: where the fewest tuples come."""
        self._tokens += 1
        waiting = self._asked[self._tokens] = _Waiting(query, now_us // self._instant_us)
        for step in query.joins:
            for i in step.inputs:
                key = f"{query.leaves[i.leaf].stream}+{i.column}"
                waiting.wanted.setdefault(key, i.leaf)
        effects: list[Effect] = []
        for key in waiting.wanted:
            effects += self._rate(now_us, Rate(self._tokens, key, 0, self._address))
        return effects

    def _rate(self, now_us: int, ask: Rate) -> list[Effect]:
        hop = self._chord.next_hop(id_of(ask.key))
        if hop is not None:
            return [Send(hop, Rate(ask.token, ask.key, ask.hops + 1, ask.origin))]
        since_us = now_us - _RATE_WINDOW_US
        recent = [at for at in self._seen.get(ask.key, ()) if at >= since_us]
        if ask.key in self._seen:
            self._seen[ask.key] = recent
        answer = RateIs(ask.token, ask.key, len(recent))
        if ask.origin == self._address:
            return self._rate_is(now_us, answer)
        return [Send(ask.origin, answer)]

    def _rate_is(self, now_us: int, answer: RateIs) -> list[Effect]:
        waiting = self._asked.get(answer.token)
        if waiting is None:
            return []
        waiting.counts[answer.key] = answer.count
        if len(waiting.counts) < len(waiting.wanted):
            return []
        del self._asked[answer.token]
        key = min(waiting.wanted, key=lambda k: (waiting.counts[k], k))
        rates = tuple(sorted(waiting.counts.items()))
        text, leaf = to_text(waiting.query), waiting.wanted[key]
        body = Eval(text, (), leaf, key, waiting.inserted_ts, rates)
        return self._multi_send(now_us, [body])

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case MultiSend(bodies):
                return self._walk(now_us, bodies)
            case Rate():
                return self._rate(now_us, message)
            case RateIs():
                return self._rate_is(now_us, message)
            case Answer(query, parts):
                return [Deliver(RJoinResult(query, parts, ()))]
        return []


def _value_key(stream: str, column: int, value: Value) -> str:
    return f"{stream}+{column}+{key_text(value)}"


def next_key(query: JoinQuery, chosen: dict[int, Tup], rates: dict[str, int]) -> tuple[int, str]:
    """A leaf without a tuple, by a value that a chosen one says: the one with the fewest tuples."""
    found = []
    for join in query.joins:
        values = [chosen[i.leaf].values[i.column] for i in join.inputs if i.leaf in chosen]
        for i in join.inputs:
            if values and i.leaf not in chosen:
                stream = query.leaves[i.leaf].stream
                rate = rates.get(f"{stream}+{i.column}", 0)
                found.append((rate, i.leaf, _value_key(stream, i.column, values[0])))
    _, leaf, key = min(found)
    return leaf, key


def _agrees(query: JoinQuery, chosen: dict[int, Tup]) -> bool:
    for join in query.joins:
        values = [chosen[i.leaf].values[i.column] for i in join.inputs if i.leaf in chosen]
        if any(not compare(values[0], "=", v) for v in values[1:]):
            return False
    for b in query.between:
        if b.left in chosen and b.right in chosen:
            left = chosen[b.left].values[b.left_column]
            if not compare(left, b.op, chosen[b.right].values[b.right_column]):
                return False
    start = max(t.ts for t in chosen.values())
    return all(start < query.leaves[i].end(t.ts) for i, t in chosen.items())
