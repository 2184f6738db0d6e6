"""TOLERANCE: how far what a query sees of a stream may be from what the stream says."""

from __future__ import annotations

from thalweg.cql import syntax
from thalweg.cql.bind.windows import instants, is_counted, own_column
from thalweg.cql.errors import Mistake
from thalweg.plan.coherency.tolerance import (
    Age,
    ChangesSince,
    Deviation,
    RelativeDeviation,
    Tolerance,
)
from thalweg.plan.nodes import Node, Scan, Tolerant

_UPDATES = ("update", "updates")


def tolerant(
    tolerance: syntax.Tolerance,
    node: Node,
    what: str,
    resolution_us: int,
    names: tuple[str | None, ...],
) -> Tolerant:
    """The rows of a base stream that pass; `names` are what it may be called inside."""
    if not isinstance(node, Scan) or node.stream.is_relation:
        message = f"TOLERANCE stands on a base stream, and {what} is none"
        raise Mistake(message, tolerance.span, "put it where the stream is read, or leave it out")
    if node.stream.is_placed:
        message = "WITH POSITION asks for every row, TOLERANCE for less"
        raise Mistake(message, tolerance.span, "leave one of them out")
    per = tuple(own_column(k, node.schema, names, "PER", "to count by") for k in tolerance.per)
    if tolerance.column is None:
        return Tolerant(node, _without_column(tolerance.amount, node, resolution_us), None, per)
    column = own_column(tolerance.column, node.schema, names, "TOLERANCE", "to compare")
    field = node.schema[column]
    if not field.type.is_numeric:
        message = f"{field.name} is {field.type}; only numbers differ by an amount"
        hint = "say how many UPDATES, or how many seconds, it may be behind"
        raise Mistake(message, tolerance.column.span, hint)
    return Tolerant(node, _of_value(tolerance), column, per)


def _of_value(tolerance: syntax.Tolerance) -> Tolerance:
    amount = tolerance.amount.amount
    if amount < 0:
        raise Mistake("a tolerance can't be negative", tolerance.amount.span)
    # Amounts that are equal are written in one way, so that they are one class.
    amount = abs(amount.normalize())
    if tolerance.is_percent:
        return RelativeDeviation(amount.scaleb(-2))
    return Deviation(amount)


def _without_column(amount: syntax.Duration, node: Scan, resolution_us: int) -> Tolerance:
    if (amount.unit or "").lower() == "percent":
        message = "of which column? A share is that of a value"
        raise Mistake(message, amount.span, "TOLERANCE price 1 PERCENT")
    if (amount.unit or "").lower() in _UPDATES:
        if amount.amount < 0 or amount.amount % 1:
            raise Mistake("updates are counted in whole numbers from 0 on", amount.span)
        return ChangesSince(int(amount.amount))
    age = instants(amount, resolution_us, is_counted(amount, node))
    if age < 1:
        message = "an age of less than an instant holds nothing back"
        raise Mistake(message, amount.span, "leave TOLERANCE out")
    return Age(age)
