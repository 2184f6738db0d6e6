"""The streams and the relation that generated queries read, and what arrives in them.

Domains are small, so that joins match, ties happen and rows cancel; every value may be NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from thalweg.engine.arrivals import Arrival

# What an expression is, as far as generators care. Sums are only drawn over `double`, whose values
# are small multiples of 1/4 and so add up exactly in any order; `approx` is any other DOUBLE.
KINDS = ("int", "text", "double", "decimal", "bool", "date", "timestamp")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class History:
    """What a stream keeps for queries to come."""

    retain: int | None = None
    wide: frozenset[int] = frozenset()  # places of columns that it does not keep for nobody


HISTORIES = st.builds(
    History, st.sampled_from([None, None, 0, 3, 100]), st.frozensets(st.integers(0, 3), max_size=2)
)


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    types: tuple[str, ...]
    stamp: str  # what follows TIMESTAMP BY
    is_relation: bool = False

    @property
    def has_stamp_column(self) -> bool:
        return self.columns[0].name == "ts"

    def definition(self, lateness: int, history: History = History()) -> str:  # noqa: B008
        wide = frozenset() if self.is_relation else history.wide
        fields = enumerate(zip(self.columns, self.types, strict=True))
        columns = ", ".join(f"{c.name} {t}{' WIDE' if i in wide else ''}" for i, (c, t) in fields)
        kind = "RELATION" if self.is_relation else "STREAM"
        late = f" LATENESS {lateness}" if lateness else ""
        if history.retain is not None and not self.is_relation:
            late += f" RETAIN {history.retain}"
        return f"CREATE {kind} {self.name} ({columns}) TIMESTAMP BY {self.stamp}{late};"


def _table(name: str, stamp: str, is_relation: bool = False, **columns: str) -> Table:
    sql = {
        "int": "INTEGER",
        "text": "VARCHAR",
        "double": "DOUBLE",
        "decimal": "DECIMAL(10, 2)",
        "bool": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    }
    fields = tuple(Column(n, kind) for n, kind in columns.items())
    types = tuple("BIGINT" if f.name == "ts" else sql[f.kind] for f in fields)
    return Table(name, fields, types, stamp, is_relation)


S = _table("S", "ts BIGINT", k="int", v="int", t="text")
STAMPED_S = _table("S", "ts", ts="int", k="int", v="int", t="text")
T = _table("T", "ts BIGINT", k="int", x="double", d="decimal")
U = _table("U", "ts BIGINT", k="int", p="bool", m="timestamp", y="date")
R = _table("R", "ts BIGINT", True, k="int", t="text")

VALUES: dict[str, tuple[Any, ...]] = {
    "int": (1, 2, 1, 2, 1, 0, 1, 2, 3, 1, None, -2),
    "text": ("a", "b", "a", "b", None, "B", "ab", "1"),
    "double": (0.5, 1.0, 0.5, 1.0, None, -0.25, 2.0, 0.0),
    "decimal": (Decimal("0.10"), Decimal("0.20"), None, Decimal("-1.50"), Decimal("2.00")),
    "bool": (True, False, None),
    "date": (date(2024, 2, 28), date(2024, 2, 29), None, date(2023, 12, 31)),
    "timestamp": (
        datetime(2024, 2, 28, 23, 30),
        datetime(2024, 2, 29),
        None,
        datetime(1969, 12, 31, 23, 59, 59, 500000),
    ),
}
ARRIVALS = (*(6, 8, 10, 12, 7, 9) * 3, 3, 1, 0)
LARGEST_DISORDER = 3


@st.composite
def arrivals(draw: st.DrawFn, table: Table, in_order: bool = False) -> list[Arrival]:
    """A few tuples, mostly rising in time, each at most a little behind those before it."""
    found: list[Arrival] = []
    newest = draw(st.integers(-2, 4))
    for position in range(draw(st.sampled_from(ARRIVALS))):
        newest += draw(st.sampled_from([0, 1, 2, 1, 0, 5]))
        behind = 0 if in_order else draw(st.sampled_from([0, 0, 0, 1, LARGEST_DISORDER]))
        timestamp = newest - behind
        partition = draw(st.integers(0, 1))
        row = tuple(draw(st.sampled_from(VALUES[c.kind])) for c in table.columns)
        op = "+"
        if table.is_relation and found and draw(st.integers(0, 2)) == 2:
            # Mostly a row that was added before; now and then one that is not there.
            op = "-"
            row = draw(st.sampled_from([*[a.row for a in found], row]))
        if table.has_stamp_column:
            row = (timestamp, *row[1:])
        found.append(Arrival(partition, timestamp, position, row, op))
    return found
