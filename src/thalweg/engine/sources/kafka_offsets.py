"""Where a topic is read: positions, the next ranges, and what was lost before it could be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from thalweg.engine.kafka import TopicState

Range = tuple[int, int]  # from this offset up to, but without, that one


class Position(NamedTuple):
    """The offset of the next record to read, and the topic that it is of ("": not known)."""

    offset: int
    topic: str = ""

    def packed(self) -> bytes:
        return f"{self.offset} {self.topic}".rstrip().encode()


def position_of(packed: bytes) -> Position:
    """As the book has it; earlier versions kept the offset alone."""
    offset, _, topic = packed.decode().partition(" ")
    return Position(int(offset), topic)


class Loss(NamedTuple):
    """Records that are not there any more, or a topic that is another one."""

    partition: int
    reason: str
    goes_on_at: int


def losses(positions: Mapping[int, Position], now: TopicState, topic: str) -> list[Loss]:
    """What was not read and can't be read any more, partition by partition."""
    found = []
    for partition, (offset, of) in sorted(positions.items()):
        where = f"topic {topic}, partition {partition}"
        first, end = now.first.get(partition), now.end.get(partition)
        if of and of != now.id:
            why = f"{where}: the topic was deleted and created again since offset {offset} was read"
            found.append(Loss(partition, why, first or 0))
        elif first is None or end is None:
            found.append(Loss(partition, f"{where} is gone; it was read up to {offset}", offset))
        elif offset < first:
            why = f"{where}: offsets {offset} to {first - 1} were removed before they were read"
            found.append(Loss(partition, why, first))
        elif offset > end:
            why = f"{where} ends at {end}, and was read up to {offset}: it was cut back"
            found.append(Loss(partition, why, end))
    return found


def behind_losses(found: list[Loss], now: TopicState) -> dict[int, Position]:
    """Where to go on behind what is lost; a partition that is gone has nothing to go on with."""
    return {x.partition: Position(x.goes_on_at, now.id) for x in found if x.partition in now.end}


def next_ranges(
    positions: Mapping[int, Position], ends: Mapping[int, int], most: int
) -> dict[int, Range]:
    """What to read next, of all partitions that have something; about `most` offsets in all."""
    waiting = {
        partition: (at.offset, ends[partition])
        for partition, at in positions.items()
        if at.offset < ends.get(partition, 0)
    }
    share = max(1, most // max(1, len(waiting)))
    return {p: (begin, min(end, begin + share)) for p, (begin, end) in waiting.items()}
