"""Native under the expressions and edge values that attack `shared`: each gives the reference's
value to the bit, or is refused before it runs."""

import math
import os
import random
from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from tests.conformance.generators.calls import EDGES, FORMS, Shape, shapes

from thalweg.engine.native.expressions import compile_expr
from thalweg.engine.native.limits import check_expr
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.unsupported import Unsupported
from thalweg.engine.reference.expressions import evaluate
from thalweg.plan.expr import Col, Expr, Lit
from thalweg.plan.types import SqlType

MOST_ROWS = 50  # of a list of types
DRAWS = int(os.environ.get("THALWEG_NATIVE_DRAWS", "1"))  # of each shape
MOST_OUTPUTS = 120  # of a job: Spark compiles all of them together

Types = tuple[SqlType, ...]


def identical(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


def built(shape: Shape, draw: random.Random) -> Expr:
    """With columns in all places, or a constant in one. Spark takes long to compile each, so it is
    one of these, unless THALWEG_NATIVE_DRAWS says more."""
    columns: list[Expr] = [Col(i, t) for i, t in enumerate(shape.types)]
    if len(columns) == 1 or draw.random() < 0.5:
        return shape.build(columns)
    place = draw.randrange(len(columns))
    constant = Lit(draw.choice(EDGES[shape.types[place]]), shape.types[place])
    return shape.build([constant if i == place else c for i, c in enumerate(columns)])


def drawn() -> tuple[dict[Types, list[tuple[str, Expr]]], Counter[str]]:
    """Expressions that are taken, by the types of their columns; and why others are refused."""
    draw, refused = random.Random("native"), Counter[str]()
    taken: dict[Types, list[tuple[str, Expr]]] = {}
    for form in FORMS:
        for shape in shapes(form):
            for expr in {built(shape, draw) for _ in range(DRAWS)}:
                try:
                    check_expr(expr)
                    taken.setdefault(shape.types, []).append((form, expr))
                except Unsupported as error:
                    refused[error.what] += 1
    return taken, refused


def rows_of(types: Types) -> list[tuple[Any, ...]]:
    rows = list(product(*(EDGES[t] for t in types)))
    return random.Random(str(types)).sample(rows, min(len(rows), MOST_ROWS))


def in_spark(spark: Any, types: Types, rows: list[tuple], exprs: list[Expr]) -> list[list[Any]]:
    arrays = [
        pa.array([row[i] for row in rows], to_arrow_type(spark_type(t)))
        for i, t in enumerate(types)
    ]
    table = pa.table(arrays, [f"c{i}" for i in range(len(types))])
    frame = spark.createDataFrame(table).coalesce(1)
    columns = [F.col(f"c{i}") for i in range(len(types))]
    found: list[list[Any]] = []
    for start in range(0, len(exprs), MOST_OUTPUTS):
        part = exprs[start : start + MOST_OUTPUTS]
        outputs = [
            compile_expr(e, columns).cast(spark_type(e.type)).alias(f"o{i}")
            for i, e in enumerate(part)
        ]
        collected = frame.select(*outputs).collect()
        found += [[row[i] for row in collected] for i in range(len(part))]
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_expression_at_every_edge_is_exact_or_refused(spark):
    taken, refused = drawn()
    wrong: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for types, forms in taken.items():
        rows = rows_of(types)
        values = in_spark(spark, types, rows, [e for _, e in forms])
        for (form, expr), column in zip(forms, values, strict=True):
            for row, value in zip(rows, column, strict=True):
                expected = evaluate(expr, row)
                if not identical(expected, value):
                    wrong[form] += 1
                    examples.setdefault(form, f"{expr} of {row}: {expected!r}, Spark: {value!r}")
    assert examples == {}, wrong
    assert sum(map(len, taken.values())) > 1_000
    # What is refused is refused by name, and there is no more of it than there has to be.
    assert set(refused) == REFUSED


REFUSED = {
    *("BUCKET", "EXP", "LN", "POWER"),
    "CAST of DOUBLE to VARCHAR",
    "LIKE with a computed pattern",
    "ROUND to a computed number of digits",
}
