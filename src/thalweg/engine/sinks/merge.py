"""Several queries' JSON lines as one text, ordered by instant, then by the queries' own order.

Each file is in order by itself. What lies below an instant that all queries have passed can be
written at once, so the merge follows files that still grow.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

_COPIED_BYTES = 1 << 20


class Follower:
    """Reads a query's lines one ahead."""

    def __init__(self, path: Path, query: str) -> None:
        # Every line starts alike, up to the digits of its instant.
        self._before_ts = len(f'{{"query":{json.dumps(query, ensure_ascii=False)},"ts":'.encode())
        self._file = path.open("rb")
        self._line = b""

    def instant(self) -> int | None:
        """Of the line that comes next; None if there is none yet."""
        if not self._line:
            self._line = self._file.readline()
        if not self._line:
            return None
        return int(self._line[self._before_ts : self._line.index(b",", self._before_ts)])

    def take(self) -> bytes:
        line, self._line = self._line, b""
        return line

    def copy(self, to: BinaryIO) -> None:
        """All that is there."""
        to.write(self.take())
        while block := self._file.read(_COPIED_BYTES):
            to.write(block)

    def close(self) -> None:
        self._file.close()


class MergedLines:
    """`files` are (query, path), in the order in which queries of one instant are written."""

    def __init__(self, files: Sequence[tuple[str, Path]], to: BinaryIO) -> None:
        self._followers = [Follower(path, query) for query, path in files]
        self._to = to

    def write_below(self, instant: int) -> None:
        """All lines of earlier instants, once each; call it when no query will add to them."""
        if len(self._followers) == 1:
            self._followers[0].copy(self._to)
        else:
            self._merge(instant)
        self._to.flush()

    def _merge(self, instant: int) -> None:
        heap = [(ts, i) for i, f in enumerate(self._followers) if (ts := f.instant()) is not None]
        heapq.heapify(heap)
        write = self._to.write
        while heap and heap[0][0] < instant:
            now, i = heap[0]
            follower = self._followers[i]
            write(follower.take())
            while (ts := follower.instant()) == now:
                write(follower.take())
            if ts is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (ts, i))

    def close(self) -> None:
        for follower in self._followers:
            follower.close()
