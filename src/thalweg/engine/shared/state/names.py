"""Names of tables and files, made and taken apart in one place.

People name streams and queries as they like: `"a/b"`, `"../x"`, `"Größe"`, 300 characters. In the
name of a table such a name is escaped, so that it never holds a separator and none begins like
another; in the name of a file it is shortened as well, and never leaves its folder.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NewType
from urllib.parse import quote, unquote

from thalweg.engine.shared.compile.encoding import key_id
from thalweg.plan.expr import Expr

Table = NewType("Table", str)

STARTED, ENDED = "started", "ended"  # the two parts of what a group says
EMITTED = "emitted"  # the part of an aggregate's state that says who has had a row
HELD, WAITING, SINCE = "held", "waiting", "since"  # the parts of what tolerance classes keep
GROUP = "group/"  # names of groups begin like this, and no query's name may
PUBLISHED = "pub/"  # and like this those of queries that other nodes read
ENGINE_FED = "engine:"  # FROM 'engine:NAME': a stream that another engine feeds
LABEL = "due_for"  # a column of such a stream: the numbers of those for whom, between commas
LABELLED = "labels:"  # FROM 'labels:': of a stream the rows that are due, with whom for
COMPUTED = PUBLISHED + "#"  # of these, those that compute a part of another node's query


# --- state


def stem_table(stream: str, keys: tuple[Expr, ...]) -> Table:
    """The SteM of a stream indexed by `keys`; no keys is the plain log."""
    return _table("stem", stream, key_id(keys))


@lru_cache(maxsize=1 << 16)  # asked for all segments at every tick
def stem_stream(table: Table) -> str | None:
    """The stream whose SteM a table is; None for all other tables."""
    kind, *parts = table.split("/")
    return unquote(parts[0]) if kind == "stem" else None


def state_table(flow: str, operator: str, part: str) -> Table:
    """What an operator of a flow remembers."""
    return _table("state", flow, operator, part)


def state_owner(table: Table) -> tuple[str, str] | None:
    """The flow and the operator whose state a table is; None for SteMs."""
    kind, *parts = table.split("/")
    return (unquote(parts[0]), unquote(parts[1])) if kind == "state" else None


def state_part(table: Table) -> str:
    """Which part of an operator's state a table is."""
    return unquote(table.split("/")[3])


# --- results


def result_table(run: str, part: str = "") -> Table:
    """What a query, or a group or a part of it, has said."""
    return _table("result", run, part)


def content_table(query: str) -> Table:
    """What a query's result held when its oldest retained tick began."""
    return _table("content", query)


def family_table(group: str, place: int) -> Table:
    """What the members of one family of a group say in a tick."""
    return _table("family", group, str(place))


def rejects_table(relation: str) -> Table:
    """Changes of a base relation that matched no row."""
    return _table("rejects", relation)


def rejecting_relation(table: Table) -> str | None:
    kind, *parts = table.split("/")
    return unquote(parts[0]) if kind == "rejects" else None


def result_run(table: Table) -> tuple[str, str] | None:
    """The query or group that has said it, and which part of the group's."""
    kind, *parts = table.split("/")
    return (unquote(parts[0]), unquote(parts[1])) if kind == "result" else None


def _table(*parts: str) -> Table:
    return Table("/".join(map(_escaped, parts)))


@lru_cache(maxsize=1 << 16)  # names of streams, flows and operators come again at every tick
def _escaped(name: str) -> str:
    return quote(name, safe="")


# --- files

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_SHOWN = 40


def file_name(name: str) -> str:
    """A name as part of a file's: itself where it is plain, else a readable part and a hash."""
    if _PLAIN.fullmatch(name):
        return name
    shown = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:_SHOWN]
    return f"{shown}~{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"


LATE, REJECTED = "late", "rejected"


def side_file(stream: str, kind: str) -> str:
    """Where a stream's late or rejected tuples are set aside, below the data directory."""
    folder = {LATE: "late", REJECTED: "rejects"}[kind]
    return f"{folder}/{file_name(stream)}.jsonl"


def source_folder(stream: str, number: int | None = None) -> str:
    """What a stream's source keeps for itself; `number` tells streams of one name apart, of which
    each was created after the other was dropped."""
    return f"sources/{file_name(stream)}" + ("" if number is None else f"~{number}")
