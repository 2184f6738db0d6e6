"""Trees from named parts, and what can be wrong with those."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.sand.tree import Tree, TreeError


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    rate_bps: float
    host: int | None


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    inputs: tuple[str, ...]
    selectivity: float  # of the sum of its inputs' rates
    host: int | None = None  # where it is pinned, if it is


def make_tree(
    name: str,
    sources: tuple[Source, ...],
    operators: tuple[Operator, ...],
    proxy: int,
    bound_ms: float = inf,
) -> Tree:
    """A tree from named parts, in any order; the operator that nobody takes is the top."""
    parts: dict[str, Source | Operator] = {}
    listed: list[Source | Operator] = [*sources, *operators]
    for part in listed:
        if part.name in parts:
            raise TreeError(f"{name}: two parts are named {part.name!r}: rename one")
        parts[part.name] = part
    order = _post_order(name, parts, _top(name, parts))
    number = {part: i for i, part in enumerate(order)}
    parent = np.full(len(order) + 1, NONE, np.int32)
    rate, pinned = np.zeros(len(order) + 1), np.full(len(order) + 1, NONE, np.int32)
    parent[len(order) - 1], pinned[-1] = len(order), proxy
    for i, part_name in enumerate(order):
        part = parts[part_name]
        host = part.host
        if isinstance(part, Source):
            if host is None:
                raise TreeError(f"{name}: source {part.name} stands at no host: give its home")
            rate[i] = part.rate_bps
        else:
            below = [number[i] for i in part.inputs]
            parent[below] = i
            rate[i] = part.selectivity * rate[below].sum()
        pinned[i] = NONE if host is None else host
    return Tree(name, (*order, "proxy"), ints(parent), floats(rate), ints(pinned), bound_ms)


def _top(name: str, parts: dict[str, Source | Operator]) -> str:
    taker: dict[str, str] = {}
    for part in parts.values():
        for below in part.inputs if isinstance(part, Operator) else ():
            if below not in parts:
                raise TreeError(f"{name}: {part.name} takes {below!r}, which is no part of it")
            if below in taker:
                raise TreeError(
                    f"{name}: {taker[below]} and {part.name} both take {below}: in a tree only "
                    "one does; give the other a copy under another name"
                )
            taker[below] = part.name
    tops = [part for part in parts if part not in taker]
    if len(tops) == 1:
        return tops[0]
    if tops:
        raise TreeError(f"{name}: nobody takes {', '.join(tops)}; a tree has one top")
    raise TreeError(f"{name}: a cycle: {_cycle(taker)}; nothing is left to be delivered")


def _post_order(name: str, parts: dict[str, Source | Operator], top: str) -> list[str]:
    order: list[str] = []
    stack = [(top, False)]
    while stack:
        part_name, inputs_done = stack.pop()
        part = parts[part_name]
        if inputs_done or isinstance(part, Source):
            order.append(part_name)
        elif not part.inputs:
            raise TreeError(f"{name}: operator {part_name} takes nothing: make it a source")
        else:
            stack.append((part_name, True))
            stack += [(below, False) for below in reversed(part.inputs)]
    if len(order) < len(parts):  # everyone has one taker, so the rest feeds itself
        rest = {p: n.name for n in parts.values() if isinstance(n, Operator) for p in n.inputs}
        around = {p: taker for p, taker in rest.items() if p not in set(order)}
        raise TreeError(f"{name}: a cycle: {_cycle(around)}; it never reaches {top}")
    return order


def _cycle(taker: dict[str, str]) -> str:
    """Following takers, the first part that comes again closes a circle."""
    at = next(iter(taker))
    seen: list[str] = []
    while at not in seen:
        seen.append(at)
        at = taker[at]
    return " → ".join([*seen[seen.index(at) :], at])
