"""Plan expressions as Spark columns, with the values that docs/values.md gives."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native.casts import cast
from thalweg.engine.native.functions import IMPLEMENTATIONS
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.unsupported import Unsupported
from thalweg.engine.native.values import literal
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit


def compile_expr(expr: Expr, columns: Sequence[Column]) -> Column:
    """The expression over an input row whose columns are given by position."""
    match expr:
        case Col(index, _, _):
            return columns[index]
        case Lit():
            return literal(expr)
        case Cast(arg, target):
            return cast(compile_expr(arg, columns), arg.type, target)
        case Case():
            return _case(expr, columns)
        case Call(function, args, _):
            implementation = IMPLEMENTATIONS.get(function)
            if implementation is None:
                raise Unsupported(function.upper(), "there is no exact form of it in Spark")
            return implementation([compile_expr(a, columns) for a in args], expr)


def _case(expr: Case, columns: Sequence[Column]) -> Column:
    chain = F.when(F.lit(False), F.lit(None).cast(spark_type(expr.type)))
    for condition, value in expr.branches:
        chain = chain.when(compile_expr(condition, columns), compile_expr(value, columns))
    return chain.otherwise(compile_expr(expr.otherwise, columns))
