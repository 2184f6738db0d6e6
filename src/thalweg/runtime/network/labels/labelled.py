"""Queries with tolerances over streams of other nodes: they read the rows that are due for them.

Their home starts the classes, and numbers them (`labelling.py`). A query that can't
be said so, that wants the unfiltered stream as well, or finds it here already, gets the unfiltered
stream, and decides by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from thalweg.cql import Script, syntax
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import Node, Scan, Tolerant, walk
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.messages import Label, LabelledAs
from thalweg.runtime.data.profiles import profile_of
from thalweg.runtime.data.statements import reach_of
from thalweg.runtime.network.definitions import stream_of
from thalweg.runtime.network.directory import STREAM, Defined
from thalweg.runtime.network.fragments.placed_text import placed_text
from thalweg.runtime.network.labels.labels import (
    can_be_labelled,
    due_name,
    due_stream,
    fed_entry,
    labelled_classes,
    with_labels,
)
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.rewriting import created_queries

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A script as this node runs it: its text, its queries by name as far as they are others, and
    the streams of due rows that they read."""

    text: str
    queries: dict[str, QueryDef] = field(default_factory=dict)
    entries: dict[str, Defined] = field(default_factory=dict)


class Labels:
    """Of the node `me`."""

    def __init__(self, me: str, site: Site, mirrors: Mirrors) -> None:
        self._me, self._site, self._mirrors = me, site, mirrors

    def script(self, script: Script, text: str, elsewhere: Mapping[str, Defined]) -> Labelled:
        made = Labelled(text)
        if not any(isinstance(n, Tolerant) for q in script.queries for n in walk(q.plan)):
            return made
        parts: list[str] = []
        done = 0
        for statement, query in created_queries(script, text):
            is_new = statement.mode in (syntax.Mode.NEW, syntax.Mode.IF_NOT_EXISTS)
            if query.from_now or not is_new:
                continue
            plan, entries = self.plan(query.plan, elsewhere)
            if not entries:
                continue
            start, end = statement.span
            written = text[statement.query.span[0] : end]
            parts += text[done:start], placed_text(query.name, plan, written)
            done = end
            made.queries[query.name] = QueryDef(query.name, plan)
            made.entries.update(entries)
        return Labelled("".join(parts) + text[done:], made.queries, made.entries)

    def plan(self, plan: Node, elsewhere: Mapping[str, Defined]) -> tuple[Node, dict[str, Defined]]:
        """Over rows that are due, as far as can be; and the streams of these."""
        by_stream: dict[str, list[Tolerant]] = {}
        for node in labelled_classes(plan):
            by_stream.setdefault(node.stream.name, []).append(node)
        labels: dict[Tolerant, tuple[StreamDef, int]] = {}
        entries: dict[str, Defined] = {}
        for name, classes in by_stream.items():
            base = elsewhere.get(name.lower())
            if base is None or base.kind != STREAM or base.is_renamed:
                continue
            if not can_be_labelled(classes[0].stream) or self._has_unfiltered(plan, classes):
                continue
            numbers = self._asked(plan, base, classes)
            if numbers is None:
                continue
            due = due_name(name)
            here = self._site.catalog.find(due)
            made = here if isinstance(here, StreamDef) else due_stream(classes[0].stream)
            entry = fed_entry(elsewhere, due)
            assert entry is not None
            entries[due.lower()] = entry
            labels |= {n: (made, c) for n, c in zip(classes, numbers, strict=True)}
        return with_labels(plan, labels) if labels else plan, entries

    def _has_unfiltered(self, plan: Node, classes: Iterable[Tolerant]) -> bool:
        """Whether all rows of a stream come here in any case."""
        (stream,) = {c.stream for c in classes}
        labelled = with_labels(plan, _dummies(classes))
        if any(isinstance(n, Scan) and n.stream.name == stream.name for n in walk(labelled)):
            return True
        here = self._site.catalog.find(stream.name)
        if not isinstance(here, StreamDef) or not is_mirror(here):
            return False
        return self._mirrors.routes(here)[-1].profile.covers(here, profile_of(plan, here))

    def _asked(self, plan: Node, base: Defined, classes: list[Tolerant]) -> tuple[int, ...] | None:
        """The numbers of classes, as their home has them; None if it has none."""
        stream = stream_of(base)
        reach = reach_of(with_labels(plan, _dummies(classes)), due_name(stream.name))
        columns = profile_of(plan, classes[0].stream).columns or ()
        packed = tuple(encode_plan(c) for c in classes)
        try:
            client = self._mirrors.connect(base.node)
            try:
                answer = client.ask(Label(base.name, self._me, packed, reach, columns))
            finally:
                client.close()
        except NotServed as error:
            log.info("%s comes unfiltered: %s", base.name, error)
            return None
        except Unreachable:
            return None  # who opens the stream says so
        assert isinstance(answer, LabelledAs)
        return answer.numbers


def _dummies(classes: Iterable[Tolerant]) -> dict[Tolerant, tuple[StreamDef, int]]:
    """As if they were labelled."""
    found = list(classes)
    due = due_stream(found[0].stream)
    return {c: (due, number) for number, c in enumerate(found)}
