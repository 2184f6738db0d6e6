"""Results that an owner has found, on their way to who asked; and the items that they came of.

An item is acknowledged when nothing that came of it is open: no intermediate result, and no row
that its asker does not have yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.overlay.p2p.index_messages import Item, Place, Replay
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.result_messages import SendRows
from thalweg.overlay.p2p.tuples import Parts
from thalweg.overlay.protocol import Address, Effect, Tell


@dataclass(slots=True, eq=False)
class Task:
    """An item at work: acknowledged when nothing that came of it is open."""

    origin: Address
    item: Item
    replay: Replay | None
    exact: bool
    needs: int | None = None  # levels that have to be complete; None: all
    hosted: bool = False  # for another owner
    dead: bool = False  # its bucket went to another owner
    round: int = -1  # of the claim under which it was joined last
    open: set[object] = field(default_factory=set)
    places: dict[Place, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """Results of one step for one query."""

    token: int
    rows: list[Parts] = field(default_factory=list)
    stand_for: float = 0.0  # so many would have been found, had nothing been shed


class FoundRows:
    def __init__(self) -> None:
        self._tokens = 0
        self._tasks: dict[int, list[Task]] = {}  # of rows that are under way
        self._fresh: dict[str, _Found] = {}  # of this step, by query

    def start(self, first_token: int) -> None:
        self._tokens = first_token

    def add(self, query: str, rows: list[Parts], share: float, task: Task) -> None:
        """`share` estimates how many of all results of this kind these are."""
        found = self._fresh.get(query)
        if found is None:
            self._tokens += 1
            found = self._fresh[query] = _Found(self._tokens)
            self._tasks[self._tokens] = []
        found.rows += rows
        found.stand_for += len(rows) / share
        task.open.add(("rows", found.token))
        self._tasks[found.token].append(task)

    def flush(self, queries: Mapping[str, JoinQuery]) -> list[Effect]:
        """Results of this step, to those who asked."""
        fresh, self._fresh = self._fresh, {}
        effects: list[Effect] = []
        for query, found in fresh.items():
            rows = tuple(found.rows)
            share = len(rows) / found.stand_for
            sent = SendRows(found.token, queries[query].asker, query, rows, share)
            effects.append(Tell("p2p-results", sent))
        return effects

    def done(self, token: int) -> list[Task]:
        """The asker has them: the items that these rows came of, each once."""
        tasks = dict.fromkeys(self._tasks.pop(token, ()))
        for task in tasks:
            task.open.discard(("rows", token))
        return list(tasks)
