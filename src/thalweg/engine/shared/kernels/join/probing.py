"""Probing plans: in which order a join's inputs are bound, and what can be checked after each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.engine.shared.compile import physical as ph
from thalweg.plan.expr import Expr, columns_of, shift


@dataclass(frozen=True)
class Step:
    """Bind one more input: where its SteM is indexed, what probes it, what then can be checked."""

    target: int
    index: tuple[Expr, ...]  # over the target's own columns
    probe: tuple[Expr, ...]  # over all columns; the bound side of the same keys
    checks: tuple[Expr, ...]


def steps(op: ph.Join, start: int, order: list[int]) -> tuple[Step, ...]:
    """The probing plan of one input's delta, in the given order of the other inputs."""
    bound = [start]
    unchecked = list(op.conditions)
    planned = []
    for target in order:
        keys = max((op.shared_keys(b, target) for b in bound), key=len)
        partner = next(b for b in bound if op.shared_keys(b, target) == keys)
        offset = op.offsets[partner]
        bound.append(target)
        ready = [c for c in unchecked if _inputs_of(op, c) <= set(bound)]
        unchecked = [c for c in unchecked if c not in ready]
        planned.append(
            Step(
                target,
                tuple(_member(k, target) for k in keys),
                tuple(shift(_member(k, partner), offset) for k in keys),
                tuple(ready),
            )
        )
    return tuple(planned)


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


def probing_order(op: ph.Join, start: int, fanout: Mapping[tuple[int, int], float]) -> list[int]:
    """Greedily the connected input that is expected to match least; unknown fan-outs count as 1.

    `fanout` says for (start, target) how many rows came out of probing for each that went in.
    """
    bound, rest, order = [start], [i for i in range(len(op.inputs)) if i != start], []
    while rest:
        connected = [t for t in rest if any(op.shared_keys(b, t) for b in bound)] or rest
        best = min(connected, key=lambda t: (fanout.get((start, t), 1.0), t))
        order.append(best)
        bound.append(best)
        rest.remove(best)
    return order
