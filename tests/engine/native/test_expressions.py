"""Every function and cast, on edge values, against the reference's value for the same row."""

import itertools
import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from thalweg.engine.native.expressions import compile_expr
from thalweg.engine.native.functions import IMPLEMENTATIONS
from thalweg.engine.native.limits import ROUGH
from thalweg.engine.native.types import spark_type
from thalweg.engine.reference.expressions import evaluate
from thalweg.plan import functions
from thalweg.plan.expr import Col, Expr, Lit
from thalweg.plan.functions import EXTRACT_PARTS, FUNCTIONS, INTERVAL_PARTS, TRUNC_PARTS
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    can_cast,
    decimal,
)

MONEY = decimal(2)
FINE = decimal(38)

VALUES: dict[SqlType, list] = {
    BOOLEAN: [None, True, False],
    INTEGER: [None, 0, 1, -1, 3, -(2**31), 2**31 - 1],
    BIGINT: [None, 0, 1, -1, 2, 7, -7, 15, 1500, 2**53 + 1, -(2**63), 2**63 - 1],
    DOUBLE: [None, 0.0, 1.0, -1.5, 2.5, -2.5, 0.1, 1.005, 7.0, 1e308, -1e308, 1e-300, 2.0**63]
    + [-(2.0**63), 9.3e18, 1e16, -0.4, 123456789.125, 4.766188809660399e18, 8.41e21, -149.5],
    MONEY: [None]
    + [Decimal(t) for t in ("0.00", "1.00", "-1.50", "2.50", "0.01", "-7.25", "12345.67")]
    + [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")],
    FINE: [None, Decimal("0." + "0" * 37 + "1"), Decimal("-0.5" + "0" * 37)],
    VARCHAR: [None, "", "a", "Abc", " x ", "ß", "ΑΣ", "𝒳y", "%", "a_b\\", "ab\ncd", "aXbXa", "X"],
    DATE: [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    TIMESTAMP: [
        None,
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(1970, 1, 1),
        datetime(2024, 1, 31, 10, 20, 30, 450_000),
        datetime(2024, 3, 3, 1, 2, 3),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ],
    INTERVAL: [None, 0, 1, -1, 90_061_000_001, -90_061_000_001, -(2**63), 2**63 - 1],
    NULL: [None],
}
TEXTS = [
    "12",
    " +12 ",
    "-3",
    "1.5",
    "-0",
    ".5",
    "5.",
    "1e3",
    "1E400",
    "nan",
    "inf",
    "0x1",
    "1d",
    "--1",
]
TEXTS += [
    "9" * 25,
    "9223372036854775807",
    "9223372036854775808",
    "2147483648",
    "0" * 30 + "7",
    "9" * 45,
]
TEXTS += ["1.005", "-2.675", "true", "T", "YES", "y", "no", "F", "0", "maybe", "12\n"]
TEXTS += [
    "2024-02-29",
    "2023-02-29",
    "2024-2-9",
    "0000-01-01",
    "0001-01-01",
    "10000-01-01",
    "2024-02-29x",
]
TEXTS += [
    "2024-02-29 01:02:03",
    "2024-02-29T01:02:03.45Z",
    "2024-02-29T01:02:03.45+02:00",
    " 2024-02-29 01:02:03-0130 ",
    "2024-02-29 01:02:03+14",
    "2024-02-29 01:02:03+24:00",
    "2024-02-29 01:02:03+02:",
    "2024-02-29 01:02:03Z+02",
    "2024-02-29-02:00",
    "0001-01-01 00:00:00+00:01",
    "9999-12-31 23:59:59-00:01",
    "2024-02-29 24:00:00",
    "2024-02-29 01:02",
]
TEXTS += [
    "2024-02-29 01:02:03.1234567",
    "2024-02-29 01:02:60",
    "2024-02-29 01:02:03+01:00",
    "1970-01-01Z",
]

NUMBERS = (BIGINT, DOUBLE, MONEY)


def _pairs(*types: SqlType) -> list[tuple[SqlType, ...]]:
    return [(t, t) for t in types]


# Argument types by function; constants stand for arguments that must be constant.
SIGNATURES: dict[str, list[tuple]] = {
    **{
        op: _pairs(BOOLEAN, BIGINT, DOUBLE, MONEY, VARCHAR, DATE, TIMESTAMP, INTERVAL)
        + [(BIGINT, DOUBLE), (MONEY, BIGINT), (DATE, TIMESTAMP), (NULL, BIGINT)]
        for op in ("=", "<>", "<", "<=", ">", ">=")
    },
    "+": [*_pairs(*NUMBERS, INTERVAL), (TIMESTAMP, INTERVAL), (INTERVAL, DATE), (DATE, BIGINT)]
    + [(MONEY, FINE), (INTEGER, BIGINT)],
    "-": [*_pairs(*NUMBERS, INTERVAL, TIMESTAMP, DATE), (TIMESTAMP, INTERVAL), (DATE, BIGINT)],
    "*": [*_pairs(*NUMBERS), (INTERVAL, INTEGER), (BIGINT, INTERVAL), (decimal(4), MONEY)],
    "/": [*_pairs(*NUMBERS), (INTEGER, INTEGER), (MONEY, BIGINT)],
    "%": [*_pairs(*NUMBERS), (MONEY, decimal(4))],
    "and": [(BOOLEAN, BOOLEAN), (BOOLEAN, BOOLEAN, BOOLEAN)],
    "or": [(BOOLEAN, BOOLEAN), (BOOLEAN, BOOLEAN, BOOLEAN)],
    "not": [(BOOLEAN,)],
    "is_null": [(BIGINT,), (VARCHAR,)],
    "is_not_null": [(BIGINT,), (VARCHAR,)],
    "in": [(BIGINT, BIGINT, BIGINT), (VARCHAR, VARCHAR), (BIGINT, NULL, BIGINT)],
    "like": [
        (VARCHAR, pattern)
        for pattern in (
            "%",
            "",
            "a%",
            "%X%",
            "_",
            "a_b\\",
            "a\\_b\\\\",
            "\\%",
            "ab_cd",
            "(.*)",
            None,
        )
    ],
    "coalesce": [(BIGINT,), (BIGINT, BIGINT), (VARCHAR, VARCHAR), (NULL, DOUBLE)],
    "nullif": [(BIGINT, BIGINT), (DOUBLE, BIGINT), (VARCHAR, VARCHAR)],
    "greatest": [(BIGINT,), (BIGINT, BIGINT, BIGINT), (DOUBLE, BIGINT), (VARCHAR, VARCHAR)],
    "least": [(DATE, TIMESTAMP), (BIGINT, BIGINT), (MONEY, BIGINT)],
    "neg": [(t,) for t in (*NUMBERS, INTEGER, INTERVAL, FINE)],
    "abs": [(t,) for t in (*NUMBERS, INTEGER, INTERVAL, FINE)],
    "sign": [(t,) for t in (*NUMBERS, INTEGER, FINE)],
    "floor": [(t,) for t in (*NUMBERS, INTEGER, FINE)],
    "ceil": [(t,) for t in (*NUMBERS, INTEGER, FINE)],
    "round": [(t,) for t in (*NUMBERS, INTEGER, FINE)]
    + [(t, n) for t in NUMBERS for n in (None, 0, 1, 2, 20, 500, -1, -2, -18, -19, -37, -38, -500)],
    "sqrt": [(DOUBLE,), (BIGINT,)],
    **{f: [(VARCHAR,)] for f in ("upper", "lower", "length", "trim", "ltrim", "rtrim")},
    "substring": [(VARCHAR, BIGINT), (VARCHAR, BIGINT, BIGINT)],
    "replace": [(VARCHAR, VARCHAR, VARCHAR)],
    "position": [(VARCHAR, VARCHAR)],
    "starts_with": [(VARCHAR, VARCHAR)],
    "has_any": [(VARCHAR, VARCHAR)],
    "||": [(VARCHAR, VARCHAR)],
    "extract": [(part, t) for part in EXTRACT_PARTS for t in (TIMESTAMP, DATE)]
    + [(part, INTERVAL) for part in INTERVAL_PARTS],
    "date_trunc": [(part, TIMESTAMP) for part in TRUNC_PARTS],
    "add_months": [(TIMESTAMP, BIGINT), (DATE, INTEGER)],
}


def _constant(value: object) -> Lit:
    types = {str: VARCHAR, int: INTEGER, type(None): NULL}
    return Lit(value, types[type(value)])


def _call(name: str, signature: tuple) -> tuple[Expr, list[SqlType]]:
    columns = [s for s in signature if isinstance(s, SqlType)]
    numbers = itertools.count()
    args = [Col(next(numbers), s) if isinstance(s, SqlType) else _constant(s) for s in signature]
    return functions.call(name, *args), columns


def _evaluate_in_spark(spark, expressions: list[tuple[Expr, list[SqlType], list[tuple]]]) -> list:
    """All expressions in few jobs: one per list of column types."""
    results: list = [None] * len(expressions)
    by_types: dict[tuple, list[int]] = {}
    for number, (_, types, _) in enumerate(expressions):
        by_types.setdefault(tuple(types), []).append(number)
    for types, numbers in by_types.items():
        rows = expressions[numbers[0]][2]
        arrays = [
            pa.array([row[i] for row in rows], to_arrow_type(spark_type(t)))
            for i, t in enumerate(types)
        ]
        table = pa.table(arrays, [f"c{i}" for i in range(len(types))])
        frame = spark.createDataFrame(table).coalesce(1)
        columns = [F.col(f"c{i}") for i in range(len(types))]
        outputs = [
            compile_expr(expressions[n][0], columns).cast(spark_type(expressions[n][0].type))
            for n in numbers
        ]
        collected = frame.select(*(o.alias(f"o{i}") for i, o in enumerate(outputs))).collect()
        for position, number in enumerate(numbers):
            results[number] = [row[position] for row in collected]
    return results


def _same(expected: object, actual: object) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        signs_agree = math.copysign(1, expected) == math.copysign(1, actual)
        return math.isclose(expected, actual, rel_tol=1e-13) and signs_agree
    return type(expected) is type(actual) and expected == actual


def _mismatches(spark, cases: dict[str, tuple[Expr, list[SqlType], list[tuple]]]) -> dict:
    """By label, the rows on which Spark and the reference differ."""
    found: dict[str, list[str]] = {label: [] for label in cases}
    for (label, (expr, _, rows)), actual in zip(
        cases.items(), _evaluate_in_spark(spark, list(cases.values())), strict=True
    ):
        assert len(rows) == len(actual)
        for row, value in zip(rows, actual, strict=True):
            expected = evaluate(expr, row)
            if not _same(expected, value):
                found[label].append(f"{row}: expected {expected!r}, Spark gives {value!r}")
    return found


@pytest.fixture(scope="module")
def function_mismatches(spark) -> dict[str, list[str]]:
    """Of all functions at once, since what takes time is the number of Spark's jobs."""
    cases = {}
    for name, signatures in SIGNATURES.items():
        for signature in signatures:
            expr, types = _call(name, signature)
            rows = list(itertools.product(*(VALUES.get(t) or _decimals(t) for t in types)))
            cases[name, *map(str, signature)] = (expr, types, rows)
    return _mismatches(spark, cases)


def test_every_function_is_implemented():
    refused = {*ROUGH, "bucket"}
    assert {*IMPLEMENTATIONS, *refused} == set(FUNCTIONS) == {*SIGNATURES, *refused}


@pytest.mark.parametrize("name", SIGNATURES)
def test_function_gives_the_reference_value(name, function_mismatches):
    found = {label: rows for label, rows in function_mismatches.items() if label[0] == name}
    assert len(found) == len(SIGNATURES[name])
    assert {label: rows for label, rows in found.items() if rows} == {}


def _decimals(sql_type: SqlType) -> list:
    quantum = Decimal(1).scaleb(-sql_type.scale)
    return [None, *(Decimal(t).quantize(quantum) for t in ("0", "1.5", "-0.75", "99999"))]


def test_casts_give_the_reference_value(spark):
    cases = {}
    for source, target in itertools.permutations([*VALUES, decimal(0), decimal(10)], 2):
        if can_cast(source, target) and (source, target) != (DOUBLE, VARCHAR) and target != NULL:
            values = VALUES.get(source) or _decimals(source)
            values = values + TEXTS if source == VARCHAR else values
            expr = functions.cast(Col(0, source), target)
            cases[f"{source} to {target} "] = (expr, [source], [(v,) for v in values])
    assert len(cases) > 70
    assert {label: rows for label, rows in _mismatches(spark, cases).items() if rows} == {}


def test_case_takes_the_first_branch_that_is_true(spark):
    number = Col(0, BIGINT)
    expr = functions.case(
        [
            (functions.call("<", number, Lit(0, BIGINT)), Lit(1, INTEGER)),
            (functions.call("<", number, Lit(5, BIGINT)), Lit(Decimal("2.50"), MONEY)),
        ],
        Lit(None, NULL),
    )
    rows = [(v,) for v in VALUES[BIGINT]]
    assert _mismatches(spark, {"case": (expr, [BIGINT], rows)}) == {"case": []}


@pytest.mark.parametrize("sql_type", [t for t in VALUES if t != NULL], ids=str)
def test_constants_keep_their_value(sql_type, spark):
    values = [v for v in VALUES[sql_type] if v is not None] + [None]
    row = (
        spark.range(1)
        .select(*(compile_expr(Lit(v, sql_type), []).alias(f"c{i}") for i, v in enumerate(values)))
        .first()
    )
    assert [v for e, v in zip(values, row, strict=True) if not _same(e, v)] == []
