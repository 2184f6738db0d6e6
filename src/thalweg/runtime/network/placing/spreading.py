"""Queries whose largest operator runs at several nodes, each with some buckets of its key; and
those that are one fragment as a whole.

Each part is a fragment of its own, also at the node where the query stands: so that it can move,
and go on elsewhere when its node is gone, like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.adapt.moves.partitioning import ABOVE
from thalweg.adapt.moves.spreading import (
    Buckets,
    CannotSpread,
    part_of,
    ranges,
    spreadable,
    united,
)
from thalweg.engine.site import Unknown, WrongUse
from thalweg.plan.buckets import BUCKETS
from thalweg.plan.catalog import QueryDef
from thalweg.plan.cutting import in_its_place, part_schema, places
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import NAMED, Fragment, Input
from thalweg.runtime.network.measuring import NodeMeasure, Task
from thalweg.runtime.network.placing.deploying import Placement

SPREAD, MOVABLE = "spread", "movable"  # strategies, as EXPLAIN names them
_MOST_PARTS = 32  # each is a query of its own


def spread_over(asked: str, measured: Sequence[NodeMeasure]) -> tuple[list[str], int | None]:
    """Nodes for `3` (those that have had the least to do) or `n1,n2`; behind a slash stands in how
    many parts. Raises WrongUse, Unknown."""
    wanted, _, count = asked.partition("/")
    if count and not count.isdigit():
        raise WrongUse(f"--parts is a number, not {count}")
    parts = int(count) if count else None
    known = [n.name for n in measured]
    if not wanted.isdigit():
        nodes = [n.strip() for n in wanted.split(",") if n.strip()]
        for name in nodes:
            if name not in known:
                raise Unknown("node", name, known)
        return list(dict.fromkeys(nodes)), parts
    if not 1 <= int(wanted) <= len(known):
        raise WrongUse(f"--spread {wanted}: there are {len(known)} nodes to spread over")
    idle = sorted(measured, key=lambda n: (n.cpu_s, n.name))
    return sorted(n.name for n in idle[: int(wanted)]), parts


def spread_query(query: QueryDef, me: str, nodes: Sequence[str], parts: int | None) -> Placement:
    """Raises WrongUse with the reason if the query can't be spread."""
    parts = len(nodes) if parts is None else parts
    if not len(nodes) <= parts <= _MOST_PARTS:
        raise WrongUse(f"{len(nodes)} nodes need from {len(nodes)} to {_MOST_PARTS} parts")
    if query.from_now:
        raise WrongUse(f"{query.name} can't be spread: what a FROM NOW query says first is one")
    try:
        found = spreadable(query.plan)
    except CannotSpread as error:
        why = str(error).removesuffix(f": {ABOVE}, over partials")
        raise WrongUse(f"{query.name} can't be spread: {why}; without --spread it runs") from None
    inputs, read, words = [], [], []
    for number, buckets in enumerate(ranges(parts)):
        at, name = nodes[number * len(nodes) // parts], f"{NAMED}{number}"
        plan = part_of(found, buckets)
        part = Fragment(encode_plan(plan), (), found.from_beginning)
        inputs.append(Input(name, at, part))
        read.append(in_its_place(plan, part_schema(plan, name)))
        words.append(f"buckets {buckets[0]}-{buckets[1]} at {at}")
    plan = united(query.plan, found.path, read)
    fragment = Fragment(encode_plan(plan), tuple(inputs))
    by = " = ".join(found.columns)
    task = Task(
        query.name,
        encode_plan(query.plan),
        SPREAD,
        False,
        (),
        (),
        (f"by {by}", *words),
        fragment,
    )
    return Placement(query.name, me, fragment, task)


def movable_query(query: QueryDef, me: str) -> Placement:
    """All of a query is a fragment, which begins at its own node and can move from there; results,
    readers and sinks stay. Raises WrongUse with the reason if that would show."""
    if query.from_now:
        raise WrongUse(f"{query.name} can't move: what a FROM NOW query says first is one")
    root = next((p for p in places(query.plan) if not p.path), None)
    if root is None:
        raise WrongUse(
            f"{query.name} can't move: nobody else can compute it (TOLERANCE, or INTERVAL or NULL "
            "columns)"
        )
    name = f"{NAMED}0"
    part = Fragment(encode_plan(query.plan), (), root.from_beginning)
    read = in_its_place(query.plan, part_schema(query.plan, name))
    fragment = Fragment(encode_plan(read), (Input(name, me, part),))
    words = (f"all of it at {me}, from where it can move",)
    task = Task(query.name, encode_plan(query.plan), MOVABLE, False, (), (), words, fragment)
    return Placement(query.name, me, fragment, task)


def parse_buckets(text: str) -> Buckets:
    """Raises WrongUse."""
    low, _, high = text.partition("-")
    try:
        found = int(low), int(high or low)
    except ValueError:
        raise WrongUse(f"--buckets is a range like 0-31, not {text}") from None
    if not 0 <= found[0] <= found[1] < BUCKETS:
        raise WrongUse(f"there are buckets 0 to {BUCKETS - 1}: name a range of them, not {text}")
    return found
