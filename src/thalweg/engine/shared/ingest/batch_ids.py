"""Which pushes were taken already: a batch id counts once, and is not kept for ever.

Ids come with every push, so what is known of them must end. An id is forgotten when two things are
so: every tuple of its batch would be late if it came again, hence no result could count it twice;
and `REMEMBERED` entries have landed since, so that who pushes again after a lost answer hears that
it was taken, and not that it is late.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from thalweg.engine.shared.state.store import Store

REMEMBERED = 1_000_000
_FORGOTTEN_AT_ONCE = 8  # more than come with a push, so that a surplus goes


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch that has landed."""

    batch: str
    stream: str
    partition: int
    newest: int  # of its own timestamps


def is_known(store: Store, stream: str, batch: str) -> bool:
    return bool(store.all("SELECT 1 FROM batches WHERE stream = ? AND batch = ?", stream, batch))


def remember(db: sqlite3.Connection, taken: Taken, landed: int, late_below: int) -> None:
    """Note the batch with the number that it landed under; in its partition what is below
    `late_below` is late from now on, and what that makes superfluous goes."""
    stream, partition = taken.stream, taken.partition
    db.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?)",
        (stream, taken.batch, partition, landed, taken.newest),
    )
    oldest = db.execute(
        "SELECT batch, newest FROM batches WHERE stream = ? AND partition = ? AND landed < ? "
        "ORDER BY landed LIMIT ?",
        (stream, partition, landed - REMEMBERED, _FORGOTTEN_AT_ONCE),
    ).fetchall()
    db.executemany(
        "DELETE FROM batches WHERE stream = ? AND batch = ?",
        [(stream, batch) for batch, newest in oldest if newest < late_below],
    )
