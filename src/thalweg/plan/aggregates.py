"""Aggregate functions: names, argument and result types.

NULL arguments are passed over; COUNT(*) counts rows; every aggregate but COUNT of nothing is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.expr import Expr
from thalweg.plan.functions import TypeMismatch
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL, SqlType

AGGREGATES = ("sum", "count", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class AggCall:
    """One aggregate of an Aggregate node; COUNT(*) is count without an argument."""

    function: str
    arg: Expr | None = None
    distinct: bool = False

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES:
            raise TypeMismatch(f"there is no aggregate {self.function.upper()}")
        if self.arg is None and (self.function != "count" or self.distinct):
            raise TypeMismatch(f"{self.function.upper()} needs an argument")
        if self.arg is not None:
            _check(self.function, self.arg.type)

    @property
    def type(self) -> SqlType:
        if self.function == "count" or self.arg is None:
            return BIGINT
        if self.function == "avg":
            return DOUBLE
        if self.function == "sum":
            return BIGINT if self.arg.type.is_integer else self.arg.type
        return self.arg.type


def _check(function: str, arg: SqlType) -> None:
    if function in ("sum", "avg") and not arg.is_numeric:
        raise TypeMismatch(f"{function.upper()} takes a number, not {arg}")
    if function in ("min", "max") and arg in (BOOLEAN, INTERVAL):
        raise TypeMismatch(f"{function.upper()} does not take {arg}")
