"""The SteMs of one node: window contents by SteM and value, with room for so many.

Source: DHTJoin 4.3.3.1 (windows), 4.5 (memory). Beyond m(Sᵢ) items of a SteM something is shed:
the oldest, or, as an option, the one whose value has met the fewest partners so far.

Invariants: an item is stored once, whatever is repeated. What has expired is purged as soon as
the frontier has passed its end. `completeness` is the product over inputs of kept / (kept + shed),
counted over what should be in the window now: DHTJoin (4.6), measured instead of predicted. An
intermediate result stands for 1/share of its like, where the join that made it was incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush

from thalweg.overlay.p2p.tuples import Id, Parts, Value, ids_of

Ids = tuple[Id, ...]
OLDEST, LEAST_MATCHED = "oldest", "least-matched"
POLICIES = (OLDEST, LEAST_MATCHED)


class _Contents:
    __slots__ = ("added", "by_end", "by_value", "lost_ends", "matches", "size", "stands_for")

    def __init__(self) -> None:
        self.by_value: dict[Value, dict[Ids, Parts]] = {}
        self.by_end: list[tuple[int, Ids, Value]] = []  # a heap
        self.size = 0
        self.lost_ends: list[int] = []  # ends of what was shed, a heap: until they would be gone
        self.matches: dict[Value, int] = {}
        self.added = 0
        self.stands_for = 0.0  # so many would have been added, had nothing been shed below


class Stems:
    def __init__(self, room: int | None = None, policy: str = OLDEST) -> None:
        if room is not None and room < 1:
            raise ValueError(f"room for {room} tuples of a stream: a node keeps at least one")
        if policy not in POLICIES:
            raise ValueError(f"there is no way {policy!r} to shed: {', '.join(POLICIES)}")
        self.room = room
        self.policy = policy
        self.shed = 0  # tuples, ever
        self._stems: dict[str, _Contents] = {}

    @property
    def size(self) -> int:
        return sum(c.size for c in self._stems.values())

    def size_of(self, stem: str) -> int:
        return self._stems[stem].size if stem in self._stems else 0

    def names(self) -> list[str]:
        return list(self._stems)

    def get(self, stem: str, key: Value) -> Collection[Parts]:
        contents = self._stems.get(stem)
        found = contents.by_value.get(key) if contents is not None else None
        return found.values() if found else ()

    def has(self, stem: str, key: Value, parts: Parts) -> bool:
        contents = self._stems.get(stem)
        return contents is not None and ids_of(parts) in contents.by_value.get(key, ())

    def matched(self, stem: str, key: Value, count: int) -> None:
        if self.policy == LEAST_MATCHED and count and stem in self._stems:
            matches = self._stems[stem].matches
            matches[key] = matches.get(key, 0) + count

    def add(self, stem: str, key: Value, parts: Parts, end: int, share: float = 1.0) -> bool:
        """Whether it is new; something of this SteM may be shed for it."""
        contents = self._stems.get(stem)
        if contents is None:
            contents = self._stems[stem] = _Contents()
        ids = ids_of(parts)
        of_value = contents.by_value.setdefault(key, {})
        if ids in of_value:
            return False
        if self.room is not None and contents.size >= self.room:
            self._shed(contents)
            of_value = contents.by_value.setdefault(key, {})
        of_value[ids] = parts
        heappush(contents.by_end, (end, ids, key))
        contents.size += 1
        contents.added += 1
        contents.stands_for += 1 / share
        return True

    def _shed(self, contents: _Contents) -> None:
        if self.policy == OLDEST:
            end, ids, key = heappop(contents.by_end)
        else:
            worst = min(
                range(len(contents.by_end)),
                key=lambda i: (contents.matches.get(contents.by_end[i][2], 0), contents.by_end[i]),
            )
            end, ids, key = contents.by_end[worst]
            contents.by_end[worst] = contents.by_end[-1]
            contents.by_end.pop()
            heapify(contents.by_end)
        self._remove(contents, ids, key)
        self.shed += 1
        heappush(contents.lost_ends, end)

    def purge(self, frontier: int, stems: Iterable[str]) -> int:
        """Forget what ends at or before the frontier: nothing that is still to come meets it."""
        purged = 0
        for stem in stems:
            contents = self._stems.get(stem)
            if contents is None:
                continue
            heap = contents.by_end
            while heap and heap[0][0] <= frontier:
                _, ids, key = heappop(heap)
                self._remove(contents, ids, key)
                purged += 1
            while contents.lost_ends and contents.lost_ends[0] <= frontier:
                heappop(contents.lost_ends)
        return purged

    def expired_in(self, stem: str, frontier: int) -> int:
        """What has ended before: for those who check that purging is done."""
        return sum(end <= frontier for end, _, _ in self._stems[stem].by_end)

    def drop_where(self, gone: Iterable[tuple[str, Value, Ids]]) -> None:
        """Forget these, which live elsewhere now."""
        wanted: dict[str, set[tuple[Value, Ids]]] = {}
        for stem, key, ids in gone:
            wanted.setdefault(stem, set()).add((key, ids))
        for stem, entries in wanted.items():
            contents = self._stems[stem]
            for key, ids in sorted(entries, key=repr):
                self._remove(contents, ids, key)
            contents.by_end = [e for e in contents.by_end if (e[2], e[1]) not in entries]
            heapify(contents.by_end)

    def entries(self) -> list[tuple[str, Value, Parts]]:
        return [
            (stem, key, parts)
            for stem, contents in self._stems.items()
            for key, of_value in contents.by_value.items()
            for parts in of_value.values()
        ]

    def completeness(self, stems: Iterable[str]) -> float:
        share = 1.0
        for stem in stems:
            contents = self._stems.get(stem)
            if contents is None or not contents.added:
                continue
            if contents.lost_ends:
                share *= contents.size / (contents.size + len(contents.lost_ends))
            share *= contents.added / contents.stands_for
        return share

    def _remove(self, contents: _Contents, ids: Ids, key: Value) -> None:
        of_value = contents.by_value.get(key)
        if of_value is not None and of_value.pop(ids, None) is not None:
            contents.size -= 1
            if not of_value:
                del contents.by_value[key]
                contents.matches.pop(key, None)
