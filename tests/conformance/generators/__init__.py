"""Hypothesis strategies for workloads: streams with what arrives in them, and queries over them.

A workload is plain data and text, so a failing example can be pasted into a case file.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from tests.conformance.generators.queries import QueryDrawer
from tests.conformance.generators.tables import (
    HISTORIES,
    STAMPED_S,
    History,
    R,
    S,
    T,
    Table,
    U,
    arrivals,
)
from tests.conformance.generators.workload import Workload

__all__ = ["TABLES", "UNSTAMPED_TABLES", "Workload", "scripts", "workloads"]

TABLES = (STAMPED_S, T, U, R)
UNSTAMPED_TABLES = (S, T, U, R)  # no query over these can see a timestamp


@st.composite
def scripts(draw: st.DrawFn, *, tables: Sequence[Table] = TABLES, queries: int = 1) -> str:
    """The text of a workload alone."""
    definitions = [t.definition(0) for t in tables]
    return "\n".join([*definitions, QueryDrawer(draw, tables).script(queries)])


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    tables: Sequence[Table] = TABLES,
    queries: int = 1,
    in_order: bool = False,
    with_history: bool = False,
) -> Workload:
    """Streams, what arrives, and a script of queries q0, q1, … over them.

    With `in_order` nothing is late and arrival follows time; else tuples are out of order within
    LATENESS, and some are late. `with_history` draws what streams keep for queries to come.
    """
    lateness = [0 if in_order else draw(st.sampled_from([3, 0, 1])) for _ in tables]
    kept = [draw(HISTORIES) if with_history else History() for _ in tables]
    definitions = [t.definition(*of) for t, *of in zip(tables, lateness, kept, strict=True)]
    script = QueryDrawer(draw, tables).script(queries)
    inputs = {t.name: draw(arrivals(t, in_order)) for t in tables}
    return Workload("\n".join([*definitions, script]), inputs)
