"""What a script comes to among peers. What is refused is refused before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from thalweg.cql import Change, CqlError, Script, compile_script, parse_script, syntax
from thalweg.cql.errors import Mistake, Span
from thalweg.engine.site.book import kind_of
from thalweg.overlay.p2p.query import BadQuery, JoinQuery
from thalweg.plan.catalog import Definition, QueryDef, SinkDef, StreamDef, ViewDef
from thalweg.plan.nodes import Node, Scan, transform
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.fragments.placed_text import placed_text
from thalweg.runtime.peers.definitions import (
    is_peers_stream,
    join_text,
    name_of,
    new_id,
    stream_id,
    stream_text,
)
from thalweg.runtime.peers.joining import INSTEAD, Rates, asked

Readers = Callable[[str], list[str]]  # of a stream's id: queries that stand


@dataclass
class Work:
    """Registers to make, and statements for the site."""

    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    joins: list[tuple[str, JoinQuery]] = field(default_factory=list)  # by the query's name
    made: dict[str, StreamDef] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """What the peers know that statements depend on."""

    asker: str
    readers: Readers
    rates: Rates


def work_of(text: str, name: str, script: Script, known: Known, *, eager: bool = False) -> Work:
    """Raises CqlError."""
    work = Work()
    spans = _spans(text, script)
    for change in script.changes:
        try:
            _take(change, work, known, eager)
        except BadQuery as error:
            wrong = Mistake(str(error), spans.get(change.definition.name, (0, 1)))
            raise CqlError([wrong.diagnostic(text)], text, name) from None
    return work


def check_no_rows(text: str, name: str) -> None:
    """Raises CqlError."""
    for statement in parse_script(text, name=name):
        if isinstance(statement, syntax.Insert | syntax.Delete):
            why = "rows come in with `push`, at any node; peers take no INSERT or DELETE"
            found = Mistake(why, statement.span).diagnostic(text)
            raise CqlError([found], text, name)


def _take(change: Change, work: Work, known: Known, eager: bool) -> None:
    definition = change.definition
    if change.dropped:
        _check_unread(definition, known.readers)
        work.texts.append(f"DROP {kind_of(definition).upper()} {quoted(definition.name)}")
    elif change.replaced is not None:
        raise BadQuery(
            f"peers don't replace a {kind_of(definition)} while it stands: drop it, and make it "
            "again"
        )
    elif isinstance(definition, StreamDef):
        _take_stream(definition, work)
    elif isinstance(definition, QueryDef):
        work.texts += _query_texts(definition, change, work, known, eager)
    else:
        assert isinstance(definition, ViewDef | SinkDef)
        work.texts.append(change.text)


def _take_stream(stream: StreamDef, work: Work) -> None:
    if stream.is_relation:
        what = "table" if stream.is_table else "relation"
        raise BadQuery(f"a {what} has one home, and peers have none" + INSTEAD)
    if stream.source is not None:
        raise BadQuery(
            f"peers are fed by `push`, at any node, and not from {stream.source}" + INSTEAD
        )
    id_ = new_id(stream.name)
    text = stream_text(stream, id_)
    (work.made[stream.name],) = compile_script(text).catalog.streams()
    work.ids.append(id_)
    work.texts.append(text)


def _query_texts(
    query: QueryDef, change: Change, work: Work, known: Known, eager: bool
) -> Iterator[str]:
    plan = _over(query.plan, work.made)
    wanted = QueryDef(query.name, plan, from_now=query.from_now)

    def rate_of(stream: str) -> float | None:
        return None if stream in work.ids else known.rates(stream)  # nobody knows of it yet

    found = asked(wanted, known.asker, rate_of, eager=eager)
    work.joins.append((query.name, found.join))
    yield join_text(found.mirror, found.join)
    (statement,) = parse_script(change.text)
    assert isinstance(statement, syntax.CreateQuery)
    written = change.text[statement.query.span[0] : statement.span[1]]
    yield placed_text(query.name, found.plan, written)


def _over(plan: Node, made: dict[str, StreamDef]) -> Node:
    """Streams that the same script makes are known by what they will be."""

    def scan(node: Node) -> Node:
        if isinstance(node, Scan) and node.stream.name in made:
            return Scan(made[node.stream.name])
        return node

    return transform(plan, scan) if made else plan


def _check_unread(definition: Definition, readers: Readers) -> None:
    if isinstance(definition, StreamDef) and is_peers_stream(definition):
        found = readers(stream_id(definition))
        if found:
            names = ", ".join(sorted(map(name_of, found)))
            raise BadQuery(f"{definition.name} is read by {names}: stop them first")


def _spans(text: str, script: Script) -> dict[str, Span]:
    """Where each definition is written."""
    found: dict[str, Span] = {}
    fresh = iter(script.queries)
    for statement in parse_script(text):
        name = None if statement.name is None else statement.name.text
        if isinstance(statement, syntax.CreateQuery):
            query = next(fresh, None)
            name = name if query is None else query.name
        if name is not None:
            found[name] = statement.span
    return found
