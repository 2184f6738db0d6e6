"""Probing plans: in which order a join's inputs are bound, and what can be checked after each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.shapes import (
    MJOIN,
    Inputs,
    Shape,
    index_of,
    inputs_text,
    keys_between,
    ranks,
)
from thalweg.plan.expr import Expr, columns_of, shift


@dataclass(frozen=True)
class Step:
    """Bind one more input: where its SteM is indexed, what probes it, what then can be checked.

    Or several inputs at once, whose join is `kept`; then the index is over all columns.
    """

    target: int  # the first one
    index: tuple[Expr, ...]  # over the target's own columns
    probe: tuple[Expr, ...]  # over all columns; the bound side of the same keys
    checks: tuple[Expr, ...]
    sees_new: bool  # whether new rows are met, or those as of the last tick alone
    kept: Inputs = ()

    @property
    def binds(self) -> Inputs:
        return self.kept or (self.target,)


def steps(
    op: ph.Join,
    start: int,
    order: Iterable[int],
    shape: Shape = MJOIN,
    usable: Iterable[Inputs] = (),
) -> tuple[Step, ...]:
    """The probing plan of one input's delta, in the given order of the other inputs; those of them
    whose join is kept, and `usable`, are bound at once."""
    turn = ranks(len(op.inputs), shape)
    bound = [start]
    unchecked = list(op.conditions)
    planned = []
    for binds in bound_together(start, order, usable):
        target, kept = binds[0], binds if len(binds) > 1 else ()
        if kept:
            partner = max(bound, key=lambda b: len(keys_between(op, b, kept)))
            keys = keys_between(op, partner, kept)
            index = index_of(op, keys, kept)
            unchecked = [c for c in unchecked if not _inputs_of(op, c) <= set(kept)]
        else:
            keys = max((op.shared_keys(b, target) for b in bound), key=len)
            partner = next(b for b in bound if op.shared_keys(b, target) == keys)
            index = tuple(_member(k, target) for k in keys)
        bound += binds
        ready = [c for c in unchecked if _inputs_of(op, c) <= set(bound)]
        unchecked = [c for c in unchecked if c not in ready]
        planned.append(
            Step(
                target,
                index,
                tuple(shift(_member(k, partner), op.offsets[partner]) for k in keys),
                tuple(ready),
                not kept and turn[target] > turn[start],
                kept,
            )
        )
    return tuple(planned)


def bound_together(start: int, order: Iterable[int], usable: Iterable[Inputs]) -> list[Inputs]:
    """What is bound step by step: single inputs, and those whose join is there."""
    widest = sorted(usable, key=len, reverse=True)
    bound, found = {start}, []
    for target in order:
        if target not in bound:
            kept = (s for s in widest if target in s and not bound.intersection(s))
            found.append(next(kept, (target,)))
            bound.update(found[-1])
    return found


def count_probes(
    of: dict[str, list[int]], start: int, planned: Iterable[Step], counts: Iterable[list[int]]
) -> None:
    """Add up what probed and what matched, by `probe_name`."""
    bound = [start]
    for step, (probed, matched) in zip(planned, counts, strict=False):
        known = of.setdefault(probe_name(start, bound, step.binds), [0, 0])
        known[0] += probed
        known[1] += matched
        bound += step.binds


def probe_name(start: int, bound: Iterable[int], binds: Iterable[int]) -> str:
    """Rows that were a delta of `start` and have met the others of `bound`, in whatever order,
    probe those of `binds`."""
    return f"{start}/{inputs_text(sorted(bound))}/{inputs_text(sorted(binds))}"


def indexes(op: ph.Join, position: int) -> tuple[tuple[Expr, ...], ...]:
    """Every key by which some probing order may want this input's SteM."""
    others = (i for i in range(len(op.inputs)) if i != position)
    found = (
        tuple(_member(k, position) for k in op.shared_keys(other, position)) for other in others
    )
    return tuple(dict.fromkeys(found))


def _member(key: ph.JoinKey, position: int) -> Expr:
    member = key.member(position)
    assert member is not None
    return member


def _inputs_of(op: ph.Join, condition: Expr) -> set[int]:
    offsets = op.offsets
    return {
        next(i for i in range(len(op.inputs)) if offsets[i] <= c < offsets[i + 1])
        for c in columns_of(condition)
    }


def probing_order(
    op: ph.Join, start: int, fanout: Mapping[tuple[int, int], float], shape: Shape = MJOIN
) -> list[int]:
    """Greedily the connected input that is expected to match least; unknown fan-outs count as 1.

    `fanout` says for (start, target) how many rows came out of probing for each that went in. Of
    what is kept, a delta of its inputs first meets the others; for all others it is one.
    """
    bound, rest = [start], [i for i in range(len(op.inputs)) if i != start]
    while rest:
        around = (s for s in shape if start in s or (len(bound) > 1 and bound[-1] in s))
        inside = next((s for s in around if not set(s) <= set(bound)), None)
        allowed = rest if inside is None else [t for t in rest if t in inside]
        connected = [t for t in allowed if any(op.shared_keys(b, t) for b in bound)] or allowed
        best = min(connected, key=lambda t: (fanout.get((start, t), 1.0), t))
        bound.append(best)
        rest.remove(best)
    return bound[1:]
