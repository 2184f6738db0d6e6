"""Parking: a query that makes every tick fail is set aside, and the others go on.

A tick is a function of its record, and the record names the queries. So a query is parked by
writing the same tick down again without it, in one transaction with the note that it is parked.
Which one it is, is found by rehearsing the tick for halves, and halves of the halves that fail.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.site.book import Book, Parked

log = logging.getLogger(__name__)

# Not a query's fault: disk, memory, Spark itself. Then nobody is parked; the tick is retried.
_SURROUNDINGS = (
    "OSError",
    "PermissionError",
    "FileNotFoundError",
    "MemoryError",
    "OutOfMemoryError",
    "No space left",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "Connection refused",
    "Answer from Java side is empty",
    "Py4JNetworkError",
)


def is_environment_error(error: BaseException) -> bool:
    """Whether an error comes from what is around the engine rather than from a query."""
    if isinstance(error, (OSError, MemoryError)):
        return True
    # From Spark's workers, errors come as text.
    text = f"{type(error).__name__}: {error}"
    return any(sign in text for sign in _SURROUNDINGS)


def last_line(error: BaseException) -> str:
    """The error in one line; of a traceback out of a Spark worker, its last line."""
    text = str(error)
    if "Traceback (most recent call last)" in text:
        inside = text.split("Traceback (most recent call last)")[-1].splitlines()
        said = [line for line in inside[1:] if line and not line.startswith((" ", "\t"))]
        if said:
            return said[0]
    if isinstance(error, ConnectionRefusedError) or type(error).__name__ == "Py4JNetworkError":
        return "Spark is gone: start the service again, it goes on where it was"
    first = text.strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}".rstrip(": ")


def culprits(names: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """Those that fail on their own, in about k·log n rehearsals for k of n."""
    if not names or not fails(names):
        return []
    if len(names) == 1:
        return list(names)
    half = len(names) // 2
    return culprits(names[:half], fails) + culprits(names[half:], fails)


def park_culprits(engine: SharedEngine, book: Book) -> dict[str, str]:
    """Find and park the queries for which the tick fails: name -> error.

    A tick that is not written down yet has failed in planning, and so only that is rehearsed.
    """
    number, cut = engine.store.tick()[0], engine.ticks.pending()
    errors: dict[str, str] = {}

    def fails(names: Sequence[str]) -> bool:
        try:
            if cut is None:
                runs = engine.roster.runs
                engine.ticks.plan_for({n: runs[n] for n in names})
            else:
                engine.rehearse(cut, names)
        except FAILURES as error:
            if is_environment_error(error):
                raise
            if len(names) == 1:
                errors[names[0]] = last_line(error)
            return True
        return False

    with engine.exclusive():
        runs = engine.roster.runs
        found = culprits([n for n in (runs if cut is None else cut.queries) if n in runs], fails)
        if not found:
            return {}
        # A group stands and falls with its members: none of them can be computed by itself here.
        parked = {
            member: errors[name]
            for name in found
            for member in ([m.name for m in engine.roster.members_of(name)] or [name])
            if member in engine.roster.queries
        }
        with engine.store.transaction():
            for member, error in parked.items():
                book.park(member, number, error)
            if cut is not None:
                rest = {n: q for n, q in runs.items() if n not in found}
                record = msgspec.msgpack.encode(_without(cut, found, rest))
                engine.store.write_tick(number, record)
            engine.set_aside(parked, [n for n in found if n in engine.roster.groups])
    for member, error in parked.items():
        log.error("query %s is parked: %s", member, error)
    return parked


UNREADABLE = "this version can't run it: "


def park_unreadable(engine: SharedEngine, book: Book, reasons: Mapping[str, str]) -> None:
    """Park queries that could not be made of their texts at the start."""
    if not reasons:
        return
    store, roster = engine.store, engine.roster
    with store.transaction():
        for name, reason in reasons.items():
            book.park(name, store.last_committed(), UNREADABLE + reason)
        for group in sorted({*store.runs.groups_of(reasons).values()} & roster.groups.keys()):
            if roster.members_of(group):
                engine.grouping.member_left(group)
            else:
                engine.set_aside((), [group])
        cut = engine.ticks.pending()
        if cut is not None:
            gone = [n for n in cut.queries if n not in roster.runs]
            record = msgspec.msgpack.encode(_without(cut, gone, roster.runs))
            store.write_tick(cut.number, record)


def parked_now(engine: SharedEngine, book: Book) -> dict[str, Parked]:
    """The queries that are parked, at a start. One that another version could not run, and without
    which no tick has run since, is none of them any more: it may be tried again."""
    store = engine.store
    parked = book.parked()
    if store.tick()[1] is None:
        tick, groups = store.tick()[0], store.runs.groups_of(parked)
        again = [
            name
            for name, of in parked.items()
            if of.error.startswith(UNREADABLE)
            and of.tick == tick
            and (name not in groups or groups[name] in engine.roster.groups)
        ]
        book.unpark(again)
        parked = {n: p for n, p in parked.items() if n not in again}
    return parked


def _without(cut: Cut, parked: list[str], rest: dict[str, Run]) -> Cut:
    """The same tick for the runs that are left: flows that nobody follows any more end."""
    left = [n for n in cut.queries if n not in parked]
    flows = {rest[n].flow for n in left if n in rest}
    return msgspec.structs.replace(
        cut, queries=left, ranges={f: r for f, r in cut.ranges.items() if f in flows}
    )
