"""What a source delivers: tuples in order of arrival, and which of them are too late.

A partition's watermark is the running maximum of its timestamps minus the stream's LATENESS; the
stream's is the minimum over its partitions. A tuple is late if it lies below the watermark of its
own partition when it arrives: so what is late depends on each partition's sequence alone, never
on how the partitions happened to interleave.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Value
from thalweg.plan.windows import BEGINNING

Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One tuple of a base stream, or one change (`op` is + or -) of a base relation.

    `timestamp` is an instant, counted in the stream's resolution. `position` is the source's own
    order, unique within the stream: tuples of one instant are ordered by it.
    """

    partition: int
    timestamp: int
    position: int
    row: Row
    op: str = "+"

    def __post_init__(self) -> None:
        if self.op not in ("+", "-"):
            raise ValueError(f"op is + or -, not {self.op!r}")


@dataclass(frozen=True, slots=True)
class Admission:
    """Accepted tuples in (timestamp, position) order; late ones as they arrived."""

    accepted: tuple[Arrival, ...]
    late: tuple[Arrival, ...]


def admit(stream: StreamDef, arrivals: Iterable[Arrival]) -> Admission:
    """Tell the tuples that count from those that came too late."""
    newest: dict[int, int] = {}
    accepted: list[Arrival] = []
    late: list[Arrival] = []
    for arrival in arrivals:
        if arrival.op == "-" and not stream.is_relation:
            raise ValueError(f"{stream.name} is a stream: a tuple can't be taken back")
        seen = newest.get(arrival.partition, arrival.timestamp)
        newest[arrival.partition] = max(seen, arrival.timestamp)
        if arrival.timestamp < seen - stream.lateness:
            late.append(arrival)
        else:
            accepted.append(arrival)
    accepted.sort(key=lambda a: (a.timestamp, a.position))
    return Admission(tuple(accepted), tuple(late))


def watermark(stream: StreamDef, arrivals: Sequence[Arrival], partitions: Iterable[int]) -> int:
    """The stream's watermark after these arrivals, over all partitions that it has."""
    newest = dict.fromkeys(partitions, BEGINNING)
    for arrival in arrivals:
        seen = newest.get(arrival.partition, BEGINNING)
        newest[arrival.partition] = max(seen, arrival.timestamp)
    oldest = min(newest.values(), default=BEGINNING)
    return oldest if oldest == BEGINNING else oldest - stream.lateness
