"""Deployment: which host runs, relays and serves what.

One answer format for every strategy. Where routing is left to the data overlay, `wants` says which
host needs which stream, and there are no `sends`. Rows are distinct and sorted, so that equal
deployments have equal arrays and the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints, table


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    runs: Ints  # rows (host, operator)
    sends: Ints  # rows (from host, to host, stream)
    serves: Ints  # query -> the host that hands out its result, or NONE if it was not admitted
    wants: Ints | None = None  # rows (host, stream), instead of sends

    def __post_init__(self) -> None:
        for rows, width in ((self.runs, 2), (self.sends, 3), (self.wants, 2)):
            if rows is not None and (rows.ndim != 2 or rows.shape[1] != width):
                raise ValueError(f"a row has {width} indexes here, not the shape {rows.shape}")
        if self.wants is not None and len(self.sends):
            raise ValueError("a deployment has sends or wants, not both")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Deployment):
            return NotImplemented
        return (
            np.array_equal(self.runs, other.runs)
            and np.array_equal(self.sends, other.sends)
            and np.array_equal(self.serves, other.serves)
            and (self.wants is None) == (other.wants is None)
            and (self.wants is None or np.array_equal(self.wants, other.wants))  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @property
    def admitted(self) -> int:
        return int(np.count_nonzero(self.serves != NONE))


def deployment(
    queries: int,
    *,
    runs: Iterable[Sequence[int]] = (),
    sends: Iterable[Sequence[int]] = (),
    serves: Mapping[int, int] | Ints | None = None,
    wants: Iterable[Sequence[int]] | None = None,
) -> Deployment:
    """A deployment from plain pairs and triples of indexes."""
    if isinstance(serves, np.ndarray):
        served = serves
    else:
        served = np.full(queries, NONE, np.int32)
        for query, host in (serves or {}).items():
            served[query] = host
    return Deployment(
        table(runs, 2), table(sends, 3), ints(served), None if wants is None else table(wants, 2)
    )


def nothing(queries: int) -> Deployment:
    """Nobody is served, and nothing runs (Algorithm 1, line 1)."""
    return deployment(queries)
