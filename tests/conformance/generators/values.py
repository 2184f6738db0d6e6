"""Every scalar function, operator and cast over values at their edges: one script, not drawn.

Column 1 and column 2 of each kind run through all pairs of the kind's values, a pair an instant.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from tests.conformance.generators.expressions import (
    GENERIC,
    PREDICATES,
    ROUGH,
    TEMPLATES,
    TEXT_PREDICATES,
    TYPES,
)
from tests.conformance.generators.workload import Workload

from thalweg.engine.arrivals import Arrival

MAX, MIN = 2**63 - 1, -(2**63)
EDGES: dict[str, tuple[Any, ...]] = {
    "int": (None, 0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31)),
    "long": (None, 0, 1, -1, 3, MAX, MIN, 2**53 + 1),
    "text": (
        *(None, "", "a", "ab", "B", " 12 ", "1.5", "-7", "true", "ß%_", "2024-02-29", "1e3"),
        *("2024-02-29T01:02:03+02:00", "9999-12-31 23:59:59-0001", "2024-02-29 01:02:03.5-10"),
    ),
    "double": (None, 0.0, 0.5, -0.5, 2.5, 1.005, -2.675, 1e16, 1e-7, 1e308, 3.0, 0.1),
    "decimal": (
        None,
        *map(Decimal, ("0.00", "0.10", "-0.25", "2.50", "99999999.99", "-3.00")),
        *map(Decimal, (f"{'9' * 36}.99", f"-{'9' * 36}.99")),
    ),
    "bool": (None, True, False),
    "date": (None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)),
    "timestamp": (
        None,
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 500000),
        datetime(2024, 2, 29, 13, 14, 15),
        datetime(2024, 3, 3, 0, 0, 0, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
}
COLUMN_TYPES = {**{k: TYPES[k] for k in EDGES if k != "long"}, "long": "BIGINT"}
# More than generated queries need.
EXTRA = (
    *(f"{{long}} {op} {{long}}" for op in ("+", "-", "*", "/", "%", "=", "<")),
    *(f"{{double}} {op} {{double}}" for op in ("*", "/", "%", "=", "<")),
    *(f"{{decimal}} {op} {{decimal}}" for op in ("*", "/", "=", "<")),
    *(f"{{long}} {op} {{double}}" for op in ("+", "=", "<")),
    *(f"{{decimal}} {op} {{double}}" for op in ("+", "=", "<")),
    *("- {long}", "ABS({long})", "SIGN({long})", "FLOOR({int})", "CEIL({long})"),
    *("ROUND({long}, -2)", "ROUND({long}, -19)", "ROUND({int}, 2)", "ROUND({decimal})"),
    *(
        "ROUND({double}, 2)",
        "ROUND({double}, -1)",
        "ROUND({double}, {int})",
        "ROUND({decimal}, -1)",
    ),
    *("SQRT({double})", "SQRT({long})", "EXP({decimal})", "LN({int})", "POWER({int}, {int})"),
    *("GREATEST({int}, {double})", "LEAST({long}, {decimal})", "COALESCE({int}, {long})"),
    *("HAS_ANY({text}, {text})", "HAS_ANY({text}, ',1,a')", "HAS_ANY({text}, ',')"),
    *("SUBSTRING({text}, {int}, {int})", "SUBSTRING({text}, {int})", "STARTS_WITH({text}, '')"),
    *("SUBSTRING({text}, {long}, {long})", "7 / {long}", "7 % {long}", "7e0 / {double}"),
    *("{double} / 3e0", "{double} / 1e16", "1 < {long}", "2 IN ({long}, 3)", "NULLIF(1, {long})"),
    *("POSITION('' IN {text})", "REPLACE({text}, '', 'x')", "REPLACE({text}, '1', {text})"),
    *("{text} LIKE {text}", "{text} LIKE '%\\%\\_'", "{text} NOT LIKE '_'"),
    *(f"BUCKET({{{kind}}})" for kind in ("int", "long", "text", "double", "decimal", "bool")),
    *("BUCKET({date})", "BUCKET({timestamp})"),
    *("{date} + {int}", "{date} - {int}", "{date} < {timestamp}", "{date} = {date}"),
    *(f"EXTRACT({part} FROM {{timestamp}})" for part in ("YEAR", "MONTH", "DAY", "HOUR")),
    *(
        f"EXTRACT({part} FROM {{timestamp}})"
        for part in ("MINUTE", "SECOND", "DOW", "DOY", "EPOCH")
    ),
    *(
        f"EXTRACT({part} FROM {{timestamp}} - {{timestamp}})"
        for part in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "EPOCH")
    ),
    *(
        f"DATE_TRUNC('{part}', {{timestamp}})"
        for part in ("year", "month", "week", "day", "hour", "minute", "second")
    ),
    *("ADD_MONTHS({timestamp}, {int})", "{timestamp} + INTERVAL '1' YEAR"),
    *("({timestamp} - {timestamp}) < INTERVAL '1' DAY", "{timestamp} + INTERVAL '1' DAY * {int}"),
    *("{bool} AND {bool}", "{bool} OR {bool}", "NOT {bool}", "{bool} = {bool}", "{bool} < {bool}"),
)
_CASTABLE = {
    "int": ("bool", "int", "long", "double", "decimal", "text"),
    "long": ("bool", "int", "long", "double", "decimal", "text"),
    "double": ("int", "long", "decimal", "text"),
    "decimal": ("int", "long", "double", "text"),
    "bool": ("int", "long", "double", "decimal", "text"),
    "date": ("timestamp", "text"),
    "timestamp": ("date", "text"),
    "text": ("bool", "int", "long", "double", "decimal", "date", "timestamp"),
}


def expressions() -> list[str]:
    templates = [t for kind in TEMPLATES for t in TEMPLATES[kind]] + [*ROUGH, *TEXT_PREDICATES]
    for kind in EDGES:
        templates += [t.replace("{X}", "{" + kind + "}") for t in GENERIC]
        if kind not in ("bool", "long"):
            generic = (
                t.replace("{X!}", "{X}").replace("{X}", "{" + kind + "}") for t in PREDICATES
            )
            templates += generic
    casts = [
        f"CAST({{{source}}} AS {COLUMN_TYPES[target]})"
        for source, targets in _CASTABLE.items()
        for target in targets
    ]
    casts += ["CAST({double} AS DECIMAL(38, 10))", "CAST({text} AS DECIMAL(10, 4))"]
    return [_over_columns(t) for t in dict.fromkeys([*templates, *EXTRA, *casts])]


def _over_columns(template: str) -> str:
    """Operands of a kind take its two columns in turn."""
    used: dict[str, int] = {}

    def column(found: re.Match[str]) -> str:
        kind = "double" if found[1] == "approx" else found[1]
        used[kind] = used.get(kind, 0) + 1
        return f"{kind}{2 - used[kind] % 2}"

    return re.sub("{([a-z]+)}", column, template)


def workload(expressions_per_query: int = 10) -> Workload:
    return Workload(script(expressions_per_query), arrivals())


def script(expressions_per_query: int = 10) -> str:
    """CREATE STREAM V, and queries q0, q1, … with some expressions each."""
    columns = ", ".join(f"{k}{i} {COLUMN_TYPES[k]}" for k in EDGES for i in (1, 2))
    statements = [f"CREATE STREAM V ({columns}) TIMESTAMP BY ts BIGINT"]
    all_of_them = expressions()
    for number, begin in enumerate(range(0, len(all_of_them), expressions_per_query)):
        chunk = all_of_them[begin : begin + expressions_per_query]
        items = ", ".join(f"{e} AS c{i}" for i, e in enumerate(chunk))
        statements.append(f"CREATE QUERY q{number} AS SELECT {items} FROM V [Now]")
    return ";\n".join(statements) + ";\n"


def arrivals() -> dict[str, list[Arrival]]:
    """All pairs of each kind, the shorter lists of pairs repeated."""
    pairs = [list(product(values, values)) for values in EDGES.values()]
    count = max(len(p) for p in pairs)
    rows = [tuple(v for p in pairs for v in p[i % len(p)]) for i in range(count)]
    return {"V": [Arrival(0, i, i, row) for i, row in enumerate(rows)]}
