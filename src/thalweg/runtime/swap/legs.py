"""A stream of a join at its home: what is kept of it for the join goes into the protocol.

The query's node has opened a publication at each home, like one that it would read itself; but the
home reads it, at its own pace, and hands the rows to the eddy that is here. How far it has come is
written down with the rows, so that each counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from thalweg.adapt.swap.messages import Feed
from thalweg.adapt.swap.protocol import Swap
from thalweg.adapt.swap.query import NEVER, Values
from thalweg.engine.pieces import Piece
from thalweg.engine.shared.frames import OP, TS, name
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.plan.catalog import PLACE
from thalweg.plan.types import SqlType
from thalweg.runtime.data.plain_values import rows_of

ROWS_AT_ONCE = 500
_INSTANT, _POSITION = (f.name for f in PLACE)

Tuples = tuple[tuple[int, int, Values], ...]


@dataclass(frozen=True, slots=True)
class Leg:
    """As it is between two steps."""

    query: str
    stream: int
    publication: str
    upto: int
    last_key: int
    waiting: int  # rows that have no next site yet
    awaited: int  # the instant for which the others wait

    @property
    def key(self) -> tuple[str, int]:
        return self.query, self.stream


def legs_here(stack: Stack, own: Address) -> list[Leg]:
    found = []
    for id_, state in swap_of(stack).queries.items():
        for stream, home in sorted(state.homes.items()):
            if own not in state.query.annotated.delegated[stream] or not state.query.sources:
                continue
            pending = state.pending(state.query.plan.djg.home[stream])
            found.append(
                Leg(
                    id_,
                    stream,
                    state.query.sources[stream],
                    home.upto,
                    home.last_key,
                    sum(map(len, pending.values())),
                    state.lifecycle.awaited.get(stream, NEVER),
                )
            )
    return found


def swap_of(stack: Stack) -> Swap:
    found = stack["swap"]
    assert isinstance(found, Swap)
    return found


def feeds(leg: Leg, pieces: Iterator[Piece], types: tuple[SqlType, ...]) -> Iterator[Feed]:
    """What a publication has said from where the leg is: some rows at once, of whole instants."""
    last_key, upto = leg.last_key, leg.upto
    for rows, reached in _gathered(pieces):
        fresh = rows.filter(pl.col(_INSTANT) >= upto).sort(_INSTANT, _POSITION)
        instants = fresh[_INSTANT].to_list()
        values = rows_of(_plain(fresh), types)
        begin = 0
        while begin < len(instants):
            end = min(begin + ROWS_AT_ONCE, len(instants))
            while end < len(instants) and instants[end] == instants[end - 1]:
                end += 1
            upto = instants[end] if end < len(instants) else reached
            keys = range(last_key + 1, last_key + 1 + end - begin)
            tuples = tuple(zip(keys, instants[begin:end], values[begin:end], strict=True))
            yield Feed(leg.query, leg.stream, tuples, upto)
            last_key, begin = keys[-1], end
        if upto < reached:
            upto = reached
            yield Feed(leg.query, leg.stream, (), upto)


def _gathered(pieces: Iterator[Piece]) -> Iterator[tuple[pl.DataFrame, int]]:
    """Small pieces together: each Feed is a commit."""
    held: list[pl.DataFrame] = []
    upto = NEVER
    for piece in pieces:
        held.append(piece.rows)
        upto = piece.upto
        if sum(rows.height for rows in held) >= ROWS_AT_ONCE:
            yield pl.concat(held), upto
            held.clear()
    if held:
        yield pl.concat(held), upto


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """The stream's own columns, by their places."""
    columns = [c for c in rows.columns if c not in (TS, OP, _INSTANT, _POSITION)]
    return rows.select(pl.col(c).alias(name(i)) for i, c in enumerate(columns))
