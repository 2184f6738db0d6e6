"""Sets of queries that overlap: a few shapes, with constants, windows and columns drawn for each.

`overlap` is the part of the queries that differ from each other in constants and windows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from hypothesis import strategies as st

from thalweg.cql.compile import Script, compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.plan.catalog import Catalog

STREAMS = """
CREATE STREAM S (k INTEGER, v INTEGER, name VARCHAR) TIMESTAMP BY at;
CREATE STREAM R (k INTEGER, price DECIMAL(6, 2)) TIMESTAMP BY at;
"""
SHAPES = (
    ("S {0} AS s", ("s.k", "s.v", "s.name", "s.v + 1"), ("s.v", "s.k", "s.name"), ""),
    (
        "S {0} AS s, R {1} AS r",
        ("s.k", "s.v", "r.price", "s.name"),
        ("s.v", "r.price", "s.k"),
        "s.k = r.k",
    ),
    (
        "R {0} AS r, R {1} AS q",
        ("r.k", "r.price", "q.price"),
        ("r.price", "q.price", "q.k"),
        "r.k = q.k",
    ),
    (
        "S {0} AS s, R {1} AS r, S {2} AS t",
        ("s.v", "t.v", "r.price"),
        ("s.v", "t.v", "r.price"),
        "s.k = r.k AND t.k = r.k",
    ),
)
CONSTANTS = {
    "s.v": ("0", "1", "2", "3"),
    "t.v": ("1", "2"),
    "s.k": ("1", "2"),
    "q.k": ("1", "2"),
    "s.name": ("'a'", "'b'", "''"),
    "r.price": ("0.50", "1.00", "2.25"),
    "q.price": ("1.00", "2"),
}
WINDOWS = (
    "[Now]",
    "[Range 1]",
    "[Range 3]",
    "[Range 6]",
    "[Unbounded]",
    "",
    "[Range 2 Slide 2]",
    "[Range 5 Slide 2]",
    "[Range 1 Slide 3]",  # lets some tuples never in
    "[Unbounded Slide 3]",
)
WINDOWS_OF_LEAVES = st.tuples(*[st.sampled_from(WINDOWS)] * 3)
KINDS = ("", "ISTREAM ", "DSTREAM ")


FORMS = (
    "{0} = {1}",
    "{0} > {1}",
    "{0} <= {1}",
    "{0} BETWEEN {1} AND {2}",
    "{0} >= {1} AND {0} < {2}",
    "({0} = {1} OR {0} > {2})",
    "{0} <> {1}",
)


TOPS = (
    "SELECT {0}{1} FROM {2}",
    "SELECT {0}{1} FROM {2}",
    "SELECT {0}{1} FROM {2}",
    "SELECT {0}DISTINCT {1} FROM {2}",
    "SELECT {0}COUNT(*) AS n FROM {2}",
    "SELECT {0}COUNT(*) AS n, MAX({3}) AS most FROM {2}",
    "SELECT {0}{1}, COUNT(*) AS n FROM {2} GROUP BY {1}",
    "SELECT {0}{3}, COUNT(DISTINCT {3}) AS n FROM {2} GROUP BY {3} HAVING COUNT(*) > 1",
)


@dataclass(frozen=True)
class Pattern:
    """A query without its constants, and without windows if they are not in common."""

    shape: int
    kind: str
    top: str  # what stands above the join: a form of TOPS
    shown: tuple[str, ...]
    filters: tuple[tuple[str, str], ...]  # column, form
    windows: tuple[str, ...] | None
    since: str


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    shape = draw(st.integers(0, len(SHAPES) - 1))
    _, outputs, filtered, _ = SHAPES[shape]
    shown = draw(st.lists(st.sampled_from(outputs), min_size=1, max_size=3, unique=True))
    one = st.tuples(st.sampled_from(filtered), st.sampled_from(FORMS))
    filters = draw(st.lists(one, max_size=2))
    return Pattern(
        shape,
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from(TOPS)),
        tuple(shown),
        tuple(filters),
        draw(st.none() | WINDOWS_OF_LEAVES),
        draw(st.sampled_from(("", "", "FROM NOW "))),
    )


@st.composite
def queries(draw: st.DrawFn, name: str, pattern: Pattern) -> str:
    source, _, _, join = SHAPES[pattern.shape]
    where = [join] if join else []
    for column, form in pattern.filters:
        one = st.sampled_from(CONSTANTS[column])
        where.append(form.format(column, draw(one), draw(one)))
    windows = pattern.windows or draw(WINDOWS_OF_LEAVES)
    body = source.format(*windows) + (f" WHERE {' AND '.join(where)}" if where else "")
    select = pattern.top.format(pattern.kind, ", ".join(pattern.shown), body, pattern.shown[0])
    return f"CREATE QUERY {name} {pattern.since}AS {select};"


@dataclass(frozen=True)
class SharedWorkload:
    text: str
    inputs: dict[str, list[Arrival]]
    life: tuple[tuple[int, int], ...]  # of each query: the ticks in which it comes and goes
    pushed: tuple[bool, ...]  # whether somebody listens, or reads later

    def script(self) -> Script:
        return compile_script(self.text, Catalog(), name="<drawn>")


@st.composite
def arrivals(draw: st.DrawFn, values: st.SearchStrategy[tuple]) -> list[Arrival]:  # type: ignore[type-arg]
    gaps = draw(st.lists(st.tuples(st.integers(0, 2), values), max_size=14))
    at, found = 0, []
    for position, (gap, row) in enumerate(gaps):
        at += gap
        found.append(Arrival(0, at, position, row, "+"))
    return found


@st.composite
def shared_workloads(draw: st.DrawFn, most: int = 7) -> SharedWorkload:
    overlap = draw(st.sampled_from((0.0, 0.5, 1.0)))
    count = draw(st.integers(1, most))
    common = draw(patterns())
    # Groups may differ in what stands above the same rows.
    alike = st.sampled_from((common, replace(common, top=draw(st.sampled_from(TOPS)))))
    text = STREAMS
    for i in range(count):
        pattern = draw(alike) if draw(st.floats(0, 1)) < overlap else draw(patterns())
        text += draw(queries(f"q{i}", pattern)) + "\n"
    key = st.integers(1, 2)
    s_rows = st.tuples(key, st.none() | st.integers(0, 3), st.sampled_from(("a", "b", "")))
    r_rows = st.tuples(key, st.sampled_from([Decimal(x) for x in ("0.50", "1.00", "2.25")]))
    born = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    lives = [(b, draw(st.sampled_from((b + 2, b + 4, 99, 99)))) for b in born]
    pushed = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    inputs = {"S": draw(arrivals(s_rows)), "R": draw(arrivals(r_rows))}
    return SharedWorkload(text, inputs, tuple(lives), tuple(pushed))
