"""The scalar functions of `thalweg.plan.functions` as Spark expressions, by the same names.

An implementation takes the compiled arguments and the call. What Spark can't do exactly is refused
before (`limits.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native import arithmetic, temporal
from thalweg.engine.native.arithmetic import Arguments, Implementation
from thalweg.engine.native.values import fit_double
from thalweg.plan.expr import Call, Lit

MOST_CHARACTERS = (1 << 31) - 1


def _plain(function: Callable[..., Column]) -> Implementation:
    return lambda args, call: function(*args)


def _double(function: Callable[..., Column]) -> Implementation:
    return lambda args, call: fit_double(function(*args))


# --- conditions and choices ---------------------------------------------------------------------


def _extreme(function: Callable[..., Column]) -> Implementation:
    """GREATEST and LEAST: Spark passes over NULLs, we do not."""

    def apply(args: Arguments, call: Call) -> Column:
        if len(args) == 1:
            return args[0]
        known = reduce(lambda a, b: a & b, [a.isNotNull() for a in args])
        return F.when(known, function(*args))

    return apply


def _like(args: Arguments, call: Call) -> Column:
    pattern = call.args[1]
    assert isinstance(pattern, Lit), "see limits.py"
    if pattern.value is None:
        return F.lit(None).cast("boolean")
    return args[0].rlike(java_regex(str(pattern.value)))


def _words(text: Column) -> Column:
    return F.array_remove(F.split(text, ","), "")


def java_regex(pattern: str) -> str:
    """A LIKE pattern as Java's regular expression for the whole text."""
    wildcards = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return r"(?s)\A" + "".join(wildcards.get(p) or _quoted(p[-1]) for p in parts) + r"\z"


def _quoted(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


# --- text ---------------------------------------------------------------------------------------


def _substring(args: Arguments, call: Call) -> Column:
    """Characters start … start + n - 1 that exist; Spark counts from the end where start < 1."""
    text, start, *count = args
    begin = F.least(F.greatest(start, F.lit(1)), F.lit(MOST_CHARACTERS))
    if not count:
        length = F.lit(MOST_CHARACTERS).cast("long")
    else:
        # Only an end beyond all texts overflows, since the count is not negative.
        end = F.coalesce(F.try_add(start, count[0]), F.lit(MOST_CHARACTERS).cast("long"))
        length = F.least(F.greatest(end, begin) - begin, F.lit(MOST_CHARACTERS))
        length = F.when(count[0] >= 0, length)
    known = F.when(start.isNotNull(), text)
    return F.substring(known, begin.cast("int"), length.cast("int"))


def _extract(args: Arguments, call: Call) -> Column:
    return temporal.extract(call.args[0], args[1], call.args[1].type)


def _date_trunc(args: Arguments, call: Call) -> Column:
    return temporal.date_trunc(call.args[0], args[1])


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "=": _plain(lambda a, b: a == b),
    "<>": _plain(lambda a, b: a != b),
    "<": _plain(lambda a, b: a < b),
    "<=": _plain(lambda a, b: a <= b),
    ">": _plain(lambda a, b: a > b),
    ">=": _plain(lambda a, b: a >= b),
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "and": _plain(lambda *args: reduce(lambda a, b: a & b, args)),
    "or": _plain(lambda *args: reduce(lambda a, b: a | b, args)),
    "not": _plain(lambda a: ~a),
    "is_null": _plain(lambda a: a.isNull()),
    "is_not_null": _plain(lambda a: a.isNotNull()),
    "in": _plain(lambda a, *others: a.isin(*others)),
    "like": _like,
    "coalesce": _plain(F.coalesce),
    "nullif": _plain(lambda a, b: F.when(a == b, F.lit(None)).otherwise(a)),
    "greatest": _extreme(F.greatest),
    "least": _extreme(F.least),
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "sign": arithmetic.sign,
    "floor": arithmetic.whole(F.floor),
    "ceil": arithmetic.whole(F.ceil),
    "round": arithmetic.round_to,
    "sqrt": _double(F.sqrt),
    "upper": _plain(F.upper),
    "lower": _plain(F.lower),
    "length": _plain(lambda a: F.char_length(a).cast("long")),
    "trim": _plain(F.trim),
    "ltrim": _plain(F.ltrim),
    "rtrim": _plain(F.rtrim),
    "substring": _substring,
    "replace": _plain(F.replace),
    "position": _plain(lambda part, text: F.position(part, text).cast("long")),
    "starts_with": _plain(F.startswith),
    "has_any": _plain(lambda a, b: F.arrays_overlap(_words(a), _words(b))),
    "||": _plain(F.concat),
    "extract": _extract,
    "date_trunc": _date_trunc,
    "add_months": _plain(temporal.add_months),
}
