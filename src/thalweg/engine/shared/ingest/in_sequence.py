"""Parts of one partition that tasks have landed side by side, put one behind the other.

What is late is a question of the running maximum. A task that began with nothing has judged its
part by the part's own maximum: a row that is late so is late in any case. The maxima of the parts
before it say from which instant on the other rows count. If one lies below that, the part has to be
judged again, by a task that is told how things stand; which parts come to that depends on maxima
alone, so once is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thalweg.engine.shared.ingest.task_landing import Place, Written


def places(first: Place, parts: Sequence[Written]) -> list[Place]:
    """How the partition stands before each part."""
    found = [first]
    for part in parts[:-1]:
        before = found[-1]
        newest, position = max(before.newest, part.newest), before.position + part.rows
        found.append(Place(newest, position, first.floor))
    return found


def is_in_question(part: Written, before: Place, lateness: int) -> bool:
    """Whether a part that began elsewhere has accepted what is late here."""
    late_below = before.newest - lateness
    return part.before != before and any(piece.low < late_below for piece in part.pieces)


def moved(part: Written, before: Place) -> Written:
    """The part as it stands here, without anything in question."""
    if part.before == before:
        return part
    pieces = [
        msgspec.structs.replace(piece, newest=max(piece.newest, before.newest))
        for piece in part.pieces
    ]
    return msgspec.structs.replace(
        part,
        before=before,
        newest=max(part.newest, before.newest),
        pieces=pieces,
        shift=before.position - part.before.position,
    )
