"""Operators as bytes, and their identities.

Every table of state is named after the operator that keeps it, so an operator's identity is part of
the data directory's format: it must be the same in every process, version and place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

import msgspec

from thalweg.engine.shared.compile import physical as ph
from thalweg.plan.encoding import Codec, Tags
from thalweg.plan.expr import Expr
from thalweg.sharing.encoding import SHARING_TAGS

_OPERATORS: Tags = {
    "base stream": ph.BaseStream,
    "source": ph.Source,
    "changes": ph.Changes,
    "tolerant": ph.TolerantOf,
    "placed": ph.PlacedOf,
    "labelled": ph.DueOf,
    "rows": ph.RowsOf,
    "sessions": ph.SessionsOf,
    "time": ph.TimeOf,
    "map": ph.Map,
    "join": ph.Join,
    "union": ph.Union,
    "aggregate": ph.Aggregate,
    "partials": ph.Partials,
    "panes": ph.Panes,
    "distinct": ph.Distinct,
    "top": ph.TopK,
    "set operator": ph.SetOp,
    "stream of": ph.StreamOf,
    "exchange": ph.Exchange,
    "output": ph.Output,
    "group": ph.Group,
    "matches": ph.Matches,
}

CODEC = Codec({**SHARING_TAGS, **_OPERATORS, "join key": ph.JoinKey})

_IS_OPERATOR = tuple(_OPERATORS.values())


def operator_id(op: ph.AnyOp, id_of: Callable[[ph.AnyOp], str] | None = None) -> str:
    """A short name that equal operators share: a hash of its own fields and its inputs' names.

    `id_of` may remember what was computed before.
    """
    known = id_of or operator_id

    def name(part: object) -> object:
        return {"operator": known(part)} if isinstance(part, _IS_OPERATOR) else None  # type: ignore[arg-type]

    return digest(CODEC.plain(op, name), 9)


@lru_cache(maxsize=4096)  # asked for every probe of every tick
def key_id(keys: tuple[Expr, ...]) -> str:
    """A short name for the key of an index; `all` for none."""
    return digest(CODEC.plain(keys), 6) if keys else "all"


def digest(plain: object, size: int) -> str:
    """A hash of plain data, in hexadecimal digits."""
    return hashlib.blake2b(msgspec.msgpack.encode(plain), digest_size=size).hexdigest()
