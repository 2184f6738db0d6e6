"""What is said of results: between nodes, and inside one."""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.tuples import Parts, Value
from thalweg.overlay.protocol import Address, Message


class Rows(Message, frozen=True):
    """Combinations, straight to who asked; `share` estimates how many of all there are."""

    token: int
    query: str
    rows: tuple[Parts, ...]
    share: float


class Got(Message, frozen=True):
    token: int


MESSAGES = (Rows, Got)


class SubmitJoin(msgspec.Struct, frozen=True):
    query: JoinQuery


class DropJoin(msgspec.Struct, frozen=True):
    """The asker's: it is not wanted any more, here and anywhere."""

    query: str


class Took(msgspec.Struct, frozen=True):
    """The application has all of a query's changes below the instant, and will not ask again."""

    query: str
    upto: int


class SendRows(msgspec.Struct, frozen=True):
    """From `index`; RowsDone once the asker has them."""

    token: int
    asker: Address
    query: str
    rows: tuple[Parts, ...]
    share: float


class RowsDone(msgspec.Struct, frozen=True):
    token: int


class Combination(msgspec.Struct, frozen=True):
    """An eager result: there may be others that never come."""

    query: str
    parts: Parts
    row: tuple[Value, ...]
    share: float


class SourceLost(msgspec.Struct, frozen=True):
    """A source is gone with all its copies: results of the query from an instant on lack it."""

    query: str
    stream: str
    source: str
    address: Address  # who spoke for it last
    since: int | None  # None: the query is younger, and lacks nothing


class Final(msgspec.Struct, frozen=True):
    """A query's changelog in [since, upto): (instant, + or -, row), in printing order."""

    query: str
    since: int
    upto: int
    changes: tuple[tuple[int, str, tuple[Value, ...]], ...]
    share: float  # an estimate of how many of the results memory had room for
