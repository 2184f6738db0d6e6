"""Which group answers which query, to be asked from both sides."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import TypeVar

T = TypeVar("T")


class Homes(MutableMapping[str, str]):
    """From a query to the generation in which it lives; queries that run alone have none."""

    def __init__(self) -> None:
        self._home: dict[str, str] = {}
        self._members: dict[str, dict[str, None]] = {}  # in the order in which they came

    def members_of(self, generation: str) -> Collection[str]:
        return self._members.get(generation, {}).keys()

    def homeless(self, queries: Mapping[str, T]) -> dict[str, T]:
        """Those that run alone."""
        home = self._home  # asked for all queries before every tick
        return {name: query for name, query in queries.items() if name not in home}

    def copy(self) -> dict[str, str]:
        return self._home.copy()

    def __getitem__(self, query: str) -> str:
        return self._home[query]

    def __setitem__(self, query: str, generation: str) -> None:
        self._leave(query)
        self._home[query] = generation
        self._members.setdefault(generation, {})[query] = None

    def __delitem__(self, query: str) -> None:
        self._leave(query)
        del self._home[query]

    def _leave(self, query: str) -> None:
        home = self._home.get(query)
        if home is None:
            return
        members = self._members[home]
        del members[query]
        if not members:
            del self._members[home]

    def __contains__(self, query: object) -> bool:
        return query in self._home

    def __iter__(self) -> Iterator[str]:
        return iter(self._home)

    def __len__(self) -> int:
        return len(self._home)
