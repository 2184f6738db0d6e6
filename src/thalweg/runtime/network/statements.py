"""A script whose statements belong to several nodes, cut into parts.

Definitions are made at the node that is asked, and streams are then at home there. What is changed,
dropped or written to is changed where it is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from thalweg.cql import Script, parse_script, syntax
from thalweg.cql.parser import parse_each
from thalweg.runtime.network.directory import Defined
from thalweg.runtime.network.placing.placing import Place


@dataclass(frozen=True, slots=True)
class Part:
    """Statements for one node; what stands before them is blank, so that places stay."""

    node: str
    text: str
    query: str | None = None  # the one that it makes, and that is placed


def parts_of(
    text: str,
    script: Script,
    me: str,
    defined: Mapping[str, Defined],
    place: Place,
    placed: Container[str] = (),
) -> list[Part]:
    """Of a text that was compiled against the network's catalog, in order; each `placed` query by
    itself."""
    spans: list[tuple[str, int, int, str | None]] = []
    fresh = iter(script.queries)
    for statement in parse_script(text):
        node, alone = _node_of(statement, me, defined), None
        if isinstance(statement, syntax.CreateQuery) and statement.mode is not syntax.Mode.ALTER:
            query = next(fresh, None)
            if query is not None and query.name.lower() not in defined and node == me:
                node = place(query)
                alone = query.name if query.name in placed else None
        start, end = statement.span
        if spans and alone is None and (spans[-1][0], spans[-1][3]) == (node, None):
            spans[-1] = (node, spans[-1][1], end, None)
        else:
            spans.append((node, start, end, alone))
    names = (q.name for q in script.queries)
    parts = [
        Part(node, named(_blank(text[:start]) + text[start:end], names), alone)
        for node, start, end, alone in spans
    ]
    return parts or [Part(me, text)]


def is_for(node: str, text: str, defined: Mapping[str, Defined]) -> bool:
    """Whether all that can be read of a text belongs to one node."""
    statements, _ = parse_each(text)
    return all(_node_of(s, node, defined) == node for s in statements)


def named(text: str, names: Iterator[str]) -> str:
    """With names for bare queries, which must be the only ones in the whole network."""
    made = ""
    done = 0
    for statement in parse_each(text)[0]:
        if isinstance(statement, syntax.CreateQuery) and statement.mode is not syntax.Mode.ALTER:
            name = next(names, None)
            if statement.name is None and name is not None:
                start = statement.span[0]
                made += f'{text[done:start]}CREATE QUERY "{name}" AS '
                done = start
    return made + text[done:]


def _node_of(statement: syntax.Statement, me: str, defined: Mapping[str, Defined]) -> str:
    target = statement.query if isinstance(statement, syntax.CreateSink) else statement.name
    entry = defined.get(target.text.lower()) if target is not None else None
    return me if entry is None else entry.node


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
