"""Drawn expressions, as text, over columns in scope."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st
from tests.conformance.generators.tables import Column

LITERALS = {
    "int": ("1", "2", "0", "3", "-1", "1", "2", "NULL"),
    "text": ("'a'", "'b'", "''", "'1'", "'B'", "'a'", "NULL"),
    "double": ("0.5e0", "1e0", "-2e0", "0e0", "0.5e0", "NULL"),
    "approx": ("0.5e0", "1e0", "-2e0", "0e0", "0.5e0", "NULL"),
    "decimal": ("0.10", "1.5", "-2.00", "0.1", "0", "NULL"),
    "bool": ("TRUE", "FALSE", "TRUE", "FALSE", "NULL"),
    "date": ("DATE '2024-02-29'", "DATE '2023-12-31'", "NULL"),
    "timestamp": ("TIMESTAMP '2024-02-29 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00'", "NULL"),
}
TYPES = {
    "int": "INTEGER",
    "text": "VARCHAR",
    "double": "DOUBLE",
    "approx": "DOUBLE",
    "decimal": "DECIMAL(10, 2)",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
# Templates by the kind of their value; {kind} is an operand of that kind.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "int": (
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "- {int}",
        "ABS({int})",
        "SIGN({int})",
        "ROUND({int}, -1)",
        "LENGTH({text})",
        "POSITION({text} IN {text})",
        "EXTRACT(DAY FROM {date})",
        "EXTRACT(DOW FROM {timestamp})",
        "EXTRACT(EPOCH FROM {timestamp})",
        "EXTRACT(HOUR FROM {timestamp} - {timestamp})",
        "CAST({text} AS INTEGER)",
        "CAST({double} AS BIGINT)",
        "CAST({decimal} AS INTEGER)",
        "CAST({bool} AS INTEGER)",
    ),
    "text": (
        "{text} || {text}",
        "UPPER({text})",
        "LOWER({text})",
        "TRIM({text})",
        "LTRIM({text}) || RTRIM({text})",
        "SUBSTRING({text}, {int}, 1)",
        "SUBSTRING({text}, {int})",
        "REPLACE({text}, 'a', {text})",
        "CAST({int} AS VARCHAR)",
        "CAST({bool} AS VARCHAR)",
        "CAST({decimal} AS VARCHAR)",
        "CAST({date} AS VARCHAR)",
        "CAST({timestamp} AS VARCHAR)",
        "CAST({double} AS VARCHAR)",
    ),
    "double": (
        "{double} + {double}",
        "{double} - {double}",
        "{double} * 2e0",
        "- {double}",
        "ABS({double})",
        "SIGN({double})",
        "FLOOR({double})",
        "CEIL({double})",
        "ROUND({double})",
        "ROUND({double}, 1)",
        "CAST({int} AS DOUBLE)",
    ),
    "approx": (
        "{double} / {double}",
        "{double} % {double}",
        "{decimal} / {decimal}",
        "SQRT({double})",
    ),
    "decimal": (
        "{decimal} + {decimal}",
        "{decimal} - {decimal}",
        "{decimal} * 1.5",
        "{decimal} % {decimal}",
        "- {decimal}",
        "ABS({decimal})",
        "FLOOR({decimal})",
        "CEIL({decimal})",
        "ROUND({decimal}, 1)",
        "CAST({int} AS DECIMAL(10, 2))",
        "CAST({double} AS DECIMAL(10, 1))",
    ),
    "bool": ("NOT {bool}", "{bool} AND {bool}", "{bool} OR {bool}"),
    "date": ("{date} + {int}", "{date} - 1", "CAST({timestamp} AS DATE)"),
    "timestamp": (
        "{timestamp} + INTERVAL '1' HOUR",
        "{timestamp} - INTERVAL '1' DAY",
        "{timestamp} + INTERVAL '1' MONTH",
        "DATE_TRUNC('day', {timestamp})",
        "DATE_TRUNC('week', {timestamp})",
        "DATE_TRUNC('hour', {timestamp})",
        "CAST({date} AS TIMESTAMP)",
    ),
}
# Not the same to the last bit in every library: only drawn where nothing is built on them.
ROUGH = ("EXP({double})", "LN({double})", "POWER({double}, {double})")
# For any kind but bool; X is the kind.
GENERIC = (
    "COALESCE({X}, {X})",
    "NULLIF({X}, {X})",
    "GREATEST({X}, {X})",
    "LEAST({X}, {X})",
    "CASE WHEN {bool} THEN {X} ELSE {X} END",
    "CASE WHEN {bool} THEN {X} END",
)
# {X!} is a constant: a column compared with itself says little.
PREDICATES = (
    "{X} = {X!}",
    "{X} <> {X!}",
    "{X} < {X!}",
    "{X} <= {X!}",
    "{X} > {X!}",
    "{X} >= {X!}",
    "{X} IN ({X!}, {X!})",
    "{X} NOT IN ({X!}, {X!})",
    "{X} BETWEEN {X!} AND {X}",
    "{X} <> {X}",
    "{X} >= {X}",
    "{X} IS NULL",
    "{X} IS NOT NULL",
    "{X} IN ({X}, {X!})",
    "{X} NOT IN ({X}, NULL)",
)
TEXT_PREDICATES = ("{text} LIKE 'a%'", "{text} LIKE '_'", "STARTS_WITH({text}, {text})")
COMPARABLE = ("int", "text", "double", "decimal", "date", "timestamp")


class Expressions:
    """Draws expressions over the columns in scope (qualified names)."""

    def __init__(self, draw: st.DrawFn, columns: Sequence[Column]) -> None:
        self._draw = draw
        self._columns = columns

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(c.kind for c in self._columns))

    def of(self, kind: str, depth: int) -> str:
        """An expression of this kind; mostly a column where there is one."""
        columns = [c.name for c in self._columns if c.kind == kind]
        if kind == "bool" and not columns:
            return self.condition(depth - 1)
        choice = self._draw(st.integers(0, 9))
        if columns and (depth <= 0 or choice < 6):
            return self._draw(st.sampled_from(columns))
        if depth <= 0 or choice == 9:
            return self._literal(kind)
        if kind == "bool":
            return self.condition(depth - 1)
        templates = TEMPLATES[kind]
        if choice == 8:
            templates = tuple(t.replace("{X}", "{" + kind + "}") for t in GENERIC)
        return "(" + self.fill(self._pick_template(templates), depth - 1) + ")"

    def condition(self, depth: int) -> str:
        """A BOOLEAN expression, mostly one that compares columns."""
        choice = self._draw(st.integers(0, 11))
        if depth > 0 and choice >= 10:
            template = self._pick_template(TEMPLATES["bool"])
        elif choice == 9 and "text" in self.kinds():
            template = self._pick_template(TEXT_PREDICATES)
        else:
            kinds = [k for k in self.kinds() if k in COMPARABLE] or ["int"]
            kind = self._draw(st.sampled_from(kinds))
            template = self._draw(st.sampled_from(PREDICATES))
            template = template.replace("{X}", "{" + kind + "}")
            while "{X!}" in template:
                template = template.replace("{X!}", self._literal(kind), 1)
        return "(" + self.fill(template, depth - 1) + ")"

    def _pick_template(self, templates: Sequence[str]) -> str:
        """Mostly one whose operands can be columns: constants alone say little."""
        known = {"{" + kind + "}" for kind in [*self.kinds(), "bool"]}
        useful = [t for t in templates if set(re.findall("{[a-z]+}", t)) <= known]
        some = useful and self._draw(st.integers(0, 7)) < 7
        return self._draw(st.sampled_from(useful if some else templates))

    def fill(self, template: str, depth: int) -> str:
        for kind in TEMPLATES:
            while "{" + kind + "}" in template:
                template = template.replace("{" + kind + "}", self.of(kind, depth), 1)
        return template

    def _literal(self, kind: str) -> str:
        word = self._draw(st.sampled_from(LITERALS[kind]))
        return f"CAST(NULL AS {TYPES[kind]})" if word == "NULL" else word
