"""What of the past a query looks at, and what of it is missing when it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.plan import nodes
from thalweg.plan.windows import (
    BEGINNING,
    FOREVER,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
)


def looks_at_history(plan: nodes.Node, relation: str) -> bool:
    """Whether what a query says depends on when the relation's rows came and went, not only on what
    is there from its start on: it has a stream inside, or a row that stays once it was there."""
    return any(
        relation in {s.name for s in nodes.base_streams(node)}
        for node in nodes.walk(plan)
        if (isinstance(node, nodes.ToStream) and node is not plan)
        or (isinstance(node, nodes.Aggregate) and not node.keys)
    )


def is_in_stems(plan: nodes.Node) -> bool:
    """Whether a relation's content follows from what is kept of its inputs at any rate: windows
    over base streams that let go of their tuples one by one, and relations."""
    for node in nodes.walk(plan):
        match node:
            case nodes.Window(nodes.Scan(), TimeWindow(length, 1)) if length is not None:
                pass
            case nodes.Window() | nodes.ToStream():
                return False
            case nodes.Aggregate(_, ()):  # its row stays once it was there
                return False
    return True


@dataclass(frozen=True, slots=True)
class Gap:
    """A window that begins with less than it asks for: of its stream, tuples (or `columns` of them)
    before `since` are not at hand. From `until` on the window holds what it would have held anyway;
    FOREVER where no instant can be named. Without a window: a relation that was not kept whole."""

    stream: str
    window: WindowSpec | None
    since: int
    until: int
    columns: tuple[str, ...] = ()


def gaps_of(plan: nodes.Node, started: int | None, horizons: Mapping[str, int]) -> tuple[Gap, ...]:
    """What is missing when a query begins."""
    begin = BEGINNING if started is None else started
    found: list[Gap] = []

    def exact_from(node: nodes.Node) -> int:
        """The instant from which a stream or relation is what it would be with all its past."""
        match node:
            case nodes.Scan(stream):
                since = horizons.get(stream.name, BEGINNING)
                # A relation begins with its content; only what changes later is known one by one.
                return since + 1 if stream.is_relation and since > BEGINNING else since
            case nodes.Window(source, spec):
                since = exact_from(source)
                until = _filled(spec, since)
                if until > begin:
                    late = max(
                        nodes.base_streams(source), key=lambda s: horizons.get(s.name, BEGINNING)
                    )
                    found.append(Gap(late.name, spec, since, until))
                return until
            case _:
                return max(map(exact_from, nodes.inputs_of(node)), default=BEGINNING)

    exact_from(plan)
    return tuple(dict.fromkeys(found))


def _filled(window: WindowSpec, since: int) -> int:
    """The first instant at which nothing from before `since` could still be in the window."""
    if since <= BEGINNING:
        return BEGINNING
    # Of a session nobody knows how far back it goes.
    if isinstance(window, RowsWindow | SessionWindow) or since >= FOREVER:
        return FOREVER
    _, end = window.interval(since - 1)
    return int(end)


def complete_from(gaps: tuple[Gap, ...]) -> int:
    """The instant from which a query says what it would with all the past; FOREVER where none can
    be named."""
    return max((g.until for g in gaps), default=BEGINNING)
