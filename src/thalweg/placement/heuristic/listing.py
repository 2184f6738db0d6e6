"""Abstract plans one by one: which operators make a stream, before any host is chosen (SQPR, V-A).

A plan picks one maker for the wanted stream, one for each made input of that maker, and so on. A
join of n base streams has 1, 3, 15, 105 … plans for n = 2, 3, 4, 5 …
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from thalweg.placement.abstract import AbstractPlans

Plan = tuple[int, ...]  # operators, each after those that make its inputs


class TooManyPlans(Exception):
    """Listing them all would take longer than anyone waits."""


def list_plans(plans: AbstractPlans, *, at_most: int = 20_000) -> tuple[Plan, ...]:
    """All plans of a stream; a base stream has one, without operators."""
    listed: dict[int, list[Mapping[int, int]]] = {}  # stream -> its plans, as {stream: maker}
    for stream in plans.streams:
        listed[stream] = []
        for maker in plans.makers[stream]:
            for parts in product(*(listed[s] for s in plans.inputs[maker])):
                makers = {s: o for part in parts for s, o in part.items()}
                # Two inputs may need one stream, which a plan makes in one way only.
                if all(makers[s] == o for part in parts for s, o in part.items()):
                    listed[stream].append({**makers, stream: maker})
                if len(listed[stream]) > at_most:
                    raise TooManyPlans(f"there are more than {at_most:,} abstract plans")
        if not plans.makers[stream]:
            listed[stream] = [{}]
    order = {operator: i for i, operator in enumerate(plans.operators)}
    return tuple(tuple(sorted(m.values(), key=order.__getitem__)) for m in listed[plans.wanted])


def first_plan(plans: AbstractPlans) -> Plan:
    """The plan with the first maker everywhere, as whoever wrote the problem listed them."""
    chosen: dict[int, None] = {}
    stack = [plans.wanted]
    while stack:
        makers = plans.makers[stack.pop()]
        if makers and makers[0] not in chosen:
            chosen[makers[0]] = None
            stack += plans.inputs[makers[0]]
    return tuple(o for o in plans.operators if o in chosen)
