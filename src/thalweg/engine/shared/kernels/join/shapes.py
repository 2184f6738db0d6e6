"""Plan shapes of one join: which joins of some of its inputs are kept, beside the windows.

`()` is an MJoin and keeps windows only. `((0, 1),)` keeps A ⋈ B: of three inputs that is the binary
tree ((A B) C), of four the mixture ((A B) C D). What is kept is nested, from the inside out:
`((0, 1), (0, 1, 2))` is the binary tree (((A B) C) D). Trees with two branches, ((A B) (C D)), are
no shapes: each branch would have to see the other's new rows, which are with other tasks.

Sources: D-CAPE 1.2; MJoin and caches of intermediate results, DHTJoin 2.1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import key_id
from thalweg.engine.shared.state.names import Table, state_owner, state_part
from thalweg.plan.expr import Expr, columns_of, shift

Inputs = tuple[int, ...]  # in order
Shape = tuple[Inputs, ...]

MJOIN: Shape = ()
MOST_INPUTS = 6  # of larger joins nothing is kept: there are too many shapes to weigh


@lru_cache(maxsize=1024)
def shapes_of(op: ph.Join) -> tuple[Shape, ...]:
    """All of them, the MJoin first. What is kept is connected by keys, and so is the join."""
    everything = tuple(range(len(op.inputs)))
    if not 3 <= len(everything) <= MOST_INPUTS or not _is_connected(op, everything):
        return (MJOIN,)
    kept = [
        inputs
        for size in range(2, len(everything))
        for inputs in combinations(everything, size)
        if _is_connected(op, inputs)
    ]
    shapes: list[Shape] = [MJOIN]
    for shape in shapes:  # which grows meanwhile
        shapes += [(*shape, k) for k in kept if not shape or set(shape[-1]) < set(k)]
    return tuple(shapes)


def _is_connected(op: ph.Join, inputs: Inputs) -> bool:
    reached, rest = {inputs[0]}, set(inputs[1:])
    while near := {r for r in rest if any(op.shared_keys(i, r) for i in reached)}:
        reached, rest = reached | near, rest - near
    return not rest


def ranks(count: int, shape: Shape) -> tuple[int, ...]:
    """In which order the inputs' deltas have their turn: a delta meets the new rows of those that
    come later. Who is inside of what is kept comes first, so that what is kept is met as of the
    last tick."""
    depth = [next((d for d, s in enumerate(shape) if i in s), len(shape)) for i in range(count)]
    turns = sorted(range(count), key=lambda i: (depth[i], i))
    return tuple(turns.index(i) for i in range(count))


def keys_between(op: ph.Join, outside: int, inputs: Inputs) -> tuple[ph.JoinKey, ...]:
    """By which one input can probe the join of others."""
    return tuple(
        k
        for k in op.keys
        if k.member(outside) is not None and any(k.member(i) is not None for i in inputs)
    )


def index_of(op: ph.Join, keys: Sequence[ph.JoinKey], inputs: Inputs) -> tuple[Expr, ...]:
    """The same keys over the join's columns side by side; of equal columns, the first."""
    found = []
    for key in keys:
        of = next(i for i in inputs if key.member(i) is not None)
        member = key.member(of)
        assert member is not None
        found.append(shift(member, op.offsets[of]))
    return tuple(found)


def kept_indexes(op: ph.Join, inputs: Inputs) -> tuple[tuple[Expr, ...], ...]:
    """Every key by which some probing order may want what is kept."""
    outside = (o for o in range(len(op.inputs)) if o not in inputs)
    found = (index_of(op, keys_between(op, o, inputs), inputs) for o in outside)
    return tuple(dict.fromkeys(index for index in found if index))


def kept_columns(op: ph.Join, inputs: Inputs) -> list[int]:
    """Of the columns side by side, those that somebody looks at when these inputs are bound."""
    offsets, own = op.offsets, set(inputs)
    owner = [i for i, source in enumerate(op.inputs) for _ in source.types]
    later = [c for c in op.conditions if not {owner[x] for x in columns_of(c)} <= own]
    used = {x for e in (*op.exprs, *later) for x in columns_of(e)}
    for key in op.keys:
        if any(i not in own for i, _ in key.members):
            used |= {offsets[i] + x for i, e in key.members for x in columns_of(e)}
    found = sorted(x for x in used if owner[x] in own)
    return found or [offsets[inputs[0]]]  # a frame without columns has no height


KEPT = "kept-"  # how the parts of a join's state begin that are intermediates


def kept_part(inputs: Inputs, index: tuple[Expr, ...]) -> str:
    return f"{KEPT}{inputs_text(inputs)}-{key_id(index)}"


def inputs_in(part: str) -> Inputs | None:
    """Whose join a part of a join's state is; None for other parts."""
    if not part.startswith(KEPT):
        return None
    return tuple(int(i) for i in part.split("-")[1].split("."))


@lru_cache(maxsize=1 << 16)  # asked for all segments at every tick
def kept_in(table: Table) -> tuple[str, Inputs] | None:
    """The join whose intermediate a table is, and of which inputs; None for all other tables."""
    owner = state_owner(table)
    inputs = None if owner is None else inputs_in(state_part(table))
    return None if owner is None or inputs is None else ("/".join(owner), inputs)


def inputs_text(inputs: Iterable[int]) -> str:
    return ".".join(map(str, inputs))


def shape_text(shape: Shape, labels: Sequence[str]) -> str:
    """`((A B) C)`."""
    text, done = "", set[int]()
    for inputs in (*shape, tuple(range(len(labels)))):
        own = " ".join(labels[i] for i in inputs if i not in done)
        text, done = f"({text} {own})" if text else f"({own})", set(inputs)
    return text
