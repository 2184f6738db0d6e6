"""Policies by name, as queries ask for them: both, lottery, back-pressure, or `fixed:2,0`, a static
plan that takes the first of these nodes of the plan that is open to a row."""

from __future__ import annotations

from functools import partial

from thalweg.adapt.swap.policies.back_pressure import BackPressure
from thalweg.adapt.swap.policies.both import LotteryAndBackPressure
from thalweg.adapt.swap.policies.fixed import Fixed
from thalweg.adapt.swap.policies.lottery import Lottery
from thalweg.adapt.swap.policies.policy import PolicyMaker

BOTH, FIXED = "both", "fixed"
POLICIES: dict[str, PolicyMaker] = {
    BOTH: LotteryAndBackPressure,
    "lottery": Lottery,
    "back-pressure": BackPressure,
}


def policy_named(text: str) -> PolicyMaker:
    """Raises ValueError."""
    name, _, order = text.partition(":")
    if name == FIXED and all(number.isdigit() for number in order.split(",")):
        return partial(Fixed, tuple(int(number) for number in order.split(",")))
    if name not in POLICIES or order:
        raise ValueError(f"there is no way {text} to route rows: there are {', '.join(POLICIES)}")
    return POLICIES[name]
